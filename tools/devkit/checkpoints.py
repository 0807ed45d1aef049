"""Tiny random language models in Hugging Face's form, one for each architecture and setting that the compiler reads.

Weights come from PCG64's raw stream, which numpy keeps stable, so nothing but this file is needed to make them again."""

import json
import struct

import ml_dtypes
import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn,
         "F8_E5M2": ml_dtypes.float8_e5m2, "I8": np.int8, "I32": np.int32, "I64": np.int64}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}
VOCABULARY = 96
PROMPT = [3, 17, 92, 41, 41, 8, 60, 77, 2, 55, 13, 30]
ROWS = [0, 4, 11]  # whose logits are compared

BASE = dict(vocab_size=VOCABULARY, hidden_size=96, intermediate_size=160, num_hidden_layers=3, num_attention_heads=6,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
            bos_token_id=1, eos_token_id=2, pad_token_id=0, torch_dtype="float32")


def config(model_type, architecture, **settings):
    made = {"model_type": model_type, "architectures": [architecture], **BASE, **settings}
    return made if made["head_dim"] else {key: value for key, value in made.items() if key != "head_dim"}


def llama(**settings):
    return config("llama", "LlamaForCausalLM", rope_theta=1e4, hidden_act="silu", **settings)


def qwen3(**settings):
    return config("qwen3", "Qwen3ForCausalLM", rope_theta=1e6, hidden_act="silu", **settings)


def phi3(**settings):
    return config("phi3", "Phi3ForCausalLM", rope_theta=1e4, hidden_act="silu", **{"original_max_position_embeddings": 64, **settings})


def gemma(number, **settings):
    kind = {1: ("gemma", "GemmaForCausalLM"), 2: ("gemma2", "Gemma2ForCausalLM"), 3: ("gemma3_text", "Gemma3ForCausalLM")}[number]
    return config(*kind, rope_theta=1e4, hidden_activation="gelu_pytorch_tanh", **{"tie_word_embeddings": True, **settings})


def deepseek(version, **settings):
    return config(f"deepseek_v{version}", f"DeepseekV{version}ForCausalLM", rope_theta=1e4, hidden_act="silu", num_nextn_predict_layers=0,
                  **{"head_dim": None, "num_key_value_heads": 6, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
                     "v_head_dim": 24, "first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 3,
                     "moe_intermediate_size": 64, "torch_dtype": "bfloat16", **settings})


LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)

# name: (config, the setting whose loss must show in the logits). A case's place is its seed: new ones come last.
CASES = {
    "llama": (llama(), dict(rms_norm_eps=0.1)),
    "llama-odd-heads": (llama(hidden_size=80, num_attention_heads=5, num_key_value_heads=1, head_dim=24, attention_bias=True, mlp_bias=True),
                        dict(rope_theta=100.0)),
    "llama-linear-tied": (llama(rope_scaling=dict(type="linear", factor=4.0), tie_word_embeddings=True), dict(rope_scaling=None)),
    "llama3": (llama(rope_scaling=LLAMA3), dict(rope_scaling=None)),
    "llama-yarn": (llama(rope_scaling={**YARN, "mscale": 0.7, "mscale_all_dim": 1.1}), dict(rope_scaling=YARN)),
    "llama-bf16": (llama(torch_dtype="bfloat16"), dict(rope_theta=100.0)),
    "llama-f16": (llama(torch_dtype="float16"), dict(rope_theta=100.0)),
    "mistral": (config("mistral", "MistralForCausalLM", rope_theta=1e4, sliding_window=5), dict(sliding_window=None)),
    "qwen2": (config("qwen2", "Qwen2ForCausalLM", rope_parameters=dict(rope_type="default", rope_theta=1e5), head_dim=None,
                     num_attention_heads=4, use_sliding_window=True, sliding_window=4, max_window_layers=1),
              dict(use_sliding_window=False)),
    "qwen3": (qwen3(), dict(rope_theta=100.0)),
    "qwen3-yarn": (qwen3(rope_scaling=YARN, tie_word_embeddings=True), dict(rope_scaling=None)),
    "phi3": (phi3(sliding_window=6, partial_rotary_factor=0.5), dict(partial_rotary_factor=1.0)),
    "phi3-longrope": (phi3(original_max_position_embeddings=8,
                           rope_scaling=dict(type="longrope", short_factor=[1.0] * 8, long_factor=[1.0 + 0.4 * i for i in range(8)])),
                      dict(rope_scaling=None)),
    "gemma": (gemma(1), dict(rope_theta=100.0)),
    "gemma2": (gemma(2, sliding_window=4, query_pre_attn_scalar=20, attn_logit_softcapping=3.0, final_logit_softcapping=5.0),
               dict(attn_logit_softcapping=None)),
    "gemma3": (gemma(3, num_hidden_layers=4, sliding_window=4, query_pre_attn_scalar=20, rope_local_base_freq=1e3,
                     rope_scaling=dict(rope_type="linear", factor=8.0),
                     layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"]),
               dict(rope_local_base_freq=1e6)),
    "gemma3-pattern": (gemma(3, num_hidden_layers=7, sliding_window=4, query_pre_attn_scalar=16, head_dim=8,
                             rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=1e5),
                                                  sliding_attention=dict(rope_type="default", rope_theta=1e3))),
                       dict(sliding_window=64)),
    "qwen3-moe": (config("qwen3_moe", "Qwen3MoeForCausalLM", rope_theta=1e6, hidden_act="silu", num_experts=6, num_experts_per_tok=3,
                         moe_intermediate_size=64, norm_topk_prob=True, mlp_only_layers=[0], torch_dtype="bfloat16"),
                  dict(norm_topk_prob=False)),
    "mixtral": (config("mixtral", "MixtralForCausalLM", rope_theta=1e4, hidden_act="silu", num_local_experts=5, num_experts_per_tok=2,
                       sliding_window=None, head_dim=None, torch_dtype="bfloat16"), dict(num_experts_per_tok=1)),
    "deepseek-v2": (deepseek(2, q_lora_rank=48, n_shared_experts=2, topk_method="group_limited_greedy", n_group=4, topk_group=2,
                             routed_scaling_factor=1.7), dict(topk_group=4)),
    "deepseek-v2-lite": (deepseek(2, q_lora_rank=None, n_shared_experts=1, rope_scaling={**YARN, "mscale": 0.7, "mscale_all_dim": 0.7}),
                         dict(rope_scaling=YARN)),
    "deepseek-v3": (deepseek(3, q_lora_rank=48, n_shared_experts=1, n_group=4, topk_group=2, routed_scaling_factor=2.5,
                             rope_scaling={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}), dict(norm_topk_prob=False)),
    "deepseek-v3-dense": (deepseek(3, q_lora_rank=None, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=3,
                                   torch_dtype="float32"), dict(rope_interleave=False)),
}


class Draw:
    """Numbers in (-1, 1), the same on every machine."""

    def __init__(self, seed):
        self.bits = np.random.PCG64(seed)

    def __call__(self, *shape, scale=1.0):
        raw = self.bits.random_raw(int(np.prod(shape))) >> np.uint64(40)
        return ((raw.astype(np.float64) / 2**23 - 1) * scale).reshape(shape).astype(np.float32)

    def integers(self, below, *shape):
        return (self.bits.random_raw(int(np.prod(shape))) % np.uint64(below)).astype(np.int64).reshape(shape)


def headSize(settings):
    return settings.get("head_dim") or settings["hidden_size"] // settings["num_attention_heads"]


def shapes(settings):
    """{name: shape} of every tensor, as transformers' model of that class has them."""
    hidden, inner, size = settings["hidden_size"], settings["intermediate_size"], headSize(settings)
    q, kv = settings["num_attention_heads"] * size, settings["num_key_value_heads"] * size
    kind = settings["model_type"]
    found = {"model.embed_tokens.weight": (settings["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not settings["tie_word_embeddings"]:
        found["lm_head.weight"] = (settings["vocab_size"], hidden)
    for i in range(settings["num_hidden_layers"]):
        layer = {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,), "self_attn.o_proj": (hidden, q),
                 "mlp.down_proj": (hidden, inner)}
        if kind == "phi3":
            layer.update({"self_attn.qkv_proj": (q + 2 * kv, hidden), "mlp.gate_up_proj": (2 * inner, hidden)})
        else:
            layer.update({"self_attn.q_proj": (q, hidden), "self_attn.k_proj": (kv, hidden), "self_attn.v_proj": (kv, hidden),
                          "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden)})
        if kind == "mixtral" or (kind == "qwen3_moe" and i not in settings["mlp_only_layers"]):
            block, names = ("block_sparse_moe", "w1 w3 w2") if kind == "mixtral" else ("mlp", "gate_proj up_proj down_proj")
            own = settings.get("moe_intermediate_size", inner)
            layer = {name: shape for name, shape in layer.items() if not name.startswith("mlp.")}
            layer[f"{block}.gate"] = (settings.get("num_experts") or settings["num_local_experts"], hidden)
            for expert in range(layer[f"{block}.gate"][0]):
                for name, shape in zip(names.split(), ((own, hidden), (own, hidden), (hidden, own))):
                    layer[f"{block}.experts.{expert}.{name}"] = shape
        if kind in ("gemma2", "gemma3_text"):
            layer.update({"pre_feedforward_layernorm": (hidden,), "post_feedforward_layernorm": (hidden,)})
        if kind in ("qwen3", "qwen3_moe", "gemma3_text"):
            layer.update({"self_attn.q_norm": (size,), "self_attn.k_norm": (size,)})
        if kind.startswith("deepseek"):
            layer = deepseekLayer(settings, i)
            if kind == "deepseek_v3" and "mlp.gate" in layer:
                found[f"model.layers.{i}.mlp.gate.e_score_correction_bias"] = (settings["n_routed_experts"],)
        for name, shape in layer.items():
            found[f"model.layers.{i}.{name}.weight"] = shape
            part = name.rsplit(".", 1)[-1]
            if (part in ("q_proj", "k_proj", "v_proj") and (kind == "qwen2" or settings.get("attention_bias"))) or \
                    (part == "o_proj" and settings.get("attention_bias")) or \
                    (part in ("gate_proj", "up_proj", "down_proj") and settings.get("mlp_bias")):
                found[f"model.layers.{i}.{name}.bias"] = shape[:1]
    return found


def deepseekLayer(settings, index):
    hidden, heads, rank, queryRank = (settings[key] for key in ("hidden_size", "num_attention_heads", "kv_lora_rank", "q_lora_rank"))
    plain, rotated, value = (settings[key] for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    queries = heads * (plain + rotated)
    layer = {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,), "self_attn.kv_a_proj_with_mqa": (rank + rotated, hidden),
             "self_attn.kv_a_layernorm": (rank,), "self_attn.kv_b_proj": (heads * (plain + value), rank),
             "self_attn.o_proj": (hidden, heads * value)}
    if queryRank:
        layer |= {"self_attn.q_a_proj": (queryRank, hidden), "self_attn.q_a_layernorm": (queryRank,),
                  "self_attn.q_b_proj": (queries, queryRank)}
    else:
        layer["self_attn.q_proj"] = (queries, hidden)

    def feedForward(name, inner):
        return {f"{name}.gate_proj": (inner, hidden), f"{name}.up_proj": (inner, hidden), f"{name}.down_proj": (hidden, inner)}

    if index < settings["first_k_dense_replace"]:
        return layer | feedForward("mlp", settings["intermediate_size"])
    inner = settings["moe_intermediate_size"]
    layer["mlp.gate"] = (settings["n_routed_experts"], hidden)
    layer |= feedForward("mlp.shared_experts", inner * settings["n_shared_experts"])
    for expert in range(settings["n_routed_experts"]):
        layer |= feedForward(f"mlp.experts.{expert}", inner)
    return layer


def tensors(settings, seed):
    draw = Draw(seed)
    made = {}
    for name, shape in shapes(settings).items():
        if "norm" in name:
            made[name] = (0 if settings["model_type"].startswith("gemma") else 1) + draw(*shape, scale=0.4)
        elif name.endswith("bias"):
            made[name] = draw(*shape, scale=0.3)
        else:  # rows of length about 1.7: attention sees differences, activations neither vanish nor explode
            made[name] = draw(*shape, scale=3.0 / shape[-1] ** 0.5 if "embed" not in name else 1.0)
    kind = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[settings["torch_dtype"]]
    return {name: value.astype(kind) for name, value in made.items()}


def writeSafeTensors(path, values):
    header, at = {}, 0
    for name, value in values.items():
        header[name] = {"dtype": NAMES[value.dtype], "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in values.values():
            file.write(np.ascontiguousarray(value).tobytes())


def tokenizer():
    """A byte-level vocabulary of single characters; the models never see text."""
    vocabulary = {chr(33 + i): i for i in range(VOCABULARY - 2)}
    special = [dict(id=VOCABULARY - 2 + i, content=text, special=True) for i, text in enumerate(["<s>", "</s>"])]
    return {"version": "1.0", "added_tokens": special, "normalizer": None, "post_processor": None, "decoder": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}


def writeFolder(folder, settings, values, files=1):
    """A checkpoint; its tensors in `files` files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    if files == 1:
        return writeSafeTensors(folder / "model.safetensors", values)
    names = list(values)
    weightMap = {}
    for part in range(files):
        name = f"model-{part + 1:05}-of-{files:05}.safetensors"
        own = names[part::files]
        writeSafeTensors(folder / name, {key: values[key] for key in own})
        weightMap.update({key: name for key in own})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weightMap}))


def write(folder, name, files=1):
    settings, _ = CASES[name]
    writeFolder(folder, settings, tensors(settings, list(CASES).index(name)), files)


def feeds(settings, pageSize=8):
    """The plan's inputs for the whole prompt as one step."""
    rows, layers = len(PROMPT), settings["num_hidden_layers"]
    pages = -(-rows // pageSize)
    values = {"tokens": PROMPT, "positions": range(rows), "query_offsets": [0, rows], "sequence_lengths": [rows],
              "block_table": [list(range(pages))], "logit_rows": ROWS}
    values = {name: np.array(value, np.int32) for name, value in values.items()}
    if settings["model_type"].startswith("deepseek"):
        size = settings["kv_lora_rank"] + settings["qk_rope_head_dim"]
        return values | {f"key_cache.{i}": np.zeros((pages, 1, pageSize, size), np.float32) for i in range(layers)}
    cache = np.zeros((pages, settings["num_key_value_heads"], pageSize, headSize(settings)), np.float32)
    return values | {f"{kind}_cache.{i}": cache for kind in ("key", "value") for i in range(layers)}

"""Language models as onnxruntime-genai's model builder and optimum-onnx write them: with past keys and values, from checkpoints
with random weights."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import tokenizers
import torch
import transformers

from . import text

GENAI = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**text.GROUPED)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**text.GROUPED)),
    "phi3": lambda: transformers.Phi3ForCausalLM(transformers.Phi3Config(**text.GROUPED, pad_token_id=0, original_max_position_embeddings=512)),
    "gemma": lambda: transformers.GemmaForCausalLM(transformers.GemmaConfig(**text.GROUPED, head_dim=32)),
}
OPTIMUM = {
    "gpt2": (text.gpt2, "text-generation-with-past"),
    "llama": (text.llama, "text-generation-with-past"),
    "t5": (text.t5, "text2text-generation-with-past"),
    "bert": (lambda: transformers.BertForSequenceClassification(transformers.BertConfig(**text.BERT)), "text-classification"),
}


def checkpoint(model, folder):
    """A Hugging Face folder; the tokenizer is there because builders copy it."""
    model.eval().save_pretrained(folder)
    words = tokenizers.models.WordLevel({f"w{k}": k for k in range(text.WORDS)}, unk_token="w0")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), unk_token="w0", bos_token="w1",
                                         eos_token="w2").save_pretrained(folder)


def seeded(make):
    torch.manual_seed(7)
    return make()


def genai(make, precision, folder):
    """Writes folder/model.onnx."""
    with tempfile.TemporaryDirectory() as place:
        checkpoint(seeded(make), place)
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", place, "-o", str(folder), "-p", precision, "-e", "cpu",
                   "-c", place]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["the model builder failed"])[-1])


def optimum(make, task, folder):
    """Writes one or more models into `folder`: model.onnx, or encoder_model.onnx, decoder_model_merged.onnx and so on."""
    from optimum.exporters.onnx import onnx_export_from_model

    with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
        onnx_export_from_model(seeded(make), output=pathlib.Path(folder), task=task, do_validation=False)


def sizes(value, dims):
    """An input's shape with these symbolic dims; those of other names are 1."""
    return [dims.get(dim.dim_param, 1) if dim.dim_param else dim.dim_value for dim in value.type.tensor_type.shape.dim]


def feeds(path, batch, past, length, padding=2):
    """Inputs by what exporters call them: `length` new tokens behind `past` earlier ones, of which all sequences but the first
    lack `padding`."""
    random, everything = np.random.default_rng(batch + past + length), past + length
    dims = {"batch_size": batch, "batch": batch, "sequence_length": length, "past_sequence_length": past,
            "past_decoder_sequence_length": past, "total_sequence_length": everything, "decoder_sequence_length": length,
            "encoder_sequence_length": 9, "encoder_sequence_length_out": 9, "past_sequence_length + sequence_length": everything,
            "past_sequence_length + 1": everything, "num_logits_to_keep": 1}
    mask = np.ones((batch, everything), np.int64)
    mask[1:, :padding] = 0 if past else 1
    known = {"attention_mask": mask, "position_ids": np.maximum(mask.cumsum(1) - 1, 0)[:, past:], "use_cache_branch": np.array([past > 0])}
    result = {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        shape, kind = sizes(value, dims), onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name == "attention_mask" and shape[1] != everything:  # an encoder's: nothing is past
            result[value.name] = np.ones(shape, kind)
            result[value.name][1:, -padding:] = 0 if shape[1] > padding else 1
        elif value.name in known:
            result[value.name] = known[value.name].astype(kind)
        elif value.name == "encoder_attention_mask" or value.name.endswith("type_ids"):
            result[value.name] = np.full(shape, value.name == "encoder_attention_mask", kind)
        elif np.issubdtype(kind, np.integer):
            result[value.name] = random.integers(3, text.WORDS, shape).astype(kind)
        else:
            result[value.name] = random.standard_normal(shape).astype(kind)
    return result

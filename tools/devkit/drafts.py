"""Tiny random drafts beside a tiny model, in the official layout, and what they compute, by the method's own equations (DSpark,
arXiv 2607.05147: equations 2 to 8; DFlash, 2602.06036; EAGLE-3, 2503.01840). The reference has no caches: blocks of any number are
one packed pass under a mask, as in training, and EAGLE's rows are computed again for each token."""

import numpy as np

from . import checkpoints

TARGET = checkpoints.qwen3(num_hidden_layers=4)
TAPS = [0, 2]
BLOCK, RANK, MASK = 5, 8, 95


def settings(architecture, layers, **more):
    return {**TARGET, "architectures": [architecture], "num_hidden_layers": layers, "target_layer_ids": TAPS,
            "num_target_layers": TARGET["num_hidden_layers"], **more}


def dspark(kind, **more):
    return settings("Qwen3DSparkModel", 2, **{**dict(block_size=BLOCK, mask_token_id=MASK, markov_rank=RANK, markov_head_type=kind,
                                                     enable_confidence_head=True, confidence_head_with_markov=True), **more})


ZLAB = {key: value for key, value in settings("DFlashDraftModel", 2, block_size=BLOCK).items() if key != "target_layer_ids"}
SPECULATORS = dict(architectures=["DSparkDraftModel"], speculators_model_type="dspark", block_size=BLOCK, mask_token_id=MASK,
                   aux_hidden_state_layer_ids=[layer + 1 for layer in TAPS], draft_vocab_size=40, markov_rank=RANK, markov_head_type="vanilla",
                   enable_confidence_head=True, sample_from_anchor=False, transformer_layer_config={**TARGET, "num_hidden_layers": 2})

# A case's place is its seed: new ones come last.
CASES = {
    "vanilla": dspark("vanilla"),
    "gated": dspark("gated"),
    "rnn": dspark("rnn"),
    "confidence-of-rows": dspark("vanilla", confidence_head_with_markov=False),
    "dflash": settings("Qwen3DSparkModel", 2, block_size=BLOCK, mask_token_id=MASK, markov_rank=0, enable_confidence_head=False),
    "dflash-z-lab": {**ZLAB, "dflash_config": dict(target_layer_ids=TAPS, mask_token_id=MASK)},
    "speculators": SPECULATORS,
    "eagle3": settings("Qwen3Eagle3Model", 1),
    "eagle3-own-vocabulary": settings("Qwen3Eagle3Model", 1, draft_vocab_size=40),
}


def layersOf(draft):
    return draft.get("transformer_layer_config", draft)


def isEagle(draft):
    return "Eagle3" in draft["architectures"][0]


def headOf(draft):
    """(kind, rank, whether the confidence sees the token before); kind None without a Markov head."""
    rank = draft.get("markov_rank", 0)
    return (draft.get("markov_head_type", "vanilla") if rank else None), rank, draft.get("confidence_head_with_markov", rank > 0)


def shapes(draft):
    model = layersOf(draft)
    hidden, inner, size = model["hidden_size"], model["intermediate_size"], model["head_dim"]
    q, kv = model["num_attention_heads"] * size, model["num_key_value_heads"] * size
    own = draft.get("draft_vocab_size", model["vocab_size"])
    found = {"fc.weight": (hidden, len(TAPS) * hidden), "norm.weight": (hidden,)}
    if "dflash_config" not in draft:
        found |= {"embed_tokens.weight": (model["vocab_size"], hidden), "lm_head.weight": (own, hidden)}
    if not isEagle(draft):
        found["hidden_norm.weight"] = (hidden,)
    width = 2 * hidden if isEagle(draft) else hidden
    for i in range(model["num_hidden_layers"]):
        layer = {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,), "self_attn.q_proj": (q, width),
                 "self_attn.k_proj": (kv, width), "self_attn.v_proj": (kv, width), "self_attn.o_proj": (hidden, q), "self_attn.q_norm": (size,),
                 "self_attn.k_norm": (size,), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}
        if isEagle(draft):
            layer["hidden_norm"] = (hidden,)
        found |= {f"layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    kind, rank, sees = headOf(draft)
    if kind:
        found |= {"markov_head.markov_w1.weight": (model["vocab_size"], rank), "markov_head.markov_w2.weight": (own, rank)}
    if kind == "gated":
        found |= {"markov_head.gate_proj.weight": (rank, hidden + rank), "markov_head.gate_proj.bias": (rank,)}
    if kind == "rnn":
        found |= {"markov_head.joint_proj.weight": (3 * rank, 2 * rank + hidden), "markov_head.joint_proj.bias": (3 * rank,)}
    if draft.get("enable_confidence_head"):
        found |= {"confidence_head.proj.weight": (1, hidden + (rank if sees else 0)), "confidence_head.proj.bias": (1,)}
    return found


def tensors(draft, seed):
    draw = checkpoints.Draw(1000 + seed)
    made = {}
    for name, shape in shapes(draft).items():
        if "norm" in name:
            made[name] = 1 + draw(*shape, scale=0.4)
        elif name.endswith("bias"):
            made[name] = draw(*shape, scale=0.3)
        else:
            made[name] = draw(*shape, scale=1.0 if "embed" in name or "w1" in name else 3.0 / shape[-1] ** 0.5)
    if (own := draft.get("draft_vocab_size")):
        made["d2t"] = np.arange(own, dtype=np.int64) * 96 // own - np.arange(own)
    return made


def certain(kind, **more):
    """(tensors of a model, settings and tensors of a draft): the model's next token depends on the last one alone, and the draft
    knows it. Layers add nothing; with a Markov head of full rank every draft is right, without one those of the anchor's row."""
    model = checkpoints.tensors(TARGET, 78)
    draft = dspark(kind, markov_rank=TARGET["hidden_size"], confidence_head_with_markov=False, **more) if kind else \
        settings("Qwen3DSparkModel", 2, block_size=BLOCK, mask_token_id=MASK, markov_rank=0, enable_confidence_head=False, **more)
    values = tensors(draft, 60)
    for made in (model, values):
        for name in made:
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                made[name] = np.zeros_like(made[name])
    embedding, head = model["model.embed_tokens.weight"], model["lm_head.weight"]
    values |= {"embed_tokens.weight": embedding.copy(), "lm_head.weight": head, "norm.weight": model["model.norm.weight"]}
    values["embed_tokens.weight"][MASK] = 0
    if kind:
        rows = embedding / np.sqrt((embedding**2).mean(-1, keepdims=True) + TARGET["rms_norm_eps"]) * model["model.norm.weight"]
        values |= {"markov_head.markov_w1.weight": rows.astype(np.float32), "markov_head.markov_w2.weight": head}
    return model, draft, values


def write(folder, name):
    draft = CASES[name]
    values = tensors(draft, list(CASES).index(name))
    checkpoints.writeFolder(folder, draft, values)
    return draft, values


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Draft:
    """The network in numbers of `kind`; `target` has the tensors that the draft does not."""

    def __init__(self, draft, values, target, kind):
        self.draft, self.model, self.kind = draft, layersOf(draft), kind
        self.w = {name: value.astype(kind) if value.dtype != np.int64 else value for name, value in values.items()}
        for name, own in (("embed_tokens.weight", "model.embed_tokens.weight"), ("lm_head.weight", "lm_head.weight")):
            self.w.setdefault(name, target[own].astype(kind))
        self.isAnchorFirst = draft.get("sample_from_anchor", "dflash_config" not in draft)

    def rms(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.kind(self.model["rms_norm_eps"])) * self.w[name + ".weight"]

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def turn(self, x, positions):
        half = x.shape[-1] // 2
        frequencies = self.model["rope_theta"] ** (-np.arange(half) / half)
        angle = (np.array(positions)[:, None] * frequencies)[:, None].astype(self.kind)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)

    def heads(self, x, layer, part, positions=None):
        y = self.linear(x, f"{layer}self_attn.{part}_proj").reshape(len(x), -1, self.model["head_dim"])
        return y if positions is None else self.turn(self.rms(y, f"{layer}self_attn.{part}_norm"), positions)

    def attend(self, layer, q, k, v, mask):
        group = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / self.kind(self.model["head_dim"] ** 0.5)
        scores = np.where(mask, scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.einsum("hqk,khd->qhd", scores / scores.sum(-1, keepdims=True), v)
        return self.linear(y.reshape(len(q), -1), f"{layer}self_attn.o_proj")

    def feedForward(self, layer, h):
        x = self.rms(h, f"{layer}post_attention_layernorm")
        gate = self.linear(x, f"{layer}mlp.gate_proj")
        return h + self.linear(gate * sigmoid(gate) * self.linear(x, f"{layer}mlp.up_proj"), f"{layer}mlp.down_proj")

    def allTokens(self, logits):
        if "d2t" not in self.w:
            return logits
        wide = np.full((*logits.shape[:-1], self.model["vocab_size"]), -np.inf)
        wide[..., np.arange(len(self.w["d2t"])) + self.w["d2t"]] = logits
        return wide

    # --- block drafts ---

    def blocks(self, states, anchors):
        """Base logits and rows before the output [anchors, drafts, ..], of blocks that begin at (position, token)."""
        size, states = self.draft["block_size"], states.astype(self.kind)
        context = self.rms(self.linear(states, "fc"), "hidden_norm")
        tokens = [token for _, anchor in anchors for token in [anchor] + [self.mask()] * (size - 1)]
        positions = [p + row for p, _ in anchors for row in range(size)]
        block = np.repeat(np.arange(len(anchors)), size)
        begins = np.array([p for p, _ in anchors])[block]
        mask = np.concatenate([np.arange(len(states)) < begins[:, None], block[:, None] == block], 1)
        all = list(range(len(states))) + positions
        h = self.w["embed_tokens.weight"][tokens]
        for i in range(self.model["num_hidden_layers"]):
            layer = f"layers.{i}."
            x = self.rms(h, layer + "input_layernorm")
            both = np.concatenate([context, x])
            h = h + self.attend(layer, self.heads(x, layer, "q", positions), self.heads(both, layer, "k", all), self.heads(both, layer, "v"), mask)
            h = self.feedForward(layer, h)
        h = self.rms(h, "norm").reshape(len(anchors), size, -1)[:, 0 if self.isAnchorFirst else 1:]
        return self.linear(h, "lm_head"), h

    def mask(self):
        return self.draft.get("dflash_config", self.draft)["mask_token_id"]

    def head(self, previous, base, h, state):
        """Logits, the confidence's logit (None without) and the state of a row behind the token `previous`."""
        kind, rank, sees = headOf(self.draft)
        e = self.w["markov_head.markov_w1.weight"][previous] if kind else np.zeros(0, self.kind)
        if kind == "gated":
            base = base + self.linear(sigmoid(self.linear(np.concatenate([h, e], -1), "markov_head.gate_proj")) * e, "markov_head.markov_w2")
        elif kind == "rnn":
            z = self.linear(np.concatenate([state, e, h], -1), "markov_head.joint_proj")
            gate, candidate, out = np.split(z, 3, -1)
            state = sigmoid(gate) * state + (1 - sigmoid(gate)) * np.tanh(candidate)
            base = base + self.linear(np.tanh(out), "markov_head.markov_w2")
        elif kind:
            base = base + self.linear(e, "markov_head.markov_w2")
        seen = np.concatenate([h, e], -1) if sees and kind else h
        confidence = self.linear(seen, "confidence_head.proj")[..., 0] if self.draft.get("enable_confidence_head") else None
        return self.allTokens(base), confidence, state

    def draftBlock(self, states, anchor, limit):
        """(tokens, confidences, distances of the two largest logits) of the likeliest draft behind all states."""
        base, h = self.blocks(states, [(len(states), anchor)])
        previous, state, drafted = anchor, np.zeros(self.draft.get("markov_rank", 0), self.kind), []
        for k in range(min(limit, base.shape[1])):
            logits, confidence, state = self.head(previous, base[0, k], h[0, k], state)
            drafted.append(likeliest(logits, confidence))
            previous = drafted[-1][0]
        return drafted

    # --- EAGLE-3 ---

    def features(self, states):
        return self.linear(states.astype(self.kind), "fc")

    def pairs(self, features, tokens):
        """Logits of the target's vocabulary and the next features, of rows (feature i, token i + 1)."""
        positions = range(len(tokens))
        pair = np.concatenate([self.rms(self.w["embed_tokens.weight"][tokens], "layers.0.input_layernorm"), self.rms(features, "layers.0.hidden_norm")], 1)
        mask = np.tri(len(tokens), dtype=bool)
        h = features + self.attend("layers.0.", self.heads(pair, "layers.0.", "q", positions), self.heads(pair, "layers.0.", "k", positions),
                                   self.heads(pair, "layers.0.", "v"), mask)
        h = self.feedForward("layers.0.", h)
        return self.allTokens(self.linear(self.rms(h, "norm"), "lm_head")), h

    def draftPairs(self, states, tokens, limit):
        features, tokens, drafted = self.features(states), list(tokens), []
        for _ in range(limit):
            logits, h = self.pairs(features, tokens)
            drafted.append(likeliest(logits[-1], None))
            features, tokens = np.concatenate([features, h[-1:]]), tokens + [drafted[-1][0]]
        return drafted


def likeliest(logits, confidence):
    """(token, confidence, how far the second logit is behind)."""
    first, second = np.sort(logits)[:-3:-1]
    finite = logits[np.isfinite(logits)]
    sure = sigmoid(confidence) if confidence is not None else 1 / np.exp(finite - finite.max()).sum()
    return int(logits.argmax()), float(sure), float(first - second)

"""DeepSeek-V2 and V3 with a few seeded random layers as GGUF files, and what they compute, in f64: attention as the paper defines
it, with every head's keys and values made from the latent rows."""

import dataclasses

import numpy as np

from . import tiny_decoders


@dataclasses.dataclass
class Tiny(tiny_decoders.Tiny):
    architecture: str = "deepseek2"
    rank: int = 64
    queryRank: int = 0  # 0: none
    plain: int = 32
    value: int = 32
    rotated: int = 16
    isSplit: bool = True  # attn_k_b and attn_v_b, else attn_kv_b
    isSigmoid: bool = False  # and a bias of scores
    groups: int = 1
    usedGroups: int = 1
    scale: float = 1.0
    shared: int = 0  # experts of every row
    yarnFactor: float = 1.0
    logMultiplier: float = 0.0


MODELS = [
    Tiny(queryRank=64, experts=8, used=3, groups=4, usedGroups=2, scale=2.5, shared=1, isSigmoid=True, types=("Q8_0",), tied=False,
         yarnFactor=4.0, logMultiplier=0.1),
    Tiny(experts=6, used=2, scale=1.5, shared=2, isSplit=False, types=("Q4_0",)),
    Tiny(queryRank=32, isSplit=False, types=("F16", "BF16")),
    Tiny(isSplit=False, types=("F32",), heads=5),
]


class Decoder(tiny_decoders.Decoder):
    def buildAttention(self, block):
        t = self.t
        queries = t.heads * (t.plain + t.rotated)
        if t.queryRank:
            self.matrix(block + "attn_q_a", t.queryRank, t.hidden)
            self.vector(block + "attn_q_a_norm", t.queryRank, 1, 0.2)
            self.matrix(block + "attn_q_b", queries, t.queryRank)
        else:
            self.matrix(block + "attn_q", queries, t.hidden)
        self.matrix(block + "attn_kv_a_mqa", t.rank + t.rotated, t.hidden)
        self.vector(block + "attn_kv_a_norm", t.rank, 1, 0.2)
        if t.isSplit:
            self.matrix(block + "attn_k_b", t.rank, t.plain, experts=t.heads)
            self.matrix(block + "attn_v_b", t.value, t.rank, experts=t.heads)
        else:
            self.matrix(block + "attn_kv_b", t.heads * (t.plain + t.value), t.rank)
        self.matrix(block + "attn_output", t.hidden, t.heads * t.value)

    def buildMixture(self, block):
        t = self.t
        super().buildMixture(block)
        if t.isSigmoid:
            self.vector(block + "exp_probs_b.bias", t.experts, 0, 0.3)
        inner = t.shared * t.feedForward
        for name, rows, columns in (("gate", inner, t.hidden), ("up", inner, t.hidden), ("down", t.hidden, inner)):
            self.matrix(f"{block}ffn_{name}_shexp", rows, columns)

    def furtherValues(self):
        t = self.t
        values = {"attention.q_lora_rank": t.queryRank, "leading_dense_block_count": 1 if t.experts else t.layers,
                  "expert_feed_forward_length": t.feedForward, "expert_shared_count": t.shared, "attention.kv_lora_rank": t.rank, "attention.key_length": t.plain + t.rotated, "attention.value_length": t.value,
                  "attention.head_count_kv": t.heads}
        if t.isSplit:
            values |= {"attention.key_length": t.rank + t.rotated, "attention.value_length": t.rank, "attention.head_count_kv": 1,
                       "attention.key_length_mla": t.plain + t.rotated, "attention.value_length_mla": t.value}
        if t.experts:
            values |= {"expert_gating_func": 2 if t.isSigmoid else 1, "expert_weights_norm": t.isSigmoid, "expert_weights_scale": t.scale,
                       "expert_group_count": t.groups, "expert_group_used_count": t.usedGroups}
        if t.yarnFactor != 1:
            values |= {"rope.scaling.type": "yarn", "rope.scaling.factor": t.yarnFactor, "rope.scaling.original_context_length": 64,
                       "rope.scaling.yarn_log_multiplier": t.logMultiplier}
        return {f"{t.architecture}.{key}": value for key, value in values.items()}

    def cacheShapes(self):
        return {f"key.{layer}": (1, self.t.rank + self.t.rotated) for layer in range(self.t.layers)}

    def frequencies(self):
        """Yarn (Peng et al. 2023): pairs that turn more than 32 times in the original context stay, those below one are stretched."""
        t = self.t
        plain = t.ropeBase ** (-np.arange(0, t.rotated, 2) / t.rotated)
        if t.yarnFactor == 1:
            return plain
        pairOf = lambda turns: t.rotated * np.log(64 / (turns * 2 * np.pi)) / (2 * np.log(t.ropeBase))
        low, high = max(np.floor(pairOf(32)), 0), min(np.ceil(pairOf(1)), t.rotated - 1)
        share = np.clip((np.arange(t.rotated // 2) - low) / (high - low), 0, 1)
        return plain / t.yarnFactor * share + plain * (1 - share)

    def turn(self, x):
        angle = np.arange(len(x))[:, None, None] * self.frequencies()
        first, second = x[..., 0::2], x[..., 1::2]
        turned = [first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)]
        return np.stack(turned, axis=-1).reshape(x.shape)

    def attention(self, x, layer):
        t, block, rows = self.t, f"blk.{layer}.", len(x)
        q = self.norm(self.product(x, block + "attn_q_a"), block + "attn_q_a_norm") if t.queryRank else x
        q = self.product(q, block + ("attn_q_b" if t.queryRank else "attn_q")).reshape(rows, t.heads, -1)
        low, turned = np.split(self.product(x, block + "attn_kv_a_mqa"), [t.rank], axis=1)
        low = self.norm(low, block + "attn_kv_a_norm")
        if t.isSplit:
            k = np.einsum("rc,hcp->rhp", low, self.w[block + "attn_k_b"].astype(np.float64).reshape(t.heads, t.rank, t.plain))
            v = np.einsum("rc,hvc->rhv", low, self.w[block + "attn_v_b"].astype(np.float64).reshape(t.heads, t.value, t.rank))
        else:
            k, v = np.split(self.product(low, block + "attn_kv_b").reshape(rows, t.heads, -1), [t.plain], axis=2)
        turned = np.repeat(self.turn(turned[:, None]), t.heads, axis=1)
        scores = np.einsum("qhd,khd->hqk", q[..., :t.plain], k) + np.einsum("qhd,khd->hqk", self.turn(q[..., t.plain:]), turned)
        scores *= (1 + t.logMultiplier * np.log(t.yarnFactor))**2 / np.sqrt(t.plain + t.rotated)
        scores[:, np.triu(np.ones((rows, rows), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return self.product(np.einsum("hqk,khd->qhd", weights, v).reshape(rows, -1), block + "attn_output")

    def route(self, logits, block):
        t = self.t
        if not t.isSigmoid:
            scores = choice = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        else:
            scores = 1 / (1 + np.exp(-logits))
            choice = scores + self.w[block + "exp_probs_b.bias"]
        perGroup = np.sort(choice.reshape(t.groups, -1), axis=1)[:, ::-1]
        order = np.argsort(-perGroup[:, :2 if t.isSigmoid else 1].sum(1), kind="stable")
        choice = choice.reshape(t.groups, -1).copy()
        choice[order[t.usedGroups:]] = -np.inf
        best = np.argsort(-choice.ravel(), kind="stable")[:t.used]
        shares = scores[best] / scores[best].sum() if t.isSigmoid else scores[best]
        return best, shares * t.scale

    def mixtureOf(self, x, layer):
        block = f"blk.{layer}."
        gate = self.product(x, block + "ffn_gate_shexp")
        opened = gate / (1 + np.exp(-gate)) * self.product(x, block + "ffn_up_shexp")
        return super().mixtureOf(x, layer) + self.product(opened, block + "ffn_down_shexp")

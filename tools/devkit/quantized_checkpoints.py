"""Tiny models whose linear layers are in few bits, in each form that the compiler reads, beside the same weights written out.

Forms as their writers have them: AutoGPTQ's qlinear_cuda, AutoAWQ's gemm.py, compressed-tensors' pack_quantized.py, and the fine-
grained FP8 of transformers' integrations/finegrained_fp8.py."""

import ml_dtypes
import numpy as np

from .checkpoints import CASES as ARCHITECTURES
from .checkpoints import Draw, tensors

GROUP = 32
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def words(codes, bits, axis, order=None):
    """Codes along the axis in 32-bit words, lowest bits first; `order` says which of a word's codes comes when."""
    codes = np.moveaxis(codes.astype(np.uint64), axis, -1)
    if 32 % bits:  # a dense stream, whose codes may lie in two words
        stream = (codes[..., None] >> np.arange(bits, dtype=np.uint64)) & np.uint64(1)
        stream = stream.reshape(*codes.shape[:-1], -1, 32)
        packed = (stream << np.arange(32, dtype=np.uint64)).sum(-1)
    else:
        per = 32 // bits
        codes = codes.reshape(*codes.shape[:-1], -1, per)[..., order or list(range(per))]
        packed = (codes << (np.arange(per, dtype=np.uint64) * np.uint64(bits))).sum(-1)
    return np.ascontiguousarray(np.moveaxis(packed.astype(np.uint32).view(np.int32), -1, axis))


def drawn(draw, n, k, bits, group, kind=np.float16):
    """Codes [n, k], zeros [n, groups], scales [n, groups] that keep rows at a length of about 1.5."""
    groups = -(-k // group)
    codes = draw.integers(2**bits, n, k)
    zeros = np.clip(2 ** (bits - 1) + draw.integers(3, n, groups) - 1, 1, 2**bits - 1)
    scales = ((1 + 0.5 * draw(n, groups)) * 5 / 2**bits / k**0.5).astype(kind)
    return codes, zeros, scales


def written(codes, zeros, scales, group):
    return (scales.astype(np.float32)[:, group] * (codes - zeros[:, group]).astype(np.float32)).astype(np.float32)


def gptq(bits, scattered=False, version=1):
    def make(draw, n, k):
        codes, zeros, scales = drawn(draw, n, k, bits, GROUP)
        group = np.arange(k) // GROUP
        if scattered:
            group = group[np.argsort(draw(k), kind="stable")]
        stored = (zeros - (version == 1)) % 2**bits
        parts = {"qweight": words(codes.T, bits, 0), "qzeros": words(stored.T, bits, 1),
                 "scales": np.ascontiguousarray(scales.T), "g_idx": group.astype(np.int32)}
        return parts, written(codes, zeros, scales, group)

    return dict(quant_method="gptq", bits=bits, group_size=GROUP, desc_act=scattered, sym=False,
                checkpoint_format="gptq" if version == 1 else "gptq_v2"), make


def awq():
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def make(draw, n, k):
        codes, zeros, scales = drawn(draw, n, k, 4, GROUP)
        parts = {"qweight": words(codes.T, 4, 1, order), "qzeros": words(zeros.T, 4, 1, order),
                 "scales": np.ascontiguousarray(scales.T)}
        return parts, written(codes, zeros, scales, np.arange(k) // GROUP)

    return dict(quant_method="awq", bits=4, group_size=GROUP, zero_point=True, version="gemm"), make


def compressed(form, bits, strategy="group", symmetric=True):
    def make(draw, n, k):
        group = GROUP if strategy == "group" else k
        codes, zeros, scales = drawn(draw, n, k, bits, group, ml_dtypes.bfloat16)
        if symmetric:
            zeros[:] = 2 ** (bits - 1)
        parts = {"weight_scale": scales, "weight_shape": np.array([n, k], np.int64)}
        if form == "pack-quantized":
            parts["weight_packed"] = words(codes, bits, 1)
            if not symmetric:
                parts["weight_zero_point"] = words(zeros, bits, 0)
        else:
            parts["weight"] = (codes - 128).astype(np.int8)
        return parts, written(codes, zeros, scales, np.arange(k) // group)

    weights = dict(num_bits=bits, type="int", strategy=strategy, symmetric=symmetric, group_size=GROUP if strategy == "group" else None)
    return dict(quant_method="compressed-tensors", format=form,
                config_groups=dict(group_0=dict(targets=["Linear"], weights=weights)), ignore=["lm_head"]), make


def float8(form, scale, exact):
    """`scale`: block, row or tensor; exact: scales that leave products exact in bf16."""

    def make(draw, n, k):
        codes = (draw(n, k) * 200).astype(ml_dtypes.float8_e5m2 if form == "e5m2" else ml_dtypes.float8_e4m3fn)
        shape = {"block": (-(-n // 32), -(-k // 32)), "row": (n, 1), "tensor": (1,)}[scale]
        scales = ((1 + 0.5 * draw(*shape)) * 1.5 / 115 / k**0.5).astype(np.float32)
        if exact:
            scales = (2 ** np.round(np.log2(scales))).astype(np.float32)
        wide = scales if scale != "block" else np.repeat(np.repeat(scales, 32, 0)[:n], 32, 1)[:, :k]
        parts = {"weight": codes, "weight_scale_inv" if scale == "block" else "weight_scale": scales}
        return parts, codes.astype(np.float32) * wide

    return dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[32, 32]), make


CASES = {
    "gptq-4": gptq(4),
    "gptq-8-scattered": gptq(8, scattered=True),
    "gptq-3": gptq(3),
    "gptq-2-v2": gptq(2, version=2),
    "awq": awq(),
    "compressed-4": compressed("pack-quantized", 4),
    "compressed-4-zeros": compressed("pack-quantized", 4, symmetric=False),
    "compressed-8-row": compressed("pack-quantized", 8, "channel"),
    "compressed-bytes": compressed("int-quantized", 8, "channel"),
    "float8-blocks": float8("e4m3", "block", exact=False),
    "float8-rows-exact": float8("e4m3", "row", exact=True),
    "float8-tensor-e5m2": float8("e5m2", "tensor", exact=False),
    "float8-blocks-experts": float8("e4m3", "block", exact=False),
}


def architecture(name):
    """Whose layers are in few bits; its case in checkpoints.py."""
    return "qwen3-moe" if name.endswith("-experts") else "llama"


def make(name):
    """(config, tensors, the same tensors in f32)."""
    quantization, form = CASES[name]
    seed = 1000 + list(CASES).index(name)
    plain = {**ARCHITECTURES[architecture(name)][0], "torch_dtype": "float32"}
    values, dense, draw = {}, tensors(plain, seed), Draw(seed)
    for key, value in dense.items():
        base = key.removesuffix(".weight")
        if not base.endswith(LINEAR):
            values[key] = value
            continue
        parts, dense[key] = form(draw, *value.shape)
        values.update({f"{base}.{part}": array for part, array in parts.items()})
    return {**plain, "quantization_config": quantization}, values, dense

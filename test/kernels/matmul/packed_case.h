// What the tests of packed weights share: all layouts, random blocks in them and the weights that they stand
// for.
#pragma once
#include "kernels/common/numeric.h"
#include "kernels/matmul/packed.h"
#include "runtime/format/PackedBits.h"
#include "test/kernels/kernel_case.h"

namespace dspark::test {

inline constexpr double kEps = 1.0 / (1 << 24);

/// The rows that take every layout and arithmetic.
inline std::vector<const Kernel *> packedRows() {
  std::vector<const Kernel *> rows = rowsOf("matmul");
  std::erase_if(rows, [](const Kernel *r) {
    std::string_view name = r->name;
    return !name.starts_with("matmul_packed") || name.starts_with("matmul_packed_bf16");
  });
  return rows;
}

inline constexpr const char *kLayouts[] = {"q4_0",
                                           "q4_1",
                                           "q5_0",
                                           "q5_1",
                                           "q8_0",
                                           "q8_k",
                                           "q2_k",
                                           "q3_k",
                                           "q4_k",
                                           "q5_k",
                                           "q6_k",
                                           "iq4_nl",
                                           "iq4_xs",
                                           "iq1_s",
                                           "iq1_m",
                                           "iq2_xxs",
                                           "iq2_s",
                                           "iq3_xxs",
                                           "iq3_s",
                                           "tq2_0",
                                           "q1_0",
                                           "mxfp4",
                                           "nvfp4",
                                           "int4_g32_f32",
                                           "int4_g128_f16_zp",
                                           "int4_g16_f32_zv",
                                           "int4_g64_bf16_zp",
                                           "int8_grow_f32",
                                           "int8_g32_f32_zv",
                                           "int8_g16_f16_zp",
                                           "int8_g64_f16_zo",
                                           "int3_g64_f16_zp",
                                           "int2_g16_bf16_zp",
                                           "int2_g128_f32",
                                           "int5_g32_f16_zo",
                                           "int5_g16_f32",
                                           "int6_g32_f16",
                                           "int6_g96_f32_zp"};

inline int bitsOf(CodeKind kind) { return int(kCodeLines[int(kind)]); }

// Random blocks, and the weights they stand for, from the definitions of packed_format.h.
class RandomBlocks : public BlockSource {
public:
  RandomBlocks(const PackedFormat &format, int64_t k, uint32_t seed) : format(format), k(k), seed(seed) {}

  void read(int64_t column, int64_t block, BlockValues &v) const override {
    std::mt19937 rng(seed + uint32_t(column * 1009 + block));
    for (uint8_t &code : v.codes)
      code = uint8_t(rng() & ((1u << bitsOf(format.code)) - 1));
    v.factor = f32ToF16(0.01f + 0.001f * float(rng() % 16));
    v.minFactor = f32ToF16(0.02f + 0.001f * float(rng() % 16));
    for (size_t g = 0; g < v.scale.size(); ++g) {
      v.scale[g] = number(rng, 0.02f);
      v.zero[g] = format.zero == ZeroKind::Byte        ? rng() % (1u << bitsOf(format.code))
                  : format.scale == ScaleKind::SuperU8 ? rng() % 64
                  : format.zero == ZeroKind::Value     ? number(rng, 7)
                                                       : number(rng, 0.1f);
    }
  }

  // The weights of one column, and bounds of the magnitudes they are differences of.
  void column(int64_t n, std::vector<double> &weights, std::vector<double> &magnitudes) const {
    BlockValues v;
    v.codes.resize(size_t(format.blockTerms(k)));
    v.scale.resize(size_t(format.groupsPerBlock(k)));
    v.zero.resize(v.scale.size());
    for (int64_t term = 0; term < k; ++term) {
      if (term % format.blockTerms(k) == 0)
        read(n, term / format.blockTerms(k), v);
      weights.push_back(weight(v, term % format.blockTerms(k), magnitudes));
    }
  }

private:
  double weight(const BlockValues &v, int64_t in, std::vector<double> &magnitudes) const {
    size_t g = format.group == 0 ? 0 : size_t(in / format.group) % v.scale.size();
    double q = v.codes[size_t(in)], s, o = 0, z = format.zeroPoint;
    if (hasLevels(format.code))
      q = levelsOf(format.code).of[int(q)] + levelsOf(format.code).zero;
    double d = double(f16ToF32(uint16_t(v.factor))), m = double(f16ToF32(uint16_t(v.minFactor)));
    switch (format.scale) {
    case ScaleKind::SuperI8:
      s = d * int8_t(v.scale[g]);
      break;
    case ScaleKind::SuperEighths:
      s = d * int8_t(v.scale[g]) / 8;
      break;
    case ScaleKind::SuperU8:
      s = d * v.scale[g];
      o = -m * v.zero[g];
      break;
    case ScaleKind::SuperNibbles:
      s = d * (v.scale[g] & 15);
      o = -m * (v.scale[g] >> 4);
      break;
    default:
      s = value(v.scale[g]);
      if (format.zero == ZeroKind::Byte)
        z = v.zero[g];
      else if (format.zero == ZeroKind::Value)
        z = value(v.zero[g]);
      else if (format.zero == ZeroKind::Offset)
        o = value(v.zero[g]);
    }
    magnitudes.push_back(std::fabs(s) * (q + std::fabs(z) + 128) + std::fabs(o));
    return s * (q - z) + o;
  }

  uint32_t number(std::mt19937 &rng, float size) const {
    float x = size * (0.5f + float(rng() % 64) / 64);
    switch (format.scale) {
    case ScaleKind::F32:
      return std::bit_cast<uint32_t>(x);
    case ScaleKind::F16:
      return f32ToF16(x);
    case ScaleKind::BF16:
      return f32ToBf16(x);
    case ScaleKind::E8M0:
      return 118 + rng() % 6;
    default:
      return rng() % 120; // bytes: an f8, or those of a Super kind
    }
  }
  double value(uint32_t bits) const {
    switch (format.scale) {
    case ScaleKind::F32:
      return double(std::bit_cast<float>(bits));
    case ScaleKind::F16:
      return double(f16ToF32(uint16_t(bits)));
    case ScaleKind::BF16:
      return double(bf16ToF32(uint16_t(bits)));
    case ScaleKind::E8M0:
      return std::ldexp(1, int(bits) - 128);
    default: // f8 e4m3, halved
      return bits >> 3 ? std::ldexp(1 + (bits & 7) / 8.0, int(bits >> 3) - 8) : std::ldexp(bits & 7, -10);
    }
  }

  PackedFormat format;
  int64_t k;
  uint32_t seed;
};

inline Tensor packedTensor(DType type, const char *layout, int64_t k, int64_t n, const BlockSource &source,
                           bool isGated = false) {
  PackedFormat format = *PackedFormat::named(layout);
  Tensor t{type, {n, k}, {}};
  t.bytes.assign(size_t(isGated ? *gatedBytes(format, k, n) : *format.bytes(k, n)), std::byte(0xff));
  EXPECT_TRUE(packBlocks(format, k, n, source, t.bytes, isGated).isOk());
  return t;
}

inline AttrList attributes(const char *layout, bool isInt8) {
  AttrList attrs;
  attrs.set("trans_b", 1).set("packed", layout).set("arithmetic", isInt8 ? "int8" : "");
  return attrs;
}

// What the layout holds: its product with the identity.
inline Tensor unpacked(const Kernel &row, const Tensor &packed, const char *layout) {
  int64_t k = packed.dims[1];
  std::vector<Tensor> in = {zeros(DType::F32, {k, k}), packed};
  for (int64_t t = 0; t < k; ++t)
    in[0].as<float>()[t * k + t] = 1;
  return runRow(row, in, attributes(layout, false))[0];
}

} // namespace dspark::test

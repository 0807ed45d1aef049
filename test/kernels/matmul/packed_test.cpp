// matmul with packed weights: every format, arithmetic, row and ISA level. Unpacking is exact: the product
// with the identity is compared bit for bit with what ggml dequantises. Products are compared
// with f64 sums over the same weights and rows; the tolerance is derived at `expectClose`.
#include "kernels/common/numeric.h"
#include "kernels/matmul/packed.h"
#include "kernels/matmul/scalar_activation.h"
#include "runtime/format/PackedBits.h"
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);

std::vector<const Kernel *> packedRows() {
  std::vector<const Kernel *> rows = rowsOf("matmul");
  std::erase_if(rows,
                [](const Kernel *r) { return !std::string_view(r->name).starts_with("matmul_packed"); });
  return rows;
}

constexpr const char *kLayouts[] = {"q4_0",
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

int bitsOf(CodeKind kind) { return int(kCodeLines[int(kind)]); }

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

Tensor packedTensor(DType type, const char *layout, int64_t k, int64_t n, const BlockSource &source,
                    bool isGated = false) {
  PackedFormat format = *PackedFormat::named(layout);
  Tensor t{type, {n, k}, {}};
  t.bytes.assign(size_t(isGated ? *gatedBytes(format, k, n) : *format.bytes(k, n)), std::byte(0xff));
  EXPECT_TRUE(packBlocks(format, k, n, source, t.bytes, isGated).isOk());
  return t;
}

AttrList attributes(const char *layout, bool isInt8) {
  AttrList attrs;
  attrs.set("trans_b", 1).set("packed", layout).set("arithmetic", isInt8 ? "int8" : "");
  return attrs;
}

// What 8-bit rows stand for: codes times their step's scale.
std::vector<float> quantised(const Tensor &a) {
  int64_t k = a.dims[1];
  std::vector<float> rows(a.as<float>(), a.as<float>() + a.elements());
  for (int64_t row = 0; row < a.dims[0]; ++row)
    for (int64_t first = 0; first < k; first += kStepTerms) {
      float amax = 0x1p-100f, *x = rows.data() + row * k + first;
      int64_t count = std::min(kStepTerms, k - first);
      for (int64_t i = 0; i < count; ++i)
        amax = std::max(amax, std::fabs(x[i]));
      for (int64_t i = 0; i < count; ++i)
        x[i] = std::nearbyintf(x[i] * (127.0f / amax)) * (amax / 127.0f);
    }
  return rows;
}

// Every product is rounded at most 3 times and added up in at most k + 8 roundings; a weight itself is
// rounded once where it is a difference. `magnitude` sums what the differences are made of.
void expectClose(const RandomBlocks &blocks, const std::vector<float> &rows, const Tensor &y, int64_t k,
                 const std::string &what) {
  int64_t n = y.dims.back();
  for (int64_t column = 0; column < n; ++column) {
    std::vector<double> w, size;
    blocks.column(column, w, size);
    for (int64_t row = 0; row < y.elements() / n; ++row) {
      double sum = 0, magnitude = 0;
      for (int64_t t = 0; t < k; ++t) {
        double x = double(rows[size_t(row * k + t)]);
        sum += x * w[size_t(t)];
        magnitude += std::fabs(x) * size[size_t(t)];
      }
      ASSERT_NEAR(double(y.as<float>()[row * n + column]), sum, double(k + 12) * kEps * magnitude)
          << what << " row " << row << " column " << column;
    }
  }
}

TEST(Packed, Products) {
  std::mt19937 rng(1);
  for (const char *layout : kLayouts)
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 33, 512}, {3, 16, 256}, {11, 40, 768}, {2, 5, 80}}) {
      PackedFormat format = *PackedFormat::named(layout);
      RandomBlocks blocks(format, k, 7);
      for (bool isInt8 : {false, true}) {
        std::vector<Tensor> in = {uniform({m, k}, rng), packedTensor(DType::F32, layout, k, n, blocks)};
        std::vector<float> rows =
            isInt8 ? quantised(in[0]) : std::vector<float>(in[0].as<float>(), in[0].as<float>() + m * k);
        for (const Kernel *row : packedRows())
          expectClose(blocks, rows, runRow(*row, in, attributes(layout, isInt8))[0], k,
                      std::string(row->name) + " " + layout + (isInt8 ? " int8 " : " ") + std::to_string(k));
      }
    }
}

// The levels differ by fused multiply-adds only: each group's term and offset is rounded once more or less.
// Small, so that it also runs on an emulated CPU.
TEST(Packed, LevelsAgree) {
  std::mt19937 rng(4);
  std::vector<const Kernel *> rows = packedRows();
  for (const char *layout : kLayouts)
    for (int64_t m : {1, 3, 9}) {
      constexpr int64_t kN = 17, kK = 288;
      RandomBlocks blocks(*PackedFormat::named(layout), kK, 5);
      std::vector<Tensor> in = {uniform({m, kK}, rng), packedTensor(DType::F32, layout, kK, kN, blocks)};
      for (bool isInt8 : {false, true}) {
        Tensor want = runRow(*rows.back(), in, attributes(layout, isInt8))[0];
        double size = 0; // of the sums' terms, from above
        for (int64_t n = 0; n < kN; ++n) {
          std::vector<double> w, magnitudes;
          blocks.column(n, w, magnitudes);
          double sum = 0;
          for (double magnitude : magnitudes)
            sum += magnitude;
          size = std::max(size, sum);
        }
        for (const Kernel *row : rows) {
          Tensor y = runRow(*row, in, attributes(layout, isInt8))[0];
          for (int64_t i = 0; i < m * kN; ++i)
            ASSERT_NEAR(double(y.as<float>()[i]), double(want.as<float>()[i]), (kK / 4 + 8) * kEps * size)
                << row->name << " " << layout << (isInt8 ? " int8" : "");
        }
      }
    }
}

// Bit for bit: a row alone, among few, among many; whatever the tiles.
TEST(Packed, RowsDoNotDependOnTheirNumber) {
  std::mt19937 rng(2);
  constexpr int64_t kRows = 150, kTerms = 544, kColumns = 72;
  std::vector<const char *> layouts(std::begin(kLayouts), std::end(kLayouts));
  for (const char *layout : layouts) {
    RandomBlocks blocks(*PackedFormat::named(layout), kTerms, 3);
    std::vector<Tensor> in = {uniform({kRows, kTerms}, rng),
                              packedTensor(DType::F32, layout, kTerms, kColumns, blocks)};
    for (bool isInt8 : {false, true})
      for (const Kernel *row : packedRows()) {
        AttrList attrs = attributes(layout, isInt8);
        Tensor all = runRow(*row, in, attrs)[0];
        EXPECT_EQ(runRow(*row, in, attrs, 1, 1)[0].bytes, all.bytes) << row->name << " " << layout;
        for (auto [first, count] : {std::pair<int64_t, int64_t>{0, 1},
                                    {149, 1},
                                    {7, 2},
                                    {1, 3},
                                    {30, 4},
                                    {4, 5},
                                    {2, 7},
                                    {60, 9},
                                    {0, 17}}) {
          std::vector<Tensor> some = {zeros(DType::F32, {count, kTerms}), in[1]};
          std::memcpy(some[0].bytes.data(), in[0].as<float>() + first * kTerms, some[0].bytes.size());
          Tensor few = runRow(*row, some, attrs)[0];
          EXPECT_EQ(std::memcmp(few.bytes.data(), all.as<float>() + first * kColumns, few.bytes.size()), 0)
              << row->name << " " << layout << (isInt8 ? " int8" : "") << " rows " << count;
        }
      }
  }
}

// --- GGUF ---

struct Golden {
  const char *type;
  int64_t terms, bytes;
  std::vector<size_t> halves; // offsets of f16 fields
  uint64_t hash;
};
const Golden kGolden[] = {
#include "test/kernels/matmul/gguf_golden.inc"
};

// The same blocks that gguf_golden.py makes.
std::vector<std::byte> goldenBlocks(const Golden &golden, int64_t rows, int64_t terms) {
  std::vector<std::byte> bytes(size_t(rows * terms / golden.terms * golden.bytes));
  uint64_t state = 12345;
  for (std::byte &byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = std::byte(state >> 56);
  }
  for (size_t block = 0; block * size_t(golden.bytes) < bytes.size(); ++block) {
    std::byte *at = bytes.data() + block * size_t(golden.bytes);
    for (size_t half : golden.halves)
      at[half + 1] = (at[half + 1] & std::byte(0x83)) | std::byte(0x28);
    if (std::string_view(golden.type) == "iq1_m") {
      at[53] = (at[53] & std::byte(0x0f)) | std::byte(0x80);
      at[55] = (at[55] & std::byte(0x0f)) | std::byte(0x20);
    }
    if (std::string_view(golden.type) == "mxfp4")
      at[0] = block % 2 ? at[0] & std::byte(3) : std::byte(110 + (int(at[0]) & 31));
  }
  return bytes;
}

TEST(Packed, GgufBlocksAreUnpackedExactly) {
  constexpr int64_t kRows = 19, kTerms = 512;
  for (const Golden &golden : kGolden) {
    std::vector<std::byte> source = goldenBlocks(golden, kRows, kTerms);
    Tensor weights{DType::F32, {kRows, kTerms}, {}}, identity = zeros(DType::F32, {kTerms, kTerms});
    weights.bytes.resize(size_t(*PackedFormat::named(golden.type)->bytes(kTerms, kRows)));
    ASSERT_TRUE(packGguf(golden.type, kTerms, kRows, source, weights.bytes).isOk()) << golden.type;
    for (int64_t t = 0; t < kTerms; ++t)
      identity.as<float>()[t * kTerms + t] = 1;
    std::vector<Tensor> in = {identity, weights};
    for (const Kernel *row : packedRows()) {
      Tensor y = runRow(*row, in, attributes(golden.type, false))[0];
      uint64_t hash = 0xcbf29ce484222325u;
      for (int64_t n = 0; n < kRows; ++n)
        for (int64_t t = 0; t < kTerms; ++t) {
          auto bits = std::bit_cast<uint32_t>(y.as<float>()[t * kRows + n]);
          for (int i = 0; i < 4; ++i)
            hash = (hash ^ (bits >> 8 * i & 255)) * 0x100000001b3u;
        }
      EXPECT_EQ(hash, golden.hash) << row->name << " " << golden.type;
    }
  }
}

TEST(Packed, GgufRefusesSizesThatDoNotFit) {
  std::vector<std::byte> out(4096), source(18);
  EXPECT_FALSE(packGguf("q4_0", 33, 1, source, out).isOk());
  EXPECT_FALSE(packGguf("q4_0", 64, 1, source, out).isOk());
  EXPECT_FALSE(packGguf("q9_9", 32, 1, source, out).isOk());
  EXPECT_FALSE(packGguf("q4_0", 32, 1, source, out).isOk());
  EXPECT_FALSE(ggufBytes("q6_k", int64_t(1) << 62, int64_t(1) << 62).isOk());
}

// --- integers in groups ---

void put(std::vector<std::byte> &bytes, size_t bit, unsigned code) {
  for (size_t i = 0; code >> i; ++i)
    bytes[(bit + i) / 8] |= std::byte((code >> i & 1) << (bit + i) % 8);
}

// The same random codes, zeros and scales in each of the source forms.
struct Grouped {
  GroupedWeight weight;
  std::vector<unsigned> codes, zeros; // [n][k], [n][groups]
  std::vector<float> scales;          // [n][groups]
  std::vector<std::byte> codeBytes, zeroBytes, scaleBytes;

  Grouped(GroupedWeight w, uint32_t seed) : weight(w) {
    std::mt19937 rng(seed);
    auto k = size_t(w.k), n = size_t(w.n), groups = (k + size_t(w.group) - 1) / size_t(w.group),
         bits = size_t(w.bits);
    for (size_t i = 0; i < n * k; ++i)
      codes.push_back(unsigned(rng()) & ((1u << bits) - 1));
    for (size_t i = 0; i < n * groups; ++i) {
      zeros.push_back(unsigned(rng()) & ((1u << bits) - 1));
      scales.push_back(float(1 + rng() % 64) / 64);
    }
    bool isNBits = w.form == GroupedWeight::Form::NBits;
    size_t padded = isNBits ? groups * size_t(w.group) : k;
    size_t zeroRow = isNBits ? (groups * bits + 7) / 8 * 8 : 0;
    codeBytes.resize(n * padded * bits / 8);
    zeroBytes.resize(isNBits ? n * zeroRow / 8 : groups * n * bits / 8);
    scaleBytes.resize(n * groups * 2);
    constexpr size_t kNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7}; // AWQ's
    for (size_t c = 0; c < n; ++c) {
      auto awq = [&](size_t row) { return (row * n + c / 8 * 8 + kNibble[c % 8]) * 4; };
      for (size_t t = 0; t < k; ++t) {
        size_t bit = (c * padded + t) * bits, word = t * bits / 32;
        unsigned code = codes[c * k + t];
        if (w.form == GroupedWeight::Form::Awq)
          bit = awq(t);
        for (size_t i = 0; i < bits; ++i, ++bit) {
          if (w.form == GroupedWeight::Form::Gptq) { // words of one column lie n apart
            word = (t * bits + i) / 32;
            bit = (word * n + c) * 32 + (t * bits + i) % 32;
          }
          put(codeBytes, bit, code >> i & 1);
        }
      }
      for (size_t g = 0; g < groups; ++g) {
        unsigned stored = (zeros[c * groups + g] - unsigned(w.zeroShift)) & ((1u << bits) - 1);
        put(zeroBytes,
            isNBits                              ? c * zeroRow + g * bits
            : w.form == GroupedWeight::Form::Awq ? awq(g)
                                                 : (g * n + c) * bits,
            stored);
        size_t at = isNBits ? c * groups + g : g * n + c;
        uint16_t scale = f32ToF16(scales[c * groups + g]);
        std::memcpy(scaleBytes.data() + at * 2, &scale, 2);
      }
    }
  }
  GroupedBytes bytes() const { return {codeBytes, scaleBytes, zeroBytes, {}}; }
  float value(int64_t column, int64_t term, int64_t group) const {
    auto g = size_t(column * ((weight.k + weight.group - 1) / weight.group) + group);
    return float(int(codes[size_t(column * weight.k + term)]) - int(zeros[g])) * scales[g];
  }
};

// What the layout holds: its product with the identity.
Tensor unpacked(const Kernel &row, const Tensor &packed, const char *layout) {
  int64_t k = packed.dims[1];
  std::vector<Tensor> in = {zeros(DType::F32, {k, k}), packed};
  for (int64_t t = 0; t < k; ++t)
    in[0].as<float>()[t * k + t] = 1;
  return runRow(row, in, attributes(layout, false))[0];
}

TEST(Packed, GroupedFormsAreUnpackedExactly) {
  using Form = GroupedWeight::Form;
  struct Shape {
    Form form;
    int bits;
    int64_t group, k, n;
    int shift = 0;
  };
  for (const Shape &s : {Shape{Form::NBits, 4, 32, 96, 21},
                         {Form::NBits, 4, 32, 90, 17},
                         {Form::NBits, 2, 16, 80, 5},
                         {Form::NBits, 8, 64, 100, 16},
                         {Form::Gptq, 4, 32, 128, 24},
                         {Form::Gptq, 3, 64, 192, 32, 1},
                         {Form::Gptq, 2, 32, 64, 16, 1},
                         {Form::Gptq, 8, 128, 256, 20},
                         {Form::Awq, 4, 64, 128, 40}}) {
    Grouped source({s.form, s.bits, s.group, s.k, s.n, DType::F16, true, false, s.shift}, 11);
    StatusOr<std::string> layout = source.weight.layout();
    ASSERT_TRUE(layout.isOk()) << layout.status().message();
    Tensor packed{DType::F32, {s.n, s.k}, {}};
    packed.bytes.resize(size_t(*PackedFormat::named(*layout)->bytes(s.k, s.n)));
    Status status = packGrouped(source.weight, source.bytes(), packed.bytes);
    ASSERT_TRUE(status.isOk()) << status.message();
    for (const Kernel *row : packedRows()) {
      Tensor y = unpacked(*row, packed, layout->c_str());
      for (int64_t n = 0; n < s.n; ++n)
        for (int64_t t = 0; t < s.k; ++t)
          ASSERT_EQ(y.as<float>()[t * s.n + n], source.value(n, t, t / s.group))
              << *layout << " " << n << " " << t;
    }
  }
}

TEST(Packed, ScatteredGroups) {
  constexpr int64_t kTerms = 128, kGroup = 32;
  Grouped source({GroupedWeight::Form::Gptq, 4, kGroup, kTerms, 16, DType::F16, true}, 12);
  std::vector<int32_t> groupOfTerm(kTerms);
  for (int64_t t = 0; t < kTerms; ++t)
    groupOfTerm[size_t(t)] = int32_t(t % 4);
  auto asBytes = [&] { return std::as_bytes(std::span(groupOfTerm)); };
  StatusOr<std::vector<int64_t>> order = groupOrder(asBytes(), kTerms, kGroup);
  ASSERT_TRUE(order.isOk());
  Tensor packed{DType::F32, {16, kTerms}, {}};
  packed.bytes.resize(size_t(*PackedFormat::named("int4_g32_f16_zp")->bytes(kTerms, 16)));
  GroupedBytes bytes = source.bytes();
  bytes.groupOfTerm = asBytes();
  ASSERT_TRUE(packGrouped(source.weight, bytes, packed.bytes).isOk());
  Tensor y = unpacked(*packedRows()[0], packed, "int4_g32_f16_zp");
  for (int64_t place = 0; place < kTerms; ++place)
    for (int64_t n = 0; n < 16; ++n) {
      int64_t term = (*order)[size_t(place)];
      EXPECT_EQ(y.as<float>()[place * 16 + n], source.value(n, term, term % 4));
    }
  groupOfTerm[0] = 1; // 33 terms in one group
  EXPECT_FALSE(groupOrder(asBytes(), kTerms, kGroup).isOk());
  groupOfTerm[0] = -1;
  EXPECT_FALSE(groupOrder(asBytes(), kTerms, kGroup).isOk());
  groupOfTerm[0] = 4;
  EXPECT_FALSE(groupOrder(asBytes(), kTerms, kGroup).isOk());
  EXPECT_FALSE(groupOrder(asBytes(), kTerms + 1, kGroup).isOk());
}

TEST(Packed, GroupedRefusesSizesThatDoNotFit) {
  using Form = GroupedWeight::Form;
  Grouped source({Form::NBits, 4, 32, 96, 21, DType::F16, true}, 13);
  GroupedBytes bytes = source.bytes();
  EXPECT_TRUE(checkGrouped(source.weight, bytes).isOk());
  for (auto change :
       {+[](GroupedWeight &w) { w.k = 128; }, +[](GroupedWeight &w) { w.n = -1; },
        +[](GroupedWeight &w) { w.bits = 5; }, +[](GroupedWeight &w) { w.group = 24; },
        +[](GroupedWeight &w) { w.group = 0; }, +[](GroupedWeight &w) { w.group = INT64_MAX; },
        +[](GroupedWeight &w) { w.k = INT64_MAX; }, +[](GroupedWeight &w) { w.scaleType = DType::I32; },
        +[](GroupedWeight &w) {
          w.n = int64_t(1) << 39;
          w.k = int64_t(1) << 39;
        },
        +[](GroupedWeight &w) { w.form = Form::Gptq; }, +[](GroupedWeight &w) { w.form = Form::Awq; }}) {
    GroupedWeight wrong = source.weight;
    change(wrong);
    EXPECT_FALSE(checkGrouped(wrong, bytes).isOk());
  }
  bytes.zeros = bytes.zeros.first(3);
  EXPECT_FALSE(checkGrouped(source.weight, bytes).isOk());
}

// --- rows ---

std::vector<const Kernel *> rowKernels() { return rowsOf("packed_rows"); }

// Bit for bit what the product sees, for every layout, and so (GgufBlocksAreUnpackedExactly) what the source
// format defines. Every column of a panel and one beyond; K not a multiple of a step.
TEST(PackedRows, AreTheColumnsOfTheProduct) {
  for (const char *layout : kLayouts)
    for (int64_t k : {int64_t(288), int64_t(75), int64_t(1)}) {
      constexpr int64_t kN = 19;
      RandomBlocks blocks(*PackedFormat::named(layout), k, 6);
      Tensor weights = packedTensor(DType::F32, layout, k, kN, blocks);
      Tensor columns = unpacked(*packedRows().back(), weights, layout); // [K, N]
      Tensor order = filled<int32_t>(DType::I32, {2, kN}, [i = 0]() mutable { return i++ * 7 % int(kN); });
      std::vector<Tensor> in = {order, weights};
      for (const Kernel *row : rowKernels()) {
        Tensor y = runRow(*row, in, AttrList().set("packed", layout))[0];
        ASSERT_EQ(y.dims, (std::vector<int64_t>{2, kN, k}));
        for (int64_t t = 0; t < 2 * kN; ++t)
          for (int64_t i = 0; i < k; ++i)
            ASSERT_EQ(y.as<float>()[t * k + i], columns.as<float>()[i * kN + order.as<int32_t>()[t]])
                << row->name << " " << layout << " row " << order.as<int32_t>()[t] << " term " << i;
      }
    }
}

TEST(PackedRows, HalvesAndIndicesOutside) {
  constexpr int64_t kN = 18, kTerms = 45;
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (DType type : {DType::F16, DType::BF16}) {
    const char *layout = type == DType::F16 ? "f16" : "bf16";
    Tensor w = filled<uint16_t>(type, {kN, kTerms}, [&] {
      float x = draw(rng);
      return type == DType::F16 ? f32ToF16(x) : f32ToBf16(x);
    });
    Tensor weights{DType::F32, {kN, kTerms}, {}};
    weights.bytes.resize(size_t(*PackedFormat::named(layout)->bytes(kTerms, kN)));
    ASSERT_TRUE(packHalves(layout, kTerms, kN, true, w.bytes, weights.bytes).isOk());
    std::vector<Tensor> in = {indices({17, 0, -1, -18, 18, -19, INT64_MAX, INT64_MIN, 5}), weights};
    constexpr int64_t kFrom[] = {17, 0, 17, 0, -1, -1, -1, -1, 5};
    for (const Kernel *row : rowKernels()) {
      Tensor y = runRow(*row, in, AttrList().set("packed", layout))[0];
      for (int64_t t = 0; t < int64_t(std::size(kFrom)); ++t)
        for (int64_t i = 0; i < kTerms; ++i) {
          uint16_t bits = kFrom[t] < 0 ? 0 : w.as<uint16_t>()[kFrom[t] * kTerms + i];
          ASSERT_EQ(y.as<float>()[t * kTerms + i], type == DType::F16 ? f16ToF32(bits) : bf16ToF32(bits))
              << row->name << " " << t;
        }
    }
  }
}

TEST(PackedRows, EmptySizes) {
  for (auto [t, n, k] : {std::array<int64_t, 3>{0, 5, 32}, {3, 0, 32}, {3, 5, 0}}) {
    RandomBlocks blocks(*PackedFormat::named("q4_0"), k, 1);
    std::vector<Tensor> in = {zeros(DType::I64, {t}), packedTensor(DType::F32, "q4_0", k, n, blocks)};
    for (const Kernel *row : rowKernels()) {
      Tensor y = runRow(*row, in, AttrList().set("packed", "q4_0"))[0];
      for (int64_t i = 0; n == 0 && i < t * k; ++i)
        EXPECT_EQ(y.as<float>()[i], 0);
    }
  }
}

TEST(PackedRows, ShapesThatDoNotFit) {
  Tensor tokens = zeros(DType::I64, {4}), w = zeros(DType::F32, {8, 32});
  AttrList q4;
  q4.set("packed", "q4_0");
  EXPECT_EQ(refusal("packed_rows", {tokens, w}, q4), "");
  EXPECT_NE(refusal("packed_rows", {tokens, w}, AttrList()), "");
  EXPECT_NE(refusal("packed_rows", {tokens, w}, AttrList().set("packed", "panel16")), "");
  EXPECT_NE(refusal("packed_rows", {zeros(DType::U8, {4}), w}, q4), "");
  EXPECT_NE(refusal("packed_rows", {tokens, zeros(DType::F64, {8, 32})}, q4), "");
  EXPECT_NE(refusal("packed_rows", {tokens, zeros(DType::F32, {8})}, q4), "");
  EXPECT_NE(refusal("packed_rows", {zeros(DType::I64, std::vector<int64_t>(kMaxRank, 1)), w}, q4), "");
}

// --- 16-bit weights ---

TEST(Packed, HalvesAreExact) {
  std::mt19937 rng(5);
  for (DType type : {DType::F16, DType::BF16})
    for (bool isTransposed : {false, true})
      for (auto [m, n, k] : {std::array<int64_t, 3>{1, 37, 100}, {9, 16, 33}}) {
        auto bits = [&](float x) { return type == DType::F16 ? f32ToF16(x) : f32ToBf16(x); };
        auto real = [&](uint16_t b) { return type == DType::F16 ? f16ToF32(b) : bf16ToF32(b); };
        const char *layout = type == DType::F16 ? "f16" : "bf16";
        std::uniform_real_distribution<float> draw(-1, 1);
        Tensor w = filled<uint16_t>(type, {k, n}, [&] { return bits(draw(rng)); });
        Tensor packed{DType::F32, isTransposed ? std::vector{n, k} : std::vector{k, n}, {}};
        packed.bytes.resize(size_t(*PackedFormat::named(layout)->bytes(k, n)));
        ASSERT_TRUE(packHalves(layout, k, n, isTransposed, w.bytes, packed.bytes).isOk());
        AttrList attrs;
        attrs.set("trans_b", isTransposed).set("packed", layout);
        std::vector<Tensor> in = {uniform({m, k}, rng), packed};
        for (const Kernel *row : packedRows()) {
          Tensor y = runRow(*row, in, attrs)[0];
          for (int64_t i = 0; i < m * n; ++i) {
            double sum = 0, magnitude = 0;
            for (int64_t t = 0; t < k; ++t) {
              double x = double(in[0].as<float>()[i / n * k + t]);
              double v = double(real(w.as<uint16_t>()[isTransposed ? i % n * k + t : t * n + i % n]));
              sum += x * v;
              magnitude += std::fabs(x * v);
            }
            ASSERT_NEAR(double(y.as<float>()[i]), sum, double(k + 4) * kEps * magnitude) << row->name;
          }
        }
      }
}

// --- epilogues, types ---

TEST(Packed, BiasResidualActivationAndNarrowTypes) {
  std::mt19937 rng(6);
  constexpr int64_t kM = 5, kN = 37, kK = 96;
  RandomBlocks blocks(*PackedFormat::named("q4_0"), kK, 1);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true}) {
      std::vector<Tensor> in = {uniform({kM, kK}, rng), packedTensor(DType::F32, "q4_0", kK, kN, blocks)};
      Tensor plain = runRow(*row, in, attributes("q4_0", isInt8))[0];
      in.push_back(uniform({kN}, rng));
      in.push_back(uniform({kM, kN}, rng));
      AttrList attrs = attributes("q4_0", isInt8);
      attrs.set("activation", "silu");
      Tensor y = runRow(*row, in, attrs)[0];
      auto want = [&](int64_t i) {
        double v =
            double(plain.as<float>()[i]) + double(in[2].as<float>()[i % kN]) + double(in[3].as<float>()[i]);
        return activateScalar<double>(Activation::Silu, v, 0, 0);
      };
      for (int64_t i = 0; i < kM * kN; ++i)
        ASSERT_NEAR(double(y.as<float>()[i]), want(i), 16 * kEps * (std::fabs(want(i)) + 2)) << row->name;
      // The same from f16 and bf16: rows are exact in them here, results are rounded once.
      for (DType type : {DType::F16, DType::BF16}) {
        std::vector<Tensor> narrow = in;
        for (size_t i : {0, 2, 3}) {
          narrow[i] = zeros(type, in[i].dims);
          for (int64_t e = 0; e < in[i].elements(); ++e) {
            float &x = in[i].as<float>()[e];
            uint16_t bits = type == DType::F16 ? f32ToF16(x) : f32ToBf16(x);
            narrow[i].as<uint16_t>()[e] = bits;
          }
        }
        narrow[1].type = type;
        std::vector<Tensor> wide = in;
        for (size_t i : {0, 2, 3})
          for (int64_t e = 0; e < in[i].elements(); ++e) {
            uint16_t bits = narrow[i].as<uint16_t>()[e];
            wide[i].as<float>()[e] = type == DType::F16 ? f16ToF32(bits) : bf16ToF32(bits);
          }
        Tensor exact = runRow(*row, wide, attrs)[0], rounded = runRow(*row, narrow, attrs)[0];
        for (int64_t i = 0; i < kM * kN; ++i) {
          float x = exact.as<float>()[i];
          ASSERT_EQ(rounded.as<uint16_t>()[i], type == DType::F16 ? f32ToF16(x) : f32ToBf16(x)) << row->name;
        }
      }
    }
}

TEST(Packed, GatedPairs) {
  std::mt19937 rng(8);
  constexpr int64_t kM = 11, kHalf = 21, kK = 256;
  RandomBlocks blocks(*PackedFormat::named("q4_k"), kK, 4);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true}) {
      std::vector<Tensor> in = {uniform({kM, kK}, rng),
                                packedTensor(DType::F32, "q4_k", kK, 2 * kHalf, blocks)};
      Tensor both = runRow(*row, in, attributes("q4_k", isInt8))[0];
      in[1] = packedTensor(DType::F32, "q4_k", kK, 2 * kHalf, blocks, true);
      AttrList attrs = attributes("q4_k", isInt8);
      attrs.set("gated", 1).set("activation", "silu");
      Tensor y = runRow(*row, in, attrs)[0];
      ASSERT_EQ(y.dims, (std::vector<int64_t>{kM, kHalf}));
      for (int64_t i = 0; i < kM * kHalf; ++i) {
        const float *sums = both.as<float>() + i / kHalf * 2 * kHalf + i % kHalf;
        double want = activateScalar<double>(Activation::Silu, double(sums[0]), 0, 0) * double(sums[kHalf]);
        ASSERT_NEAR(double(y.as<float>()[i]), want, 16 * kEps * std::fabs(want) + 1e-38)
            << row->name; // below that exp has underflowed
      }
    }
}

TEST(Packed, QuantisedRowsAreWithinHalfAStep) {
  std::mt19937 rng(9);
  std::uniform_real_distribution<float> exponent(-90, 60);
  PackedFormat format = *PackedFormat::named("q4_0");
  constexpr int64_t kK = 77, kSteps = 3;
  for (Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (isa > machineIsa())
      continue;
    for (int round = 0; round < 50; ++round) {
      float size = std::exp2f(exponent(rng));
      Tensor x = uniform({kK}, rng);
      for (int64_t i = 0; i < kK; ++i)
        x.as<float>()[i] *= i % 32 == 5 ? size : size * 0.01f;
      constexpr int64_t kRecord = kStepTerms + kRowNumberBytes;
      std::vector<uint8_t> records(kSteps * kRecord, 99);
      packedOps(isa).quantize(x.as<float>(), kK, format, {records.data(), kSteps, kStepTerms});
      for (int64_t s = 0; s < kSteps; ++s) {
        auto *codes = reinterpret_cast<const int8_t *>(records.data() + s * kRecord);
        float numbers[2]; // scale, sum
        std::memcpy(numbers, codes + kStepTerms, sizeof(numbers));
        int sum = 0;
        for (int64_t i = 0; i < kStepTerms; ++i) {
          double value = s * 32 + i < kK ? double(x.as<float>()[s * 32 + i]) : 0, scale = double(numbers[0]);
          ASSERT_LE(std::fabs(codes[i] * scale - value), scale * (0.5 + 128 * 4 * kEps)) << i;
          sum += codes[i];
        }
        EXPECT_EQ(numbers[1], float(-sum));
      }
    }
  }
}

TEST(Packed, NotANumberStays) {
  RandomBlocks blocks(*PackedFormat::named("q4_0"), 64, 1);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true}) {
      std::vector<Tensor> in = {zeros(DType::F32, {2, 64}), packedTensor(DType::F32, "q4_0", 64, 16, blocks)};
      in[0].as<float>()[40] = std::nanf("");
      Tensor y = runRow(*row, in, attributes("q4_0", isInt8))[0];
      for (int64_t i = 0; i < 16; ++i) {
        EXPECT_TRUE(std::isnan(y.as<float>()[i])) << row->name;
        EXPECT_EQ(y.as<float>()[16 + i], 0) << row->name;
      }
    }
}

TEST(Packed, EmptySizes) {
  RandomBlocks blocks(*PackedFormat::named("q4_0"), 0, 1);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true})
      for (auto [m, n, k] : {std::array<int64_t, 3>{0, 5, 32}, {3, 0, 32}, {3, 5, 0}}) {
        std::vector<Tensor> in = {
            zeros(DType::F32, {m, k}),
            packedTensor(DType::F32, "q4_0", k, n, RandomBlocks(*PackedFormat::named("q4_0"), k, 1))};
        Tensor y = runRow(*row, in, attributes("q4_0", isInt8))[0];
        for (int64_t i = 0; i < m * n; ++i)
          EXPECT_EQ(y.as<float>()[i], 0);
      }
}

// --- shapes, names ---

TEST(Packed, NamesAndSizes) {
  EXPECT_EQ(PackedFormat::named("q4_0")->bytes(64, 17), 2 * 2 * (32 + 256));
  EXPECT_EQ(PackedFormat::named("q4_k")->bytes(256, 16), 64 + 8 * 32 + 8 * 256);
  EXPECT_EQ(PackedFormat::named("q6_k")->bytes(256, 16), 3360);
  EXPECT_EQ(PackedFormat::named("int4_g128_f16_zp")->bytes(129, 1), 2 * (48 + 4 * 256));
  EXPECT_EQ(PackedFormat::named("bf16")->bytes(33, 1), 2 * 1024);
  EXPECT_FALSE(PackedFormat::named("q4_0")->bytes(int64_t(1) << 39, int64_t(1) << 40));
  EXPECT_FALSE(PackedFormat::named("q4_0")->bytes(-1, 4));
  for (const char *bad :
       {"", "int7_g32_f16", "int4_g33_f16", "int4_g0_f16", "int4_g-32_f16", "int4_g32", "q4_0 ",
        "int4_g32_f16_zx", "int99999999999999999999_g32_f16", "int4_g99999999_f16"})
    EXPECT_FALSE(PackedFormat::named(bad)) << bad;
}

TEST(Packed, ShapesThatDoNotFit) {
  Tensor a = zeros(DType::F32, {2, 32}), b = zeros(DType::F32, {8, 32});
  EXPECT_EQ(refusal("matmul", {a, b}, attributes("q4_0", false)), "");
  EXPECT_NE(refusal("matmul", {a, zeros(DType::F32, {1, 8, 32})}, attributes("q4_0", false)), "");
  EXPECT_NE(
      refusal("matmul", {zeros(DType::F64, {2, 32}), zeros(DType::F64, {8, 32})}, attributes("q4_0", false)),
      "");
  AttrList transposed = attributes("q4_0", false), gated = attributes("q4_0", false), dense;
  transposed.set("trans_a", 1);
  EXPECT_NE(refusal("matmul", {zeros(DType::F32, {32, 2}), b}, transposed), "");
  EXPECT_NE(
      refusal("matmul", {a, b}, AttrList().set("packed", "q4_0").set("trans_b", 1).set("arithmetic", "int4")),
      "");
  gated.set("gated", 1);
  EXPECT_EQ(refusal("matmul", {a, b}, gated), "");
  EXPECT_NE(refusal("matmul", {a, zeros(DType::F32, {7, 32})}, gated), "");
  EXPECT_NE(refusal("matmul", {a, b, zeros(DType::F32, {8})}, gated), "");
  dense.set("gated", 1).set("trans_b", 1);
  EXPECT_NE(refusal("matmul", {a, b}, dense), "");
}

} // namespace
} // namespace dspark

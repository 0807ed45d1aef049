// Weights as their sources have them, packed and unpacked: GGUF blocks bit for bit as ggml dequantises them,
// groups of GPTQ, AWQ and MatMulNBits by their definitions.
#include "kernels/common/numeric.h"
#include "test/kernels/matmul/packed_case.h"

namespace dspark {
namespace {

using namespace test;

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

} // namespace
} // namespace dspark

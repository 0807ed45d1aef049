// GGUF's block types as codes and scales (ggml's block_* structures, little-endian). Each function reads one
// block; what the fields mean is in docs/packed-weights.md.
#include "runtime/format/GgufGridBlocks.h"
#include <cstring>

namespace dspark {
namespace {

using Block = const uint8_t *;

uint32_t u16At(Block p) { return uint32_t(p[0] | p[1] << 8); }

// Nibbles of 32 terms in 16 bytes: terms 0..15 low, 16..31 high.
void splitNibbles(Block qs, int64_t half, uint8_t *codes) {
  for (int64_t i = 0; i < half; ++i) {
    codes[i] = qs[i] & 15;
    codes[i + half] = qs[i] >> 4;
  }
}
void fifthBits(Block qh, uint8_t *codes) {
  for (int i = 0; i < 32; ++i)
    codes[i] |= uint8_t((qh[i / 8] >> i % 8 & 1) << 4);
}

void readQ4(Block b, BlockValues &v) { // q4_0, iq4_nl
  v.scale[0] = u16At(b);
  splitNibbles(b + 2, 16, v.codes.data());
}
void readQ4_1(Block b, BlockValues &v) {
  readQ4(b + 2, v);
  v.scale[0] = u16At(b);
  v.zero[0] = u16At(b + 2);
}
void readQ5_0(Block b, BlockValues &v) {
  v.scale[0] = u16At(b);
  splitNibbles(b + 6, 16, v.codes.data());
  fifthBits(b + 2, v.codes.data());
}
void readQ5_1(Block b, BlockValues &v) {
  v.scale[0] = u16At(b);
  v.zero[0] = u16At(b + 2);
  splitNibbles(b + 8, 16, v.codes.data());
  fifthBits(b + 4, v.codes.data());
}
void readQ8_0(Block b, BlockValues &v) {
  v.scale[0] = u16At(b);
  for (size_t i = 0; i < 32; ++i)
    v.codes[i] = b[2 + i] ^ 128;
}
void readQ8_K(Block b, BlockValues &v) {
  std::memcpy(v.scale.data(), b, 4);
  for (size_t i = 0; i < 256; ++i)
    v.codes[i] = b[4 + i] ^ 128;
}
void readMxfp4(Block b, BlockValues &v) {
  v.scale[0] = b[0];
  splitNibbles(b + 1, 16, v.codes.data());
}
// 64 terms with 4 scales are two of our blocks.
void readNvfp4(Block b, int64_t half, BlockValues &v) {
  for (int64_t i = 0; i < 2; ++i) {
    v.scale[size_t(i)] = b[half * 2 + i];
    splitNibbles(b + 4 + (half * 2 + i) * 8, 8, v.codes.data() + i * 16);
  }
}

// Two bits a term: byte l of each 32 holds terms l, l + 32, l + 64, l + 96 of 128.
void twoBits(Block qs, uint8_t *codes) {
  for (int t = 0; t < 256; ++t)
    codes[t] = qs[t / 128 * 32 + t % 32] >> t % 128 / 32 * 2 & 3;
}
void readQ2_K(Block b, BlockValues &v) {
  for (size_t g = 0; g < 16; ++g)
    v.scale[g] = b[g];
  twoBits(b + 16, v.codes.data());
  v.factor = u16At(b + 80);
  v.minFactor = u16At(b + 82);
}
void readQ3_K(Block b, BlockValues &v) {
  Block scales = b + 96;
  twoBits(b + 32, v.codes.data());
  for (size_t t = 0; t < 256; ++t)
    v.codes[t] |= uint8_t((b[t % 32] >> t / 32 & 1) << 2);
  for (size_t g = 0; g < 16; ++g) {
    unsigned low = scales[g % 8] >> g / 8 * 4 & 15, high = scales[8 + g % 4] >> g / 4 * 2 & 3;
    v.scale[g] = uint8_t((low | high << 4) - 32);
  }
  v.factor = u16At(b + 108);
}
// 8 scales and 8 minima of 6 bits in 12 bytes.
void sixBitScales(Block b, BlockValues &v) {
  for (size_t g = 0; g < 8; ++g)
    if (g < 4) {
      v.scale[g] = b[g] & 63;
      v.zero[g] = b[g + 4] & 63;
    } else {
      v.scale[g] = (b[g + 4] & 15u) | (b[g - 4] >> 6 << 4);
      v.zero[g] = (b[g + 4] >> 4u) | (b[g] >> 6 << 4);
    }
}
// Nibbles in runs of 64 terms: byte l of 32 holds terms l and l + 32.
void nibbleRuns(Block qs, uint8_t *codes) {
  for (int64_t run = 0; run < 4; ++run)
    splitNibbles(qs + run * 32, 32, codes + run * 64);
}
void readQ4_K(Block b, BlockValues &v) {
  v.factor = u16At(b);
  v.minFactor = u16At(b + 2);
  sixBitScales(b + 4, v);
  nibbleRuns(b + 16, v.codes.data());
}
void readQ5_K(Block b, BlockValues &v) {
  v.factor = u16At(b);
  v.minFactor = u16At(b + 2);
  sixBitScales(b + 4, v);
  nibbleRuns(b + 48, v.codes.data());
  for (size_t t = 0; t < 256; ++t)
    v.codes[t] |= uint8_t((b[16 + t % 32] >> t / 32 & 1) << 4);
}
void readQ6_K(Block b, BlockValues &v) {
  for (size_t t = 0; t < 256; ++t) {
    size_t half = t / 128, in = t % 128;
    unsigned low = b[half * 64 + in % 64] >> in / 64 * 4 & 15;
    unsigned high = b[128 + half * 32 + in % 32] >> in / 32 * 2 & 3;
    v.codes[t] = uint8_t(low | high << 4);
  }
  for (size_t g = 0; g < 16; ++g)
    v.scale[g] = b[192 + g];
  v.factor = u16At(b + 208);
}
void readIq4Xs(Block b, BlockValues &v) {
  uint32_t high = u16At(b + 2);
  v.factor = u16At(b);
  for (size_t g = 0; g < 8; ++g) {
    v.scale[g] = uint8_t(((b[4 + g / 2] >> g % 2 * 4 & 15u) | (high >> 2 * g & 3) << 4) - 32);
    splitNibbles(b + 8 + g * 16, 16, v.codes.data() + g * 32);
  }
}

// Five digits of base 3 in a byte, as a fraction of 256 whose first digit is the highest.
void ternaryDigits(Block bytes, int64_t count, int digits, uint8_t *codes) {
  unsigned power = 1;
  for (int digit = 0; digit < digits; ++digit, power *= 3)
    for (int64_t i = 0; i < count; ++i)
      *codes++ = uint8_t((bytes[i] * power & 255) * 3 >> 8);
}
void readTq1_0(Block b, BlockValues &v) {
  ternaryDigits(b, 32, 5, v.codes.data());
  ternaryDigits(b + 32, 16, 5, v.codes.data() + 160);
  ternaryDigits(b + 48, 4, 4, v.codes.data() + 240);
  v.scale[0] = u16At(b + 52);
}
void readTq2_0(Block b, BlockValues &v) {
  twoBits(b, v.codes.data());
  v.scale[0] = u16At(b + 64);
}
void readQ1_0(Block b, BlockValues &v) { // -1 and 1, not 0
  v.scale[0] = u16At(b);
  for (size_t i = 0; i < 128; ++i)
    v.codes[i] = uint8_t((b[2 + i / 8] >> i % 8 & 1) * 2);
}
void readQ2_0(Block b, BlockValues &v) {
  v.scale[0] = u16At(b);
  for (size_t i = 0; i < 64; ++i)
    v.codes[i] = b[2 + i / 4] >> i % 4 * 2 & 3;
}

struct BlockType {
  std::string_view name;
  int64_t terms, bytes;
  void (*read)(Block, BlockValues &); // null: nvfp4
};
constexpr BlockType kTypes[] = {
    {"q4_0", 32, 18, readQ4},         {"q4_1", 32, 20, readQ4_1},     {"q5_0", 32, 22, readQ5_0},
    {"q5_1", 32, 24, readQ5_1},       {"q8_0", 32, 34, readQ8_0},     {"q8_k", 256, 292, readQ8_K},
    {"q2_k", 256, 84, readQ2_K},      {"q3_k", 256, 110, readQ3_K},   {"q4_k", 256, 144, readQ4_K},
    {"q5_k", 256, 176, readQ5_K},     {"q6_k", 256, 210, readQ6_K},   {"iq4_nl", 32, 18, readQ4},
    {"iq4_xs", 256, 136, readIq4Xs},  {"iq1_s", 256, 50, readIq1S},   {"iq1_m", 256, 56, readIq1M},
    {"iq2_xxs", 256, 66, readIq2Xxs}, {"iq2_xs", 256, 74, readIq2Xs}, {"iq2_s", 256, 82, readIq2S},
    {"iq3_xxs", 256, 98, readIq3Xxs}, {"iq3_s", 256, 110, readIq3S},  {"tq1_0", 256, 54, readTq1_0},
    {"tq2_0", 256, 66, readTq2_0},    {"q1_0", 128, 18, readQ1_0},    {"q2_0", 64, 18, readQ2_0},
    {"mxfp4", 32, 17, readMxfp4},     {"nvfp4", 64, 36, nullptr},
};

const BlockType *typeNamed(std::string_view name) {
  for (const BlockType &type : kTypes)
    if (type.name == name)
      return &type;
  return nullptr;
}

class GgufSource : public BlockSource {
public:
  GgufSource(const BlockType &type, int64_t k, std::span<const std::byte> bytes)
      : type(type), perColumn(k / type.terms), bytes(reinterpret_cast<Block>(bytes.data())) {}
  void read(int64_t column, int64_t block, BlockValues &values) const override {
    if (type.read)
      return type.read(bytes + (column * perColumn + block) * type.bytes, values);
    readNvfp4(bytes + (column * perColumn + block / 2) * type.bytes, block % 2, values);
  }

private:
  const BlockType &type;
  int64_t perColumn;
  Block bytes;
};

} // namespace

StatusOr<int64_t> ggufBytes(std::string_view name, int64_t k, int64_t n) {
  const BlockType *type = typeNamed(name);
  if (!type)
    return invalidArgument("expected a block type of GGUF, found " + std::string(name));
  int64_t bytes;
  if (k < 0 || n < 0 || k >= int64_t(1) << 40 || k % type->terms != 0 ||
      __builtin_mul_overflow(k / type->terms * type->bytes, n, &bytes))
    return invalidArgument(std::string(name) + ": expected rows of a multiple of " +
                           std::to_string(type->terms) + " terms, found " + std::to_string(n) + " of " +
                           std::to_string(k));
  return bytes;
}

Status packGguf(std::string_view name, int64_t k, int64_t n, std::span<const std::byte> source,
                std::span<std::byte> out, bool isGated) {
  StatusOr<int64_t> bytes = ggufBytes(name, k, n);
  DSPARK_RETURN_IF_ERROR(bytes.status());
  if (uint64_t(*bytes) != source.size())
    return invalidArgument(std::string(name) + ": expected " + std::to_string(*bytes) + " bytes for " +
                           std::to_string(n) + " rows of " + std::to_string(k) + " terms, found " +
                           std::to_string(source.size()));
  return packBlocks(*PackedFormat::named(name), k, n, GgufSource(*typeNamed(name), k, source), out, isGated);
}

} // namespace dspark

// Integer codes with a scale per group of terms: MatMulNBits of ONNX Runtime, GPTQ, AWQ.
#include "runtime/format/PackedBits.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

int64_t ceilOf(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int64_t groupsOf(const GroupedWeight &w) { return ceilOf(w.k, w.group); }

Status invalid(const std::string &sentence) { return invalidArgument("weights in groups: " + sentence); }

Status checkSizes(const GroupedWeight &w) {
  bool isGptq = w.form == GroupedWeight::Form::Gptq;
  if (w.k < 0 || w.n < 0 || w.k >= int64_t(1) << 40 || w.n >= int64_t(1) << 40)
    return invalid("expected sizes below 2^40, found " + std::to_string(w.k) + " and " + std::to_string(w.n));
  if (w.bits != 4 && !(w.bits == 3 && isGptq) &&
      ((w.bits != 2 && w.bits != 8) || w.form == GroupedWeight::Form::Awq))
    return invalid("codes of " + std::to_string(w.bits) + " bits are not supported here");
  if (w.group < 16 || w.group > 1 << 20 || (w.group != 16 && w.group % kStepTerms != 0))
    return invalid("expected groups of 16 or a multiple of 32 terms, found " + std::to_string(w.group));
  if (w.form == GroupedWeight::Form::NBits)
    return Status::ok();
  if (w.n * w.bits % 32 != 0 || w.k * w.bits % 32 != 0)
    return invalid("expected sizes that fill 32-bit words, found " + std::to_string(w.k) + " and " +
                   std::to_string(w.n));
  return Status::ok();
}

int scaleSize(DType type) { return dtypeBits(type) / 8; }

uint32_t wordAt(const std::byte *p, int64_t i) {
  uint32_t word;
  std::memcpy(&word, p + i * 4, 4);
  return word;
}

// Code i of a dense little-endian stream, `step` words apart (the words of one GPTQ column).
uint32_t streamCode(const std::byte *words, int64_t i, int bits, int64_t step) {
  int64_t at = i * bits;
  uint64_t pair = wordAt(words, at / 32 * step);
  if (at % 32 + bits > 32)
    pair |= uint64_t(wordAt(words, (at / 32 + 1) * step)) << 32;
  return uint32_t(pair >> at % 32) & ((1u << bits) - 1);
}
uint32_t byteCode(const std::byte *bytes, int64_t i, int bits) {
  int perByte = 8 / bits;
  return uint32_t(bytes[i / perByte]) >> i % perByte * bits & ((1u << bits) - 1);
}
// AWQ: column c of a word's eight lies in this nibble.
constexpr int kAwqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};
uint32_t awqCode(const std::byte *row, int64_t column) {
  return wordAt(row, column / 8) >> kAwqNibble[column % 8] * 4 & 15;
}

class GroupedSource : public BlockSource {
public:
  GroupedSource(const GroupedWeight &w, const GroupedBytes &bytes, const PackedFormat &format,
                std::vector<int64_t> order)
      : w(w), bytes(bytes), order(std::move(order)), blockTerms(format.blockTerms(w.k)),
        perBlock(format.groupsPerBlock(w.k)) {}

  void read(int64_t column, int64_t block, BlockValues &values) const override {
    int64_t begin = block * blockTerms, count = std::min(blockTerms, w.k - begin);
    for (int64_t i = 0; i < count; ++i)
      values.codes[size_t(i)] = uint8_t(code(column, order.empty() ? begin + i : order[size_t(begin + i)]));
    for (int64_t g = 0; g < perBlock && block * perBlock + g < groupsOf(w); ++g) {
      int64_t group = block * perBlock + g;
      values.scale[size_t(g)] = number(bytes.scales, column, group);
      if (w.hasZeros)
        values.zero[size_t(g)] = w.zerosAreValues ? number(bytes.zeros, column, group) : zero(column, group);
    }
  }

private:
  uint32_t code(int64_t column, int64_t term) const {
    switch (w.form) {
    case GroupedWeight::Form::NBits: {
      int64_t perRow = groupsOf(w) * w.group; // whole blocks
      return byteCode(bytes.codes.data() + column * (perRow * w.bits / 8), term, w.bits);
    }
    case GroupedWeight::Form::Gptq:
      return streamCode(bytes.codes.data() + column * 4, term, w.bits, w.n);
    case GroupedWeight::Form::Awq:
      return awqCode(bytes.codes.data() + term * (w.n / 2), column);
    }
    return 0;
  }
  uint32_t zero(int64_t column, int64_t group) const {
    uint32_t stored = 0;
    switch (w.form) {
    case GroupedWeight::Form::NBits:
      stored = byteCode(bytes.zeros.data() + column * ceilOf(groupsOf(w) * w.bits, 8), group, w.bits);
      break;
    case GroupedWeight::Form::Gptq:
      stored = streamCode(bytes.zeros.data() + group * (w.n * w.bits / 8), column, w.bits, 1);
      break;
    case GroupedWeight::Form::Awq:
      stored = awqCode(bytes.zeros.data() + group * (w.n / 2), column);
      break;
    }
    return (stored + uint32_t(w.zeroShift)) & ((1u << w.bits) - 1);
  }
  // A scale, or a zero of the same type.
  uint32_t number(std::span<const std::byte> numbers, int64_t column, int64_t group) const {
    int64_t at = w.form == GroupedWeight::Form::NBits ? column * groupsOf(w) + group : group * w.n + column;
    uint32_t value = 0;
    std::memcpy(&value, numbers.data() + at * scaleSize(w.scaleType), size_t(scaleSize(w.scaleType)));
    return value;
  }

  GroupedWeight w;
  GroupedBytes bytes;
  std::vector<int64_t> order;
  int64_t blockTerms, perBlock;
};

// The product of non-negative sizes, or UINT64_MAX if it overflows.
uint64_t times(int64_t a, int64_t b, int64_t c = 1) {
  uint64_t product;
  if (__builtin_mul_overflow(uint64_t(a), uint64_t(b), &product) ||
      __builtin_mul_overflow(product, uint64_t(c), &product))
    return UINT64_MAX;
  return product;
}

} // namespace

Status checkGrouped(const GroupedWeight &w, const GroupedBytes &bytes) {
  DSPARK_RETURN_IF_ERROR(w.layout().status());
  int64_t groups = groupsOf(w);
  uint64_t codes, zeros;
  if (w.form == GroupedWeight::Form::NBits) {
    codes = times(w.n, groups, w.group * w.bits / 8);
    zeros = times(w.n, ceilOf(groups * w.bits, 8));
  } else {
    codes = times(w.k, w.n) / 8 * uint64_t(w.bits);
    zeros = times(groups, w.n) / 8 * uint64_t(w.bits);
  }
  uint64_t scales = times(w.n, groups, scaleSize(w.scaleType));
  if (w.zerosAreValues)
    zeros = scales;
  auto check = [](const char *what, uint64_t expected, size_t found) {
    return expected == found ? Status::ok()
                             : invalid(std::string(what) + ": expected " + std::to_string(expected) +
                                       " bytes, found " + std::to_string(found));
  };
  DSPARK_RETURN_IF_ERROR(check("codes", codes, bytes.codes.size()));
  DSPARK_RETURN_IF_ERROR(check("scales", scales, bytes.scales.size()));
  return w.hasZeros ? check("zero points", zeros, bytes.zeros.size()) : Status::ok();
}

StatusOr<std::string> GroupedWeight::layout() const {
  DSPARK_RETURN_IF_ERROR(checkSizes(*this));
  if (scaleType != DType::F32 && scaleType != DType::F16 && scaleType != DType::BF16)
    return invalid("expected scales of f32, f16 or bf16, found " + std::string(dtypeName(scaleType)));
  return "int" + std::to_string(bits) + "_g" + std::to_string(group) + "_" +
         std::string(dtypeName(scaleType)) +
         (!hasZeros        ? ""
          : zerosAreValues ? "_zv"
                           : "_zp");
}

StatusOr<std::unique_ptr<BlockSource>> groupedSource(const GroupedWeight &weight, const GroupedBytes &bytes) {
  DSPARK_RETURN_IF_ERROR(checkGrouped(weight, bytes));
  std::vector<int64_t> order;
  if (!bytes.groupOfTerm.empty()) {
    DSPARK_ASSIGN_OR_RETURN(order, groupOrder(bytes.groupOfTerm, weight.k, weight.group));
  }
  PackedFormat format = *PackedFormat::named(*weight.layout());
  return std::unique_ptr<BlockSource>(new GroupedSource(weight, bytes, format, std::move(order)));
}

Status packGrouped(const GroupedWeight &weight, const GroupedBytes &bytes, std::span<std::byte> out) {
  DSPARK_ASSIGN_OR_RETURN(std::unique_ptr<BlockSource> source, groupedSource(weight, bytes));
  return packBlocks(*PackedFormat::named(*weight.layout()), weight.k, weight.n, *source, out);
}

StatusOr<std::vector<int64_t>> groupOrder(std::span<const std::byte> groupOfTerm, int64_t k, int64_t group) {
  if (k < 0 || group < 1 || groupOfTerm.size() / 4 != uint64_t(k) || groupOfTerm.size() % 4 != 0)
    return invalid("expected the group of each of " + std::to_string(k) + " terms, found " +
                   std::to_string(groupOfTerm.size()) + " bytes");
  std::vector<int64_t> order((size_t(k))), count(size_t(ceilOf(k, group)), 0);
  // Each group's terms fill its own places; a place too many is refused.
  for (int64_t term = 0; term < k; ++term) {
    auto g = int64_t(int32_t(wordAt(groupOfTerm.data(), term)));
    if (g < 0 || g >= int64_t(count.size()))
      return invalid("term " + std::to_string(term) + " is in group " + std::to_string(g) + " of " +
                     std::to_string(count.size()));
    int64_t place = g * group + count[size_t(g)]++;
    if (count[size_t(g)] > std::min(group, k - g * group))
      return invalid("group " + std::to_string(g) + " has more than its " +
                     std::to_string(std::min(group, k - g * group)) + " terms");
    order[size_t(place)] = term;
  }
  return order;
}

} // namespace dspark

#include "runtime/format/QuantizedWeight.h"
#include "kernels/common/numeric.h"
#include "runtime/format/PackedBits.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace dspark {
namespace {

int bitsOf(CodeKind kind) {
  switch (kind) {
  case CodeKind::U2:
    return 2;
  case CodeKind::U3:
    return 3;
  case CodeKind::U4:
    return 4;
  case CodeKind::U5:
    return 5;
  case CodeKind::U6:
    return 6;
  case CodeKind::U8:
    return 8;
  default:
    return 0;
  }
}

// Codes of one group under a scale, and the squared error that they leave.
double encode(const float *values, int64_t count, float scale, int zero, uint8_t *codes) {
  float inverse = scale > 0 ? 1 / scale : 0;
  double error = 0;
  for (int64_t i = 0; i < count; ++i) {
    float code = std::nearbyint(values[i] * inverse);
    int q = std::isnan(code) ? 0 : int(std::clamp(code, float(-zero), float(zero - 1)));
    codes[i] = uint8_t(q + zero);
    double off = double(values[i]) - double(q) * double(scale);
    error += off * off;
  }
  return error;
}

class RoundedColumns : public BlockSource {
public:
  RoundedColumns(const PackedFormat &format, int64_t k, int64_t n, bool isTransposed,
                 std::span<const float> source)
      : format(format), k(k), n(n), isTransposed(isTransposed), source(source), bits(bitsOf(format.code)) {}

  void read(int64_t column, int64_t block, BlockValues &values) const override {
    int64_t terms = format.blockTerms(k), groups = format.groupsPerBlock(k);
    int64_t group = (terms + groups - 1) / groups, first = block * terms;
    std::vector<float> w(static_cast<size_t>(group));
    for (int64_t g = 0; g < groups; ++g) {
      int64_t begin = first + g * group, count = std::clamp<int64_t>(k - begin, 0, group);
      for (int64_t i = 0; i < count; ++i)
        w[size_t(i)] = source[size_t(isTransposed ? column * k + begin + i : (begin + i) * n + column)];
      values.scale[size_t(g)] =
          std::bit_cast<uint32_t>(encodeGroup(w.data(), count, values.codes.data() + g * group));
    }
  }

private:
  float encodeGroup(const float *w, int64_t count, uint8_t *codes) const {
    int zero = 1 << (bits - 1);
    float most = 0;
    for (int64_t i = 0; i < count; ++i)
      most = std::max(most, std::fabs(w[i])); // NaN loses every comparison
    float best = most / float(zero - 1);
    double least = encode(w, count, best, zero, codes);
    if (bits == 8)
      return best;
    for (float share : {0.95f, 0.9f, 0.85f, 0.8f, 0.75f}) {
      float scale = most * share / float(zero - 1);
      std::vector<uint8_t> tried(static_cast<size_t>(count));
      double error = encode(w, count, scale, zero, tried.data());
      if (error >= least)
        continue;
      least = error;
      best = scale;
    }
    encode(w, count, best, zero, codes);
    return best;
  }

  PackedFormat format;
  int64_t k, n;
  bool isTransposed;
  std::span<const float> source;
  int bits;
};

} // namespace

bool isQuantizedLayout(std::string_view layout) {
  std::optional<PackedFormat> format = PackedFormat::named(layout);
  return format && (format->code == CodeKind::F16 || format->code == CodeKind::BF16 ||
                    (layout.starts_with("int") && format->scale == ScaleKind::F32 &&
                     format->zero == ZeroKind::Constant));
}

StatusOr<uint64_t> quantizedBytes(std::string_view layout, int64_t k, int64_t n) {
  if (!isQuantizedLayout(layout))
    return invalidArgument("no weights are rounded to layout '" + std::string(layout) + "'");
  std::optional<int64_t> bytes = PackedFormat::named(layout)->bytes(k, n);
  if (!bytes)
    return invalidArgument("layout " + std::string(layout) + " of " + std::to_string(k) + " by " +
                           std::to_string(n) + " is too large");
  return uint64_t(*bytes);
}

Status packQuantized(std::string_view layout, int64_t k, int64_t n, bool isTransposed,
                     std::span<const float> source, std::span<std::byte> out) {
  DSPARK_ASSIGN_OR_RETURN(uint64_t bytes, quantizedBytes(layout, k, n));
  if (out.size() != bytes || source.size() != uint64_t(k) * uint64_t(n))
    return invalidArgument("rounding " + std::to_string(source.size()) + " weights into " +
                           std::to_string(out.size()) + " bytes: expected " + std::to_string(k * n) +
                           " and " + std::to_string(bytes));
  PackedFormat format = *PackedFormat::named(layout);
  if (!format.isFloat())
    return packBlocks(format, k, n, RoundedColumns(format, k, n, isTransposed, source), out);
  std::vector<uint16_t> halves(source.size());
  for (size_t i = 0; i < source.size(); ++i)
    halves[i] = format.code == CodeKind::F16 ? f32ToF16(source[i]) : f32ToBf16(source[i]);
  return packFloats(layout, k, n, isTransposed, std::as_bytes(std::span(halves)), out);
}

} // namespace dspark

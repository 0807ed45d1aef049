#include "runtime/format/PackedLayout.h"
#include "kernels/common/numeric.h"
#include "runtime/format/PackedBits.h"
#include <algorithm>
#include <cstring>
#include <vector>

namespace dspark {
namespace {

constexpr int64_t kPanel = 16;

// Product of sizes >= 0, or -1 if one is negative or it exceeds 2^62.
int64_t product(std::initializer_list<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(result, size, &result) || result > int64_t(1) << 62)
      return -1;
  return result;
}

int64_t panels(int64_t n) { return n / kPanel + (n % kPanel != 0); }

StatusOr<uint64_t> checkedBytes(int64_t bytes, std::string_view layout) {
  if (bytes < 0)
    return invalidArgument("packed layout " + std::string(layout) + ": the weight's size overflows");
  return uint64_t(bytes);
}

Status unknownLayout(std::string_view layout, const char *expected) {
  return invalidArgument("packed layout: expected " + std::string(expected) + ", found " +
                         std::string(layout));
}

Status checkSpans(uint64_t expectedSource, uint64_t source, uint64_t expectedPacked, uint64_t packed) {
  if (expectedSource == source && expectedPacked == packed)
    return Status::ok();
  return invalidArgument("packing: expected " + std::to_string(expectedSource) + " source and " +
                         std::to_string(expectedPacked) + " packed bytes, found " + std::to_string(source) +
                         " and " + std::to_string(packed));
}

// One panel of 16 columns from column n0: element (k, n) of the source lies at k * kStride + n * nStride.
template <typename T>
void packPanel(const T *source, int64_t k, int64_t n, int64_t n0, int64_t kStride, int64_t nStride, T *out) {
  int64_t columns = std::min(kPanel, n - n0);
  if (columns < kPanel)
    std::fill_n(out, k * kPanel, T());
  if (nStride == 1) {
    for (int64_t i = 0; i < k; ++i)
      std::memcpy(out + i * kPanel, source + i * kStride + n0, size_t(columns) * sizeof(T));
    return;
  }
  // Squares: the rows that a column of them writes stay in the L1 cache for the next column.
  for (int64_t i0 = 0; i0 < k; i0 += kPanel)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = i0; i < std::min(i0 + kPanel, k); ++i)
        out[i * kPanel + j] = source[i * kStride + (n0 + j) * nStride];
}

template <typename T> void packPanels(const MatrixWeight &w, const T *source, T *out) {
  int64_t kStride = w.isTransposed ? 1 : w.n, nStride = w.isTransposed ? w.k : 1;
  for (int64_t b = 0; b < w.batch; ++b, source += w.k * w.n)
    for (int64_t n0 = 0; n0 < w.n; n0 += kPanel, out += w.k * kPanel)
      packPanel(source, w.k, w.n, n0, kStride, nStride, out);
}

// The bytes of one panel in quads of terms, filled term by term; then the columns' sums.
class QuadPanel {
public:
  QuadPanel(uint8_t *panel, int64_t k, bool isSigned)
      : panel(panel), bytes((k + 3) / 4 * 4 * kPanel), flip(isSigned ? 0 : 0x80) {
    std::memset(panel, 0, size_t(bytes));
  }
  ~QuadPanel() { std::memcpy(panel + bytes, sums, sizeof(sums)); }
  static int64_t size(int64_t k) { return (k + 3) / 4 * 4 * kPanel + kPanel * int64_t(sizeof(int32_t)); }

  void set(int64_t k, int64_t column, uint8_t value) {
    value ^= flip;
    panel[(k / 4 * kPanel + column) * 4 + k % 4] = value;
    sums[column] += uint32_t(int32_t(int8_t(value)));
  }

private:
  uint8_t *panel;
  int64_t bytes;
  uint8_t flip;
  uint32_t sums[kPanel] = {};
};

void packQuads(const MatrixWeight &w, const uint8_t *source, uint8_t *out) {
  int64_t kStride = w.isTransposed ? 1 : w.n, nStride = w.isTransposed ? w.k : 1;
  for (int64_t b = 0; b < w.batch; ++b, source += w.k * w.n)
    for (int64_t n0 = 0; n0 < w.n; n0 += kPanel, out += QuadPanel::size(w.k)) {
      QuadPanel panel(out, w.k, w.isSigned);
      for (int64_t k = 0; k < w.k; ++k)
        for (int64_t j = 0; j < std::min(kPanel, w.n - n0); ++j)
          panel.set(k, j, source[k * kStride + (n0 + j) * nStride]);
    }
}

// One group of a convolution: K is (tap, input channel), column n is an output channel.
void packConvQuads(const ConvWeight &w, const uint8_t *source, uint8_t *out) {
  int64_t inputs = w.inputs / w.group, outputs = w.outputs / w.group;
  int64_t outputStride = w.isTransposed ? w.spatial : inputs * w.spatial;
  int64_t inputStride = w.isTransposed ? outputs * w.spatial : w.spatial;
  for (int64_t n0 = 0; n0 < outputs; n0 += kPanel, out += QuadPanel::size(w.spatial * inputs)) {
    QuadPanel panel(out, w.spatial * inputs, w.isSigned);
    for (int64_t j = 0; j < std::min(kPanel, outputs - n0); ++j)
      for (int64_t i = 0; i < inputs; ++i)
        for (int64_t tap = 0; tap < w.spatial; ++tap)
          panel.set(tap * inputs + i, j, source[(n0 + j) * outputStride + i * inputStride + tap]);
  }
}

// One group: K is (tap, input channel), column n is an output channel.
void packConvGroup(const ConvWeight &w, const float *source, float *out) {
  int64_t inputs = w.inputs / w.group, outputs = w.outputs / w.group;
  int64_t outputStride = w.isTransposed ? w.spatial : inputs * w.spatial;
  int64_t inputStride = w.isTransposed ? outputs * w.spatial : w.spatial;
  for (int64_t n0 = 0; n0 < outputs; n0 += kPanel, out += w.spatial * inputs * kPanel)
    for (int64_t tap = 0; tap < w.spatial; ++tap)
      packPanel(source + tap, inputs, outputs, n0, inputStride, outputStride, out + tap * inputs * kPanel);
}

template <typename T>
void packDepthwise(const ConvWeight &w, std::span<const std::byte> source, std::span<std::byte> packed,
                   auto convert) {
  const T *from = reinterpret_cast<const T *>(source.data());
  T *to = reinterpret_cast<T *>(packed.data());
  for (int64_t tap = 0; tap < w.spatial; ++tap)
    for (int64_t c = 0; c < w.outputs; ++c)
      to[tap * w.outputs + c] = convert(from[c * w.spatial + tap]);
}

} // namespace

StatusOr<uint64_t> packedBytes(std::string_view layout, const MatrixWeight &w) {
  if (w.n < 0 || w.k < 0 || w.k > INT64_MAX - 4)
    return checkedBytes(-1, layout);
  if (layout == "panel16" && (w.elementBytes == 4 || w.elementBytes == 1))
    return checkedBytes(product({w.batch, panels(w.n), kPanel, w.k, w.elementBytes}), layout);
  if (layout == "panel16k4" && w.elementBytes == 1)
    return checkedBytes(product({w.batch, panels(w.n), kPanel, (w.k + 3) / 4 * 4 + 4}), layout);
  if ((layout == "f16" || layout == "bf16") && w.elementBytes == 2 && w.batch == 1)
    return checkedBytes(PackedFormat::named(layout)->bytes(w.k, w.n).value_or(-1), layout);
  return unknownLayout(layout,
                       "panel16 of 4- or 1-byte elements, panel16k4 of bytes, or f16 or bf16 of one matrix");
}

StatusOr<uint64_t> packedBytes(std::string_view layout, const ConvWeight &w) {
  if (w.group < 1 || w.inputs < 0 || w.outputs < 0 || w.inputs % w.group != 0 || w.outputs % w.group != 0 ||
      w.spatial < 0)
    return invalidArgument("packed layout: expected channels that are multiples of the group");
  if (layout == "panel16" && w.elementBytes == 4)
    return checkedBytes(
        product({w.group, panels(w.outputs / w.group), kPanel, w.spatial, w.inputs / w.group, 4}), layout);
  if (layout == "bf16" && w.elementBytes == 4)
    return checkedBytes(product({w.group, panels(w.outputs / w.group), kPanel, w.spatial,
                                 w.inputs / w.group / 2 + w.inputs / w.group % 2, 4}),
                        layout);
  if (layout == "panel16k4" && w.elementBytes == 1) {
    int64_t depth = product({w.spatial, w.inputs / w.group});
    return checkedBytes(
        depth < 0 ? -1 : product({w.group, panels(w.outputs / w.group), kPanel, (depth + 3) / 4 * 4 + 4}),
        layout);
  }
  if (layout == "depthwise" && w.inputs == w.group && w.outputs == w.group &&
      (w.elementBytes == 4 || w.elementBytes == 1))
    return checkedBytes(product({w.spatial, w.outputs, w.elementBytes}), layout);
  return unknownLayout(layout,
                       "panel16 or bf16 of f32, panel16k4 of bytes, or depthwise with one channel per group");
}

Status packWeight(std::string_view layout, const MatrixWeight &w, std::span<const std::byte> source,
                  std::span<std::byte> packed) {
  StatusOr<uint64_t> bytes = packedBytes(layout, w);
  DSPARK_RETURN_IF_ERROR(bytes.status());
  int64_t sourceBytes = product({w.batch, w.k, w.n, w.elementBytes});
  DSPARK_RETURN_IF_ERROR(checkSpans(uint64_t(sourceBytes), source.size(), *bytes, packed.size()));
  if (w.elementBytes == 2)
    return packFloats(layout, w.k, w.n, w.isTransposed, source, packed);
  if (layout == "panel16k4")
    packQuads(w, reinterpret_cast<const uint8_t *>(source.data()),
              reinterpret_cast<uint8_t *>(packed.data()));
  else if (w.elementBytes == 1)
    packPanels(w, reinterpret_cast<const uint8_t *>(source.data()),
               reinterpret_cast<uint8_t *>(packed.data()));
  else
    packPanels(w, reinterpret_cast<const float *>(source.data()), reinterpret_cast<float *>(packed.data()));
  return Status::ok();
}

Status packWeight(std::string_view layout, const ConvWeight &w, std::span<const std::byte> source,
                  std::span<std::byte> packed) {
  StatusOr<uint64_t> bytes = packedBytes(layout, w);
  DSPARK_RETURN_IF_ERROR(bytes.status());
  int64_t elements = product({w.inputs, w.outputs / w.group, w.spatial});
  if (elements < 0)
    return checkedBytes(-1, layout).status();
  DSPARK_RETURN_IF_ERROR(
      checkSpans(uint64_t(elements * w.elementBytes), source.size(), *bytes, packed.size()));
  if (layout == "depthwise" && w.elementBytes == 4) {
    packDepthwise<float>(w, source, packed, [](float value) { return value; });
    return Status::ok();
  }
  if (layout == "depthwise") {
    packDepthwise<uint8_t>(w, source, packed,
                           [flip = w.isSigned ? 0 : 0x80](uint8_t value) { return uint8_t(value ^ flip); });
    return Status::ok();
  }
  if (layout == "bf16") {
    DSPARK_ASSIGN_OR_RETURN(uint64_t size, packedBytes("panel16", w));
    std::vector<std::byte> plain(size);
    DSPARK_RETURN_IF_ERROR(packWeight("panel16", w, source, plain));
    return roundPanels(w, plain, packed);
  }
  for (int64_t g = 0; g < w.group; ++g) {
    const std::byte *from = source.data() + g * (elements / w.group) * w.elementBytes;
    std::byte *to = packed.data() + g * int64_t(*bytes / uint64_t(w.group));
    if (w.elementBytes == 1)
      packConvQuads(w, reinterpret_cast<const uint8_t *>(from), reinterpret_cast<uint8_t *>(to));
    else
      packConvGroup(w, reinterpret_cast<const float *>(from), reinterpret_cast<float *>(to));
  }
  return Status::ok();
}

Status roundPanels(const ConvWeight &w, std::span<const std::byte> panels, std::span<std::byte> packed) {
  StatusOr<uint64_t> from = packedBytes("panel16", w), to = packedBytes("bf16", w);
  DSPARK_RETURN_IF_ERROR(from.status());
  DSPARK_RETURN_IF_ERROR(to.status());
  DSPARK_RETURN_IF_ERROR(checkSpans(*from, panels.size(), *to, packed.size()));
  int64_t inputs = w.inputs / w.group;
  if (inputs == 0)
    return Status::ok();
  const float *plain = reinterpret_cast<const float *>(panels.data());
  uint16_t *out = reinterpret_cast<uint16_t *>(packed.data());
  int64_t taps = int64_t(panels.size() / sizeof(float)) / (inputs * kPanel); // of all panels and groups
  for (int64_t tap = 0; tap < taps; ++tap, plain += inputs * kPanel)
    for (int64_t i = 0; i < inputs; i += 2)
      for (int64_t j = 0; j < kPanel; ++j, out += 2) {
        out[0] = f32ToBf16(plain[i * kPanel + j]);
        out[1] = i + 1 < inputs ? f32ToBf16(plain[(i + 1) * kPanel + j]) : uint16_t(0);
      }
  return Status::ok();
}

} // namespace dspark

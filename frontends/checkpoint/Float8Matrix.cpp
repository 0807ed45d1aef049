#include "frontends/checkpoint/Float8Matrix.h"
#include "kernels/common/element.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace dspark::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

// scales[row / rows * perRow + term / terms]
struct Scales {
  std::vector<float> values;
  int64_t rows = 1, terms = 1, perRow = 1;
};

// A product is exact in bf16 (8 bits) if the scale has no more than 4 significant bits, as an 8-bit float
// has, and no exponent comes near bf16's limits.
bool isExactInBf16(float scale) {
  int exponent;
  float significand = std::frexp(scale, &exponent) * 16;
  return std::isfinite(scale) && significand == std::trunc(significand) && std::abs(exponent) < 64;
}

StatusOr<Scales> readScales(const QuantizedTensor &t) {
  const SafeTensor *tensor = nullptr;
  std::string name;
  for (const char *ending : {".weight_scale_inv", ".weight_scale"})
    if (const SafeTensor *found = t.folder->find(t.name + ending)) {
      tensor = found;
      name = t.name + ending;
    }
  if (!tensor)
    return Scales{.values = {1}, .rows = t.n, .terms = t.k};
  Scales scales;
  int64_t blockRows = (t.n + t.scheme.blockRows - 1) / t.scheme.blockRows,
          blockTerms = (t.k + t.scheme.blockTerms - 1) / t.scheme.blockTerms;
  using Dims = std::vector<int64_t>;
  if (tensor->dims == Dims{} || tensor->dims == Dims{1} || tensor->dims == Dims{1, 1})
    scales = {.values = {}, .rows = t.n, .terms = t.k};
  else if (tensor->dims == Dims{t.n} || tensor->dims == Dims{t.n, 1})
    scales = {.values = {}, .rows = 1, .terms = t.k};
  else // one a block, or an error that says so
    scales = {.values = {}, .rows = t.scheme.blockRows, .terms = t.scheme.blockTerms, .perRow = blockTerms};
  DSPARK_ASSIGN_OR_RETURN(
      tensor,
      findTensor(*t.folder, name, {DType::F32, DType::BF16, DType::F16},
                 scales.perRow == 1 && scales.terms == t.k ? tensor->dims : Dims{blockRows, blockTerms}));
  int64_t count = int64_t(tensor->bytes.size()) * 8 / dtypeBits(tensor->type);
  std::vector<double> wide(static_cast<size_t>(count));
  loadAsF64(tensor->type, tensor->bytes.data(), 0, count, wide.data());
  scales.values.assign(wide.begin(), wide.end());
  return scales;
}

// Each weight is its value times its scale, rounded once to T.
template <typename T>
std::vector<std::byte> widened(Bytes codes, DType type, const Scales &scales, int64_t n, int64_t k) {
  double table[256]; // the value of each code
  uint8_t all[256];
  for (int i = 0; i < 256; ++i)
    all[i] = uint8_t(i);
  loadAsF64(type, all, 0, 256, table);
  std::vector<std::byte> made(size_t(n) * size_t(k) * sizeof(T));
  for (int64_t row = 0, at = 0; row < n; ++row)
    for (int64_t term = 0; term < k; ++term, ++at) {
      float scale = scales.values[size_t(row / scales.rows * scales.perRow + term / scales.terms)];
      T weight = T(float(table[uint8_t(codes[size_t(at)])]) * scale);
      std::memcpy(made.data() + size_t(at) * sizeof(T), &weight, sizeof(T));
    }
  return made;
}

} // namespace

StatusOr<Matrix> float8Matrix(const QuantizedTensor &t) {
  DSPARK_ASSIGN_OR_RETURN(const SafeTensor *tensor, findTensor(*t.folder, t.name + ".weight",
                                                               {DType::F8E4M3FN, DType::F8E5M2}, {t.n, t.k}));
  DSPARK_ASSIGN_OR_RETURN(Scales scales, readScales(t));
  bool isExact = std::ranges::all_of(scales.values, isExactInBf16);
  Matrix made;
  made.layout = isExact ? "bf16" : "";
  made.n = t.n;
  made.k = t.k;
  made.rowBytes = t.k * (isExact ? 2 : 4);
  made.rows = [folder = t.folder, codes = tensor->bytes, type = tensor->type, scales = std::move(scales),
               isExact, n = t.n, k = t.k](std::vector<std::byte> &storage) -> StatusOr<Bytes> {
    storage = isExact ? widened<BF16>(codes, type, scales, n, k) : widened<float>(codes, type, scales, n, k);
    return Bytes(storage);
  };
  return made;
}

} // namespace dspark::checkpoint

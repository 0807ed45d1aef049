#include "frontends/checkpoint/GgufDecoder.h"
#include "kernels/common/element.h"
#include "kernels/matmul/packed_format.h"
#include <algorithm>
#include <cstring>

namespace dspark::checkpoint {
namespace {

std::string dimsText(const std::vector<int64_t> &dims) {
  std::string text;
  for (int64_t dim : dims)
    text += (text.empty() ? "[" : ", ") + std::to_string(dim);
  return text + "]";
}

std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

template <typename T> std::vector<float> widened(std::span<const std::byte> bytes, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = float(value);
  }
  return values;
}

} // namespace

const GgufTensor *GgufWeights::find(std::string_view name) const {
  std::string full(name);
  return file->tensor(name.ends_with(".bias") ? full : full + ".weight");
}

StatusOr<const GgufTensor *> GgufWeights::checked(std::string_view name,
                                                  const std::vector<int64_t> &dims) const {
  const GgufTensor *tensor = find(name);
  if (!tensor)
    return corruptFile("tensor '" + std::string(name) + "' is missing, expected " + dimsText(dims));
  if (tensor->dims != dims)
    return corruptFile("tensor '" + std::string(tensor->name) + "' is " + dimsText(tensor->dims) +
                       ", expected " + dimsText(dims));
  return tensor;
}

StatusOr<Matrix> GgufWeights::matrix(std::string_view name, int64_t n, int64_t k) const {
  DSPARK_ASSIGN_OR_RETURN(const GgufTensor *tensor, checked(name, {n, k}));
  return rowsOf(*tensor, n, k);
}

StatusOr<std::vector<Matrix>> GgufWeights::experts(std::string_view name, int64_t count, int64_t n,
                                                   int64_t k) const {
  DSPARK_ASSIGN_OR_RETURN(const GgufTensor *tensor, checked(name, {count, n, k}));
  DSPARK_ASSIGN_OR_RETURN(Matrix all, rowsOf(*tensor, count * n, k));
  std::vector<Matrix> each;
  for (int64_t i = 0; i < count; ++i)
    each.push_back(all.slice(i * n, n));
  return each;
}

StatusOr<Matrix> GgufWeights::rowsOf(const GgufTensor &tensor, int64_t n, int64_t k) const {
  Matrix matrix;
  matrix.layout = tensor.type.type == GgmlType::F32 ? "" : lower(tensor.type.name);
  if (!matrix.layout.empty() && !PackedFormat::named(matrix.layout))
    return Status(Code::Unsupported, "tensor '" + std::string(tensor.name) + "' is of type " +
                                         std::string(tensor.type.name) +
                                         ", which has no packed layout yet (docs/packed-weights.md)");
  matrix.n = n;
  matrix.k = k;
  matrix.rowBytes = k / tensor.type.elements * tensor.type.bytes;
  matrix.rows = [file = file, bytes = tensor.bytes](
                    std::vector<std::byte> &) -> StatusOr<std::span<const std::byte>> { return bytes; };
  return matrix;
}

StatusOr<std::vector<float>> GgufWeights::vector(std::string_view name, int64_t n) const {
  DSPARK_ASSIGN_OR_RETURN(const GgufTensor *tensor, checked(name, {n}));
  switch (tensor->type.type) {
  case GgmlType::F32:
    return widened<float>(tensor->bytes, n);
  case GgmlType::F16:
    return widened<F16>(tensor->bytes, n);
  case GgmlType::BF16:
    return widened<BF16>(tensor->bytes, n);
  default:
    return Status(Code::Unsupported, "tensor '" + std::string(tensor->name) + "' is of type " +
                                         std::string(tensor->type.name) +
                                         ", expected F32, F16 or BF16 for a vector");
  }
}

} // namespace dspark::checkpoint

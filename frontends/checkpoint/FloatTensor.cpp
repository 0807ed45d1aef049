#include "frontends/checkpoint/FloatTensor.h"
#include "frontends/checkpoint/QuantizedTensor.h"
#include "kernels/common/numeric.h"

namespace dspark::checkpoint {
namespace {

constexpr auto kFloats = {DType::F32, DType::F16, DType::BF16};

} // namespace

StatusOr<Matrix> floatMatrix(const std::shared_ptr<const SafeTensorsFolder> &folder, const std::string &name,
                             int64_t n, int64_t k) {
  DSPARK_ASSIGN_OR_RETURN(const SafeTensor *tensor, findTensor(*folder, name, kFloats, {n, k}));
  Matrix matrix;
  matrix.layout = tensor->type == DType::F32 ? "" : std::string(dtypeName(tensor->type));
  matrix.n = n;
  matrix.k = k;
  matrix.rowBytes = k * dtypeBits(tensor->type) / 8;
  matrix.rows = [folder, bytes = tensor->bytes](
                    std::vector<std::byte> &) -> StatusOr<std::span<const std::byte>> { return bytes; };
  return matrix;
}

StatusOr<std::vector<float>> floatVector(const SafeTensorsFolder &folder, const std::string &name,
                                         int64_t n) {
  DSPARK_ASSIGN_OR_RETURN(const SafeTensor *tensor, findTensor(folder, name, kFloats, {n}));
  std::vector<double> wide(static_cast<size_t>(n));
  loadAsF64(tensor->type, tensor->bytes.data(), 0, n, wide.data());
  return std::vector<float>(wide.begin(), wide.end());
}

} // namespace dspark::checkpoint

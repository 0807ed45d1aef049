// Tensors that callers lend: their strides, and copies between those and dense memory.
#pragma once
#include "kernels/common/dtype.h"
#include <cstdint>

namespace dspark {

/// A tensor that the caller lends. Strides are in elements; null means dense row-major.
struct BorrowedTensor {
  void *data = nullptr;
  DType type = DType::Undefined;
  int32_t rank = 0;
  const int64_t *dims = nullptr;
  const int64_t *strides = nullptr;
};

bool isDense(const BorrowedTensor &tensor);
/// `from` may have any strides, if its elements are whole bytes.
void copyStridedToDense(const BorrowedTensor &from, void *to);
void copyDenseToStrided(const void *from, const BorrowedTensor &to);

} // namespace dspark

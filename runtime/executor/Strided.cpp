#include "runtime/executor/Strided.h"
#include "kernels/common/shape.h"
#include <cstddef>
#include <cstring>

namespace dspark {
namespace {

int64_t elementsOf(const BorrowedTensor &tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor.rank; ++i)
    count *= tensor.dims[i];
  return count;
}

// Calls copy(strided element, dense element) for each element; the innermost dim is a loop of its own.
template <typename Copy> void walk(const BorrowedTensor &tensor, size_t bytes, Copy copy) {
  if (elementsOf(tensor) == 0)
    return;
  int64_t index[kMaxRank] = {};
  auto *strided = static_cast<std::byte *>(tensor.data);
  int last = tensor.rank - 1;
  for (size_t dense = 0;;) {
    int64_t base = 0;
    for (int i = 0; i < last; ++i)
      base += index[i] * tensor.strides[i];
    for (int64_t i = 0; i < tensor.dims[last]; ++i, dense += bytes)
      copy(strided + (base + i * tensor.strides[last]) * int64_t(bytes), dense);
    int axis = last - 1;
    while (axis >= 0 && ++index[axis] == tensor.dims[axis])
      index[axis--] = 0;
    if (axis < 0)
      return;
  }
}

} // namespace

bool isDense(const BorrowedTensor &tensor) {
  if (!tensor.strides)
    return true;
  int64_t expected = 1;
  bool matches = true;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.dims[i] == 0)
      return true;
    matches &= tensor.dims[i] == 1 || tensor.strides[i] == expected;
    if (__builtin_mul_overflow(expected, tensor.dims[i], &expected))
      return false;
  }
  return matches;
}

void copyStridedToDense(const BorrowedTensor &from, void *to) {
  size_t bytes = size_t(dtypeBits(from.type) / 8);
  walk(from, bytes, [&](const std::byte *element, size_t dense) {
    std::memcpy(static_cast<std::byte *>(to) + dense, element, bytes);
  });
}

void copyDenseToStrided(const void *from, const BorrowedTensor &to) {
  if (isDense(to)) {
    if (size_t bytes = size_t(dtypeBytes(to.type, elementsOf(to))))
      std::memcpy(to.data, from, bytes);
    return;
  }
  size_t bytes = size_t(dtypeBits(to.type) / 8);
  walk(to, bytes, [&](std::byte *element, size_t dense) {
    std::memcpy(element, static_cast<const std::byte *>(from) + dense, bytes);
  });
}

} // namespace dspark

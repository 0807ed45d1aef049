// The contents of small tensors, between bytes and the form that shape functions understand (TensorInfo).
#pragma once
#include "kernels/common/kernel.h"
#include <cstddef>
#include <vector>

namespace dspark {

/// Whether contents of that type can be read; not strings, complex numbers or anything below a byte.
bool hasReadableContents(DType type);
/// Fills info.ints or info.floats from `data`, which holds info.elements() elements of info.type.
void readContents(TensorInfo &info, const void *data);
/// All contents are known integers (or bools), so the tensor's bytes can be made without running anything.
bool isKnownInteger(const TensorInfo &info);
/// The bytes of a tensor with isKnownInteger().
std::vector<std::byte> contentBytes(const TensorInfo &info);

/// Appends the contents of `count` elements as numbers that identify them (floats by their bits).
void appendContents(DType type, const void *data, int64_t count, std::vector<int64_t> &key);
/// Fills info.ints or info.floats from such numbers.
void setContents(TensorInfo &info, const std::vector<int64_t> &key);

/// The dims as numbers; all must be.
std::vector<int64_t> numbers(const std::vector<Dim> &dims);
/// Product of dims that are known numbers, or -1 if a dim is negative or those that are not 0 overflow, which
/// makes a tensor without elements absurd, too: kernels multiply some of its dims.
int64_t elementCount(const std::vector<Dim> &dims);
/// Bytes of a tensor whose dims are known numbers; negative where those do not count.
inline int64_t bytesOf(const TensorInfo &info) { return dtypeBytes(info.type, elementCount(info.dims)); }

} // namespace dspark

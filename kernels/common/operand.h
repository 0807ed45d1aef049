// Reading single numbers out of small operands: indices, axes, pads, a fill value.
#pragma once
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"

namespace dspark {

inline bool isIndexType(DType type) { return type == DType::I64 || type == DType::I32; }

/// Element k of a tensor of an index type.
inline int64_t intAt(const TensorView &x, int64_t k) {
  return x.type == DType::I32 ? x.as<const int32_t>()[k] : x.as<const int64_t>()[k];
}

/// Element k of a floating-point tensor.
inline double realAt(const TensorView &x, int64_t k) {
  double value = 0;
  dispatchFloat(x.type, [&]<typename T>() { value = double(x.as<const T>()[k]); });
  return value;
}

} // namespace dspark

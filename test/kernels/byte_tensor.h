// Elements of tensors of signed or unsigned bytes.
#pragma once
#include "test/kernels/kernel_case.h"

namespace dspark::test {

inline int64_t byteAt(const Tensor &t, int64_t i) {
  return t.type == DType::I8 ? t.as<int8_t>()[i] : t.as<uint8_t>()[i];
}

} // namespace dspark::test

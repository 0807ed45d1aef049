// A tensor that owns its bytes: what files are read into and written from.
#pragma once
#include "kernels/common/dtype.h"
#include "runtime/executor/Strided.h"
#include <cstddef>
#include <string>
#include <vector>

namespace dspark {

struct HostTensor {
  std::string name;
  DType type = DType::Undefined;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes; // dense, sub-byte types packed

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t dim : dims)
      count *= dim;
    return count;
  }
  BorrowedTensor lend() { return {bytes.data(), type, int32_t(dims.size()), dims.data(), nullptr}; }
  /// "f32[2, 3]".
  std::string str() const {
    std::string text(dtypeName(type));
    text += '[';
    for (size_t i = 0; i < dims.size(); ++i)
      text += (i ? ", " : "") + std::to_string(dims[i]);
    return text + ']';
  }
};

} // namespace dspark

// A tensor that owns its bytes: what files are read into and written from.
#pragma once
#include "kernels/common/dtype.h"
#include "kernels/common/strings.h"
#include "runtime/executor/Values.h"
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace dspark {

struct HostTensor {
  std::string name;
  DType type = DType::Undefined;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;          // dense, sub-byte types packed
  std::vector<std::string> strings = {}; // instead, of a tensor of strings
  std::vector<StringElement> views = {}; // views of them, while they are lent

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t dim : dims)
      count *= dim;
    return count;
  }
  BorrowedTensor lend() {
    views.clear();
    for (const std::string &text : strings)
      views.push_back(std::string_view(text));
    void *data = type == DType::String ? static_cast<void *>(views.data()) : bytes.data();
    return {data, type, int32_t(dims.size()), dims.data(), nullptr};
  }
  /// "f32[2, 3]".
  std::string str() const {
    std::string text(dtypeName(type));
    text += '[';
    for (size_t i = 0; i < dims.size(); ++i)
      text += (i ? ", " : "") + std::to_string(dims[i]);
    return text + ']';
  }
};

/// A tensor, or a list of values: a sequence, an optional, a map.
struct HostValue {
  HostTensor tensor;
  bool isList = false;
  std::vector<HostValue> items = {};
};

/// Lends a value; `nodes` hold the items of lists, and stay where they are.
inline BorrowedValue lend(HostValue &value, std::deque<std::vector<BorrowedValue>> &nodes) {
  BorrowedValue lent;
  lent.isList = value.isList;
  if (!value.isList) {
    lent.tensor = value.tensor.lend();
    return lent;
  }
  std::vector<BorrowedValue> &items = nodes.emplace_back();
  for (HostValue &item : value.items)
    items.push_back(lend(item, nodes));
  lent.items = items.data();
  lent.count = items.size();
  return lent;
}

} // namespace dspark

// Values that are more than one tensor. A sequence, an optional and a map are all lists to the executor: of
// any number of values, of none or one, and of the tensors of keys and of values. How long a list is and what
// its tensors' shapes are is known when a block is traced, so steps on lists cost nothing when it runs.
#pragma once
#include "runtime/executor/Segment.h"
#include "runtime/executor/Strided.h"

namespace dspark {

/// Tensors in one list, items of items included.
inline constexpr size_t kMaxListTensors = 1 << 16;
inline constexpr int kMaxListDepth = 4;

/// A value of a caller, lent.
struct BorrowedValue {
  BorrowedTensor tensor;
  bool isList = false;
  const BorrowedValue *items = nullptr;
  size_t count = 0;
};

/// A value between two blocks, and where it lies.
struct LiveValue {
  DType type = DType::Undefined;
  std::vector<int64_t> dims;
  const void *data = nullptr;
  bool isList = false;
  std::vector<LiveValue> items;
};

/// Appends numbers that tell values of different structure or shape apart.
void appendShape(const LiveValue &value, std::vector<int64_t> &key);
/// The value in slots from `nextSlot` on, one for each tensor in order.
TracedItem inSlots(const LiveValue &value, int &nextSlot);

/// Calls f(tensor) for a tensor, or for each one in a list, in order. For all the kinds of value that have
/// `isList`.
template <typename Value, typename F> void forTensors(Value &value, F &&f) {
  if (!value.isList)
    return f(value);
  for (auto &item : value.items)
    forTensors(item, f);
}

/// Whether a list keeps the limits above.
bool isReasonable(const TracedItem &item);

} // namespace dspark

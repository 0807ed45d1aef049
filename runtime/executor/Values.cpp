#include "runtime/executor/Values.h"

namespace dspark {

void appendShape(const LiveValue &value, std::vector<int64_t> &key) {
  if (value.isList) {
    key.push_back(-1 - int64_t(value.items.size())); // ranks are not negative
    for (const LiveValue &item : value.items)
      appendShape(item, key);
    return;
  }
  key.push_back(int64_t(value.type) << 8 | int64_t(value.dims.size()));
  key.insert(key.end(), value.dims.begin(), value.dims.end());
}

TracedItem inSlots(const LiveValue &value, int &nextSlot) {
  TracedItem item;
  item.isList = value.isList;
  for (const LiveValue &inner : value.items)
    item.items.push_back(inSlots(inner, nextSlot));
  if (!value.isList) {
    item.info = TensorInfo::make(value.type, std::vector<Dim>(value.dims.begin(), value.dims.end()));
    item.storage = {Storage::Kind::Slot, nextSlot++, nullptr};
  }
  return item;
}

// Stops counting beyond the limits, since lists that share items may be far larger than the plan.
static bool isWithin(const TracedItem &item, int depth, size_t &tensors) {
  if (!item.isList)
    return ++tensors <= kMaxListTensors;
  if (depth == kMaxListDepth)
    return false;
  for (const TracedItem &inner : item.items)
    if (!isWithin(inner, depth + 1, tensors))
      return false;
  return true;
}

bool isReasonable(const TracedItem &item) {
  size_t tensors = 0;
  return isWithin(item, 0, tensors);
}

} // namespace dspark

#include "dialects/DSpark/WeightStore.h"
#include <algorithm>
#include <cstdint>

namespace dspark {

int64_t Weight::elements() const {
  // The other dims of an empty tensor may be such that their product does not fit.
  if (std::ranges::find(dims, 0) != dims.end())
    return 0;
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

std::string WeightStore::add(std::string name, Weight weight) {
  std::string unique = name;
  for (int suffix = 1; weights.contains(unique); ++suffix)
    unique = name + "." + std::to_string(suffix);
  weights.emplace(unique, std::move(weight));
  return unique;
}

const Weight *WeightStore::find(const std::string &name) const {
  auto it = weights.find(name);
  return it == weights.end() ? nullptr : &it->second;
}

std::optional<WeightBytes> WeightStore::read(const std::string &name, std::string &error,
                                             Alignment alignment) const {
  const Weight *weight = find(name);
  if (!weight) {
    error = "weight '" + name + "' is not in the weight store";
    return std::nullopt;
  }
  WeightBytes result;
  if (weight->derive) {
    if (!weight->derive(result.storage, error)) {
      error = "weight '" + name + "': " + error;
      return std::nullopt;
    }
    result.view = result.storage;
  } else if (weight->file) {
    std::span<const std::byte> whole = weight->file->bytes();
    if (weight->offset > whole.size() || weight->length > whole.size() - weight->offset) {
      error = "weight '" + name + "' lies outside " + weight->file->path();
      return std::nullopt;
    }
    result.view = whole.subspan(weight->offset, weight->length);
    if (alignment == Alignment::Elements &&
        reinterpret_cast<uintptr_t>(result.view.data()) % alignof(std::max_align_t) != 0) {
      result.storage.assign(result.view.begin(), result.view.end());
      result.view = result.storage;
    }
  } else {
    result.view = weight->owned;
  }
  // Strings have their characters behind their places.
  bool isPlain = weight->layout.empty() && weight->type != DType::String;
  if (isPlain && int64_t(result.view.size()) != dtypeBytes(weight->type, weight->elements())) {
    error = "weight '" + name + "' has " + std::to_string(result.view.size()) + " bytes, expected " +
            std::to_string(dtypeBytes(weight->type, weight->elements()));
    return std::nullopt;
  }
  return result;
}

void WeightStore::release(const std::string &name) const {
  const Weight *weight = find(name);
  if (weight && weight->file && weight->offset <= weight->file->bytes().size())
    weight->file->release(weight->file->bytes().subspan(
        weight->offset, std::min<uint64_t>(weight->length, weight->file->bytes().size() - weight->offset)));
}

} // namespace dspark

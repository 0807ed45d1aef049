// Where the bytes of a model's weights are. The IR only names weights (dspark.weight @name); the bytes stay
// in the model file until the plan is written, one weight at a time. Derived weights (packed, folded
// batch-norm scales ...) are recipes that run at that moment.
#pragma once
#include "kernels/common/dtype.h"
#include "runtime/base/MappedFile.h"
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dspark {

/// Model and external-data files, mapped.
using WeightFile = MappedFile;

struct Weight {
  DType type = DType::Undefined;
  std::vector<int64_t> dims; // logical dims, also of packed weights
  std::string layout;        // "" is row-major; else a packed layout (runtime/format/PackedLayout.h)

  // Exactly one of the three holds the bytes.
  std::shared_ptr<const WeightFile> file; // with offset and length
  uint64_t offset = 0, length = 0;
  std::vector<std::byte> owned;
  /// Makes the bytes; false on failure with a sentence in the argument.
  std::function<bool(std::vector<std::byte> &bytes, std::string &error)> derive;

  int64_t elements() const;
};

/// What the address of a weight's bytes suits: every element type, or only copies of bytes. Files put tensors
/// at any address, so the first may take a copy.
enum class Alignment { Elements, Bytes };

/// Bytes of a weight, either a view of the mapped file or owned by this object.
class WeightBytes {
public:
  std::span<const std::byte> bytes() const { return view; }

private:
  friend class WeightStore;
  std::vector<std::byte> storage;
  std::span<const std::byte> view;
};

class WeightStore {
public:
  /// Adds a weight; the name is made unique by a suffix if taken. Returns the name to use.
  std::string add(std::string name, Weight weight);
  const Weight *find(const std::string &name) const;
  /// The bytes, checked to have the length that type, dims and layout demand; nullopt with `error` set on
  /// failure.
  std::optional<WeightBytes> read(const std::string &name, std::string &error,
                                  Alignment alignment = Alignment::Elements) const;
  /// Lets go of resident memory behind a file weight that will not be read again soon.
  void release(const std::string &name) const;
  size_t size() const { return weights.size(); }

private:
  std::map<std::string, Weight> weights;
};

} // namespace dspark

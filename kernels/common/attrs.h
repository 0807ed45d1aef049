// The attributes of one operation: named integers, floats, strings and lists of them. The same view serves
// shape functions in the compiler (over MLIR attributes) and kernels in the runtime (over the plan file).
// Types are stored as DType codes, bools as 0 or 1.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace dspark {

struct Attr {
  std::string_view name;
  std::span<const int64_t> ints;  // one entry for an integer, many for a list
  std::span<const double> floats; // likewise; f32 attributes are widened exactly
  std::string_view str;
};

/// A non-owning list; the storage belongs to the plan (runtime) or to the caller's AttrList (compiler).
class Attrs {
public:
  Attrs() = default;
  explicit Attrs(std::span<const Attr> list) : list(list) {}

  const Attr *find(std::string_view name) const {
    for (const Attr &attr : list)
      if (attr.name == name)
        return &attr;
    return nullptr;
  }
  bool has(std::string_view name) const { return find(name); }
  int64_t i(std::string_view name, int64_t otherwise) const {
    const Attr *attr = find(name);
    return attr && !attr->ints.empty() ? attr->ints[0] : otherwise;
  }
  double f(std::string_view name, double otherwise) const {
    const Attr *attr = find(name);
    return attr && !attr->floats.empty() ? attr->floats[0] : otherwise;
  }
  std::string_view s(std::string_view name, std::string_view otherwise) const {
    const Attr *attr = find(name);
    return attr && !attr->str.empty() ? attr->str : otherwise;
  }
  /// Empty if absent.
  std::span<const int64_t> ints(std::string_view name) const {
    const Attr *attr = find(name);
    return attr ? attr->ints : std::span<const int64_t>();
  }
  std::span<const double> floats(std::string_view name) const {
    const Attr *attr = find(name);
    return attr ? attr->floats : std::span<const double>();
  }
  std::span<const Attr> all() const { return list; }

private:
  std::span<const Attr> list;
};

} // namespace dspark

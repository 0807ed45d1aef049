// binarizer: x > threshold. label_encoder: the value of the last key that equals x (NaN equals NaN), else the
// default; keys and values are numbers or strings. Tiles: blocks of elements.
#include "kernels/common/element.h"
#include "kernels/common/strings.h"
#include "kernels/ml/ml.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kBlock = 4096;

struct ElementState {
  int64_t count;
  double threshold;
};

// The first list among `names` that is given, as integers or as floats.
struct NumberList {
  std::span<const int64_t> ints;
  std::span<const double> floats;

  NumberList(Attrs attrs, std::initializer_list<const char *> names) {
    for (const char *name : names)
      if (ints.empty() && floats.empty())
        ints = attrs.ints(name), floats = attrs.floats(name);
  }
  size_t size() const { return ints.empty() ? floats.size() : ints.size(); }
  template <typename T> T at(size_t i) const {
    if (!ints.empty())
      return std::is_integral_v<T> ? T(ints[i]) : fromReal<T>(double(ints[i]));
    return fromReal<T>(floats[i]);
  }
};

void prepareElements(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<ElementState>();
  s = {call.in[0].elements(), call.attrs.f("threshold", 0)};
  work.tiles[0] = uint32_t((s.count + kBlock - 1) / kBlock);
  work.bytes = 2.0 * double(dtypeBytes(call.in[0].type, s.count));
}

template <typename T> bool isKey(T x, T key) { return x == key || (x != x && key != key); }

} // namespace

void prepareBinarizer(const KernelCall &call, KernelWork &work) { prepareElements(call, work); }
void runBinarizer(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<ElementState>();
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    int64_t end = std::min(s.count, int64_t(part.end) * kBlock);
    for (int64_t i = part.begin * kBlock; i < end; ++i)
      call.out[0].as<T>()[i] = T(double(call.in[0].as<const T>()[i]) > s.threshold ? 1 : 0);
  });
}

void prepareLabelEncoder(const KernelCall &call, KernelWork &work) { prepareElements(call, work); }

namespace {

/// The place of the last key equal to x, or -1.
template <typename K> int64_t findKey(const NumberList &keys, K x) {
  size_t k = keys.size();
  while (k > 0 && !isKey(x, keys.at<K>(k - 1)))
    --k;
  return int64_t(k) - 1;
}
int64_t findKey(const TensorView &keys, std::string_view x) {
  int64_t k = keys.elements();
  while (k > 0 && keys.as<const StringElement>()[k - 1] != x)
    --k;
  return k - 1;
}

/// Calls f(i, place of element i's key) for the elements of these tiles.
template <typename F>
void forKeys(const KernelCall &call, const ElementState &s, const KernelPart &part, F f) {
  int64_t begin = part.begin * kBlock, end = std::min(s.count, int64_t(part.end) * kBlock);
  if (call.in[0].type == DType::String) {
    for (int64_t i = begin; i < end; ++i)
      f(i, findKey(call.in[1], call.in[0].as<const StringElement>()[i]));
    return;
  }
  NumberList keys(call.attrs, {"keys_int64s", "keys_floats", "keys_tensor"});
  dispatchNumber(call.in[0].type, [&]<typename K>() {
    for (int64_t i = begin; i < end; ++i)
      f(i, findKey<K>(keys, call.in[0].as<const K>()[i]));
  });
}

} // namespace

void runLabelEncoder(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<ElementState>();
  const TensorView &y = call.out[0];
  if (y.type == DType::String) {
    auto *values = call.in[2].as<const StringElement>();
    StringElement missing(call.has(3) ? std::string_view(*call.in[3].as<const StringElement>()) : "_Unused");
    forKeys(call, s, part,
            [&](int64_t i, int64_t k) { y.as<StringElement>()[i] = k >= 0 ? values[k] : missing; });
    return;
  }
  NumberList values(call.attrs, {"values_int64s", "values_floats", "values_tensor"});
  bool isIntegral = isInteger(y.type);
  NumberList otherwise(call.attrs, {"default_tensor", isIntegral ? "default_int64" : "default_float"});
  dispatchNumber(y.type, [&]<typename V>() {
    V missing = otherwise.size() ? otherwise.at<V>(0) : fromReal<V>(isIntegral ? -1.0 : -0.0);
    forKeys(call, s, part,
            [&](int64_t i, int64_t k) { y.as<V>()[i] = k >= 0 ? values.at<V>(size_t(k)) : missing; });
  });
}

} // namespace dspark

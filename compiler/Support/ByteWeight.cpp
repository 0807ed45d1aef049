#include "compiler/Support/ByteWeight.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace dspark {
namespace {

// Row-major elements seen as [outer][channels][inner].
struct Channels {
  int64_t outer = 1, count = 1, inner = 1;

  Channels(const std::vector<int64_t> &dims, int64_t axis) {
    for (size_t i = 0; i < dims.size(); ++i)
      (int64_t(i) < axis ? outer : int64_t(i) == axis ? count : inner) *= dims[i];
  }
  void each(auto &&f) const {
    for (int64_t o = 0, at = 0; o < outer; ++o)
      for (int64_t c = 0; c < count; ++c)
        for (int64_t i = 0; i < inner; ++i, ++at)
          f(size_t(at), size_t(c));
  }
};

// A channel of zeros, or with numbers that are not finite, has the scale 1: zeros stay zeros.
std::vector<float> scalesOf(const std::vector<float> &values, const Channels &channels) {
  std::vector<float> scales(size_t(channels.count));
  channels.each([&](size_t at, size_t c) { scales[c] = std::max(scales[c], std::fabs(values[at])); });
  for (float &scale : scales)
    scale = scale > 0 && std::isfinite(scale) ? std::max(scale / 127, 1e-30f) : 1;
  return scales;
}

} // namespace

Value dequantizedByteWeight(Value weight, int64_t axis, const std::shared_ptr<WeightStore> &weights,
                            ir::OpFactory &factory) {
  std::optional<ConstantTensor> source = ConstantTensor::of(weight, weights);
  if (!source || axis >= int64_t(source->dims.size()))
    return Value();
  Channels channels(source->dims, axis);
  ConstantTensor scales{{channels.count}, source->name, nullptr};
  scales.read = [source = *source, channels](std::vector<float> &out, std::string &error) {
    std::vector<float> values;
    if (!source.read(values, error))
      return false;
    out = scalesOf(values, channels);
    return true;
  };
  Weight bytes;
  bytes.type = DType::I8;
  bytes.dims = source->dims;
  bytes.derive = [source = *source, channels](std::vector<std::byte> &out, std::string &error) {
    std::vector<float> values;
    if (!source.read(values, error))
      return false;
    std::vector<float> found = scalesOf(values, channels);
    out.resize(values.size());
    channels.each([&](size_t at, size_t c) {
      float q = std::nearbyint(values[at] / found[c]);
      out[at] = std::byte(int8_t(q >= -127 ? std::min(q, 127.0f) : -127.0f)); // NaN: the lower end
    });
    return true;
  };
  Location loc = weight.getLoc();
  std::string name = weights->add(source->name + ".int8", std::move(bytes));
  Value q = factory.weight(loc, name, DType::I8, source->dims);
  Value scale = scales.materialize(factory.opBuilder(), loc, weights, ".int8_scales");
  return factory.make1(loc, "dequantize_linear", {q, scale}, {factory.attr("axis", axis)});
}

} // namespace dspark

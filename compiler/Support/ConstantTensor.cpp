#include "compiler/Support/ConstantTensor.h"
#include <cstring>

using namespace mlir;

namespace dspark {

int64_t ConstantTensor::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

std::optional<ConstantTensor> ConstantTensor::of(Value value, const std::shared_ptr<WeightStore> &weights) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isF32() || !type.hasStaticShape())
    return std::nullopt;
  ConstantTensor tensor;
  tensor.dims.assign(type.getShape().begin(), type.getShape().end());
  if (auto constant = value.getDefiningOp<ir::ConstantOp>()) {
    auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
    if (!elements)
      return std::nullopt;
    auto values = std::make_shared<std::vector<float>>();
    for (float element : elements.getValues<float>())
      values->push_back(element);
    tensor.name = "constant";
    tensor.read = [values](std::vector<float> &out, std::string &) {
      out = *values;
      return true;
    };
    return tensor;
  }
  auto weight = value.getDefiningOp<ir::WeightOp>();
  if (!weight || !weight.getLayout().value_or("").empty())
    return std::nullopt;
  tensor.name = weight.getWeight().str();
  // The store holds the recipe, so the recipe must not own the store.
  tensor.read = [store = std::weak_ptr<WeightStore>(weights), name = tensor.name](std::vector<float> &out,
                                                                                  std::string &error) {
    std::shared_ptr<WeightStore> alive = store.lock();
    std::optional<WeightBytes> bytes = alive ? alive->read(name, error, Alignment::Bytes) : std::nullopt;
    if (!bytes)
      return false;
    out.resize(bytes->bytes().size() / sizeof(float));
    std::memcpy(out.data(), bytes->bytes().data(), out.size() * sizeof(float));
    alive->release(name);
    return true;
  };
  return tensor;
}

std::optional<float> ConstantTensor::splat(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  if (!elements || !elements.isSplat() || !elements.getElementType().isF32())
    return std::nullopt;
  return elements.getSplatValue<float>();
}

ConstantTensor ConstantTensor::reshaped(std::vector<int64_t> newDims) const {
  ConstantTensor result = *this;
  result.dims = std::move(newDims);
  return result;
}

ConstantTensor ConstantTensor::map(ConstantTensor a, std::function<float(float)> f) {
  ConstantTensor result{a.dims, a.name, nullptr};
  result.read = [a = std::move(a), f = std::move(f)](std::vector<float> &out, std::string &error) {
    if (!a.read(out, error))
      return false;
    for (float &value : out)
      value = f(value);
    return true;
  };
  return result;
}

namespace {

// Where each stretch of a begins in a broadcast b: an odometer over a's outer dims with b's strides, 0 where
// b has
// 1. A stretch is as many of a's inner dims as b has whole, or as b has all as 1.
struct Stretches {
  int64_t length = 1;
  int step = 0;
  std::vector<int64_t> dims, strides; // of what is outside a stretch

  Stretches(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
    const size_t rank = a.size(), offset = rank - b.size();
    std::vector<int64_t> all(rank, 0);
    int64_t elements = 1;
    for (size_t i = b.size(); i-- > 0; elements *= b[i])
      all[offset + i] = b[i] == 1 ? 0 : elements;
    size_t outer = rank;
    for (; outer > 0; --outer) {
      const int64_t dim = a[outer - 1], stride = all[outer - 1];
      if (dim != 1 && length != 1 && stride != step * length)
        break;
      if (dim != 1 && length == 1)
        step = stride == 0 ? 0 : 1;
      length *= dim;
    }
    dims.assign(a.begin(), a.begin() + std::ptrdiff_t(outer));
    strides.assign(all.begin(), all.begin() + std::ptrdiff_t(outer));
  }
};

} // namespace

ConstantTensor ConstantTensor::zipStretches(ConstantTensor a, ConstantTensor b, Stretch f) {
  ConstantTensor result{a.dims, a.name, nullptr};
  result.read = [a = std::move(a), b = std::move(b), f = std::move(f)](std::vector<float> &out,
                                                                       std::string &error) {
    std::vector<float> right;
    if (!a.read(out, error) || !b.read(right, error))
      return false;
    const Stretches stretches(a.dims, b.dims);
    std::vector<int64_t> index(stretches.dims.size(), 0);
    int64_t at = 0;
    for (size_t begin = 0; begin < out.size(); begin += size_t(stretches.length)) {
      f(std::span(out).subspan(begin, size_t(stretches.length)), right.data() + at, stretches.step);
      for (size_t i = index.size(); i-- > 0;) {
        at += stretches.strides[i];
        if (++index[i] < stretches.dims[i])
          break;
        at -= stretches.strides[i] * stretches.dims[i];
        index[i] = 0;
      }
    }
    return true;
  };
  return result;
}

ConstantTensor ConstantTensor::filled(std::vector<int64_t> dims, float value, std::string name) {
  ConstantTensor result{std::move(dims), std::move(name), nullptr};
  result.read = [count = result.elements(), value](std::vector<float> &out, std::string &) {
    out.assign(size_t(count), value);
    return true;
  };
  return result;
}

Value ConstantTensor::materialize(OpBuilder &builder, Location loc,
                                  const std::shared_ptr<WeightStore> &weights,
                                  const std::string &suffix) const {
  Weight weight;
  weight.type = DType::F32;
  weight.dims = dims;
  weight.derive = [recipe = read](std::vector<std::byte> &bytes, std::string &error) {
    std::vector<float> values;
    if (!recipe(values, error))
      return false;
    bytes.resize(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return true;
  };
  std::string unique = weights->add(name + suffix, std::move(weight));
  return ir::WeightOp::create(builder, loc, RankedTensorType::get(dims, builder.getF32Type()),
                              FlatSymbolRefAttr::get(builder.getContext(), unique), StringAttr());
}

} // namespace dspark

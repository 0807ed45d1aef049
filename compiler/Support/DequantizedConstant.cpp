#include "compiler/Support/DequantizedConstant.h"
#include "dialects/DSpark/Infer.h"
#include <cstring>

using namespace mlir;

namespace dspark {
namespace {

using Reader = std::function<bool(std::vector<std::byte> &, std::string &)>;

// The row-major bytes of a constant; null for other values.
Reader readerOf(Value value, const std::shared_ptr<WeightStore> &weights) {
  if (auto constant = value.getDefiningOp<ir::ConstantOp>())
    return [bytes = ir::literalBytes(constant.getValue())](std::vector<std::byte> &out, std::string &) {
      out = bytes;
      return true;
    };
  auto weight = value.getDefiningOp<ir::WeightOp>();
  if (!weight || !weight.getLayout().value_or("").empty())
    return nullptr;
  return [store = std::weak_ptr<WeightStore>(weights),
          name = weight.getWeight().str()](std::vector<std::byte> &out, std::string &error) {
    std::shared_ptr<WeightStore> alive = store.lock();
    std::optional<WeightBytes> bytes = alive ? alive->read(name, error) : std::nullopt;
    if (!bytes)
      return false;
    out.assign(bytes->bytes().begin(), bytes->bytes().end());
    alive->release(name);
    return true;
  };
}

// A constant of i8, u8, i32 or f32.
struct Numbers {
  Reader read;
  DType type = DType::Undefined;
  int64_t count = 0;

  bool values(std::vector<double> &out, std::string &error) const {
    std::vector<std::byte> bytes;
    if (!read(bytes, error))
      return false;
    auto widen = [&]<typename T>(T) {
      out.resize(bytes.size() / sizeof(T));
      for (size_t i = 0; i < out.size(); ++i) {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
        out[i] = double(value);
      }
    };
    type == DType::I8    ? widen(int8_t())
    : type == DType::U8  ? widen(uint8_t())
    : type == DType::I32 ? widen(int32_t())
                         : widen(float());
    return int64_t(out.size()) == count;
  }
};

std::optional<Numbers> numbersOf(Value value, const std::shared_ptr<WeightStore> &weights) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return std::nullopt;
  Numbers numbers{readerOf(value, weights), ir::dtypeOf(type.getElementType()), type.getNumElements()};
  return numbers.read ? std::optional(std::move(numbers)) : std::nullopt;
}

bool isQuantized(DType type) { return type == DType::I8 || type == DType::U8 || type == DType::I32; }

} // namespace

std::optional<ConstantTensor> dequantizedConstant(Value value, const std::shared_ptr<WeightStore> &weights) {
  auto op = value.getDefiningOp<ir::DequantizeOp>();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!op || !type || !type.hasStaticShape() || !type.getElementType().isF32() ||
      op.getBlockSize().value_or(0) != 0)
    return std::nullopt;
  bool hasZero = op.getInputs().size() > 2 && isa<TensorType>(op.getInputs()[2].getType());
  std::optional<Numbers> q = numbersOf(op.getInputs()[0], weights),
                         scale = numbersOf(op.getInputs()[1], weights);
  std::optional<Numbers> zero = hasZero ? numbersOf(op.getInputs()[2], weights) : std::nullopt;
  if (!q || !isQuantized(q->type) || !scale || scale->type != DType::F32 ||
      (hasZero && (!zero || zero->type != q->type)))
    return std::nullopt;
  int64_t axis = int64_t(op.getAxis().value_or(1)), inner = 1;
  axis = axis < 0 ? axis + type.getRank() : axis;
  if (scale->count != 1) {
    if (axis < 0 || axis >= type.getRank() || scale->count != type.getDimSize(axis) ||
        (zero && zero->count != scale->count))
      return std::nullopt;
    for (int64_t dim : type.getShape().drop_front(size_t(axis) + 1))
      inner *= dim;
  }
  ConstantTensor tensor;
  tensor.dims.assign(type.getShape().begin(), type.getShape().end());
  auto weight = op.getInputs()[0].getDefiningOp<ir::WeightOp>();
  tensor.name = weight ? weight.getWeight().str() : "constant";
  tensor.read = [q, scale, zero, inner](std::vector<float> &out, std::string &error) {
    std::vector<double> values, scales, zeros;
    if (!q->values(values, error) || !scale->values(scales, error) || (zero && !zero->values(zeros, error)))
      return false;
    out.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      size_t at = scales.size() == 1 ? 0 : i / size_t(inner) % scales.size();
      out[i] = float(values[i] - (zeros.empty() ? 0 : zeros[at])) * float(scales[at]);
    }
    return true;
  };
  return tensor;
}

} // namespace dspark

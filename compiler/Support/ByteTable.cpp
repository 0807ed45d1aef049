#include "compiler/Support/ByteTable.h"
#include "kernels/elementwise/scalar.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace dspark {
namespace {

constexpr int kEntries = 256;
constexpr int kMaxDepth = 16; // of the chain; values used twice are computed twice

int lowest(DType type) { return type == DType::I8 ? -128 : 0; }

// Computes values of a tree of operations for all entries at once.
class Evaluator {
public:
  std::optional<QuantizedValue> leaf;

  bool evaluate(Value value, std::vector<float> &out, int depth = 0) {
    if (std::optional<float> number = splatNumber(value)) {
      out.assign(kEntries, *number);
      return true;
    }
    if (std::optional<QuantizedValue> x = QuantizedValue::of(value))
      return dequantized(*x, out);
    Operation *op = value.getDefiningOp();
    if (!op || depth == kMaxDepth)
      return false;
    if (auto unary = dyn_cast<ir::UnaryOp>(op))
      return unaryOf(unary, out, depth);
    if (auto binary = dyn_cast<ir::BinaryOp>(op))
      return binaryOf(binary, out, depth);
    if (auto clip = dyn_cast<ir::ClipOp>(op))
      return clipped(clip, out, depth);
    return false;
  }

private:
  bool dequantized(const QuantizedValue &x, std::vector<float> &out) {
    std::optional<float> scale = x.scaleNumber();
    std::optional<int> zero = x.zeroNumber();
    if (!scale || !zero || (leaf && leaf->q != x.q))
      return false;
    leaf = x;
    out.resize(kEntries);
    for (int i = 0; i < kEntries; ++i)
      out[size_t(i)] = float(i + lowest(x.type()) - *zero) * *scale;
    return true;
  }

  bool unaryOf(ir::UnaryOp op, std::vector<float> &out, int depth) {
    UnaryKind kind = unaryKind(std::string_view(op.getKind().data(), op.getKind().size()));
    auto type = dyn_cast<TensorType>(op->getResult(0).getType());
    if (kind == UnaryKind::kCount || !type || !type.getElementType().isF32() ||
        !evaluate(op.getInputs()[0], out, depth + 1))
      return false;
    UnaryDefaults defaults = unaryDefaults(kind);
    double alpha = op.getAlpha() ? op.getAlpha()->convertToDouble() : defaults.alpha;
    double beta = op.getBeta() ? op.getBeta()->convertToDouble() : defaults.beta;
    for (float &value : out)
      value = float(unaryValue(kind, double(value), alpha, beta));
    return true;
  }

  bool binaryOf(ir::BinaryOp op, std::vector<float> &out, int depth) {
    BinaryKind kind = binaryKind(std::string_view(op.getKind().data(), op.getKind().size()));
    if (kind == BinaryKind::kCount || op.getInputs().size() != 2)
      return false;
    std::vector<float> right;
    if (!evaluate(op.getInputs()[0], out, depth + 1) || !evaluate(op.getInputs()[1], right, depth + 1))
      return false;
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = float(binaryValue(kind, double(out[i]), double(right[i])));
    return true;
  }

  bool clipped(ir::ClipOp op, std::vector<float> &out, int depth) {
    std::optional<Bounds> bounds = Bounds::of(op, op.getInputs()[0]);
    if (!bounds || !evaluate(op.getInputs()[0], out, depth + 1))
      return false;
    for (float &value : out)
      value = std::min(std::max(value, float(bounds->low)), float(bounds->high));
    return true;
  }
};

} // namespace

std::optional<ByteTable> ByteTable::of(Value value) {
  Evaluator evaluator;
  std::vector<float> values;
  if (!evaluator.evaluate(value, values) || !evaluator.leaf)
    return std::nullopt;
  return ByteTable{*evaluator.leaf, std::move(values)};
}

std::optional<std::vector<std::byte>> ByteTable::quantized(const QuantizedValue &result) const {
  std::optional<float> scale = result.scaleNumber();
  std::optional<int> zero = result.zeroNumber();
  if (!scale || !zero)
    return std::nullopt;
  std::vector<std::byte> bytes;
  float low = float(lowest(result.type())), high = low + 255;
  for (float value : values) {
    float q = std::nearbyint(value / *scale) + float(*zero);
    q = q >= low ? std::min(q, high) : low; // NaN goes to the lower end, as in the kernels
    bytes.push_back(std::byte(uint8_t(int(q))));
  }
  return bytes;
}

bool ByteTable::isIdentity(const std::vector<std::byte> &bytes, DType from, DType to) {
  for (int i = 0; i < kEntries; ++i)
    if (uint8_t(bytes[size_t(i)]) != uint8_t(i + lowest(from)))
      return false;
  return from == to;
}

} // namespace dspark

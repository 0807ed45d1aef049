#include "compiler/Transforms/ByteFlow.h"
#include "compiler/Support/ConstantTensor.h"
#include "compiler/Support/LocationNames.h"
#include "compiler/Support/QuantizedValue.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dspark {
namespace {

constexpr int kMaxDepth = 64; // of operations between two contractions

bool isF32(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}
bool isConstant(Value value) { return isa_and_nonnull<ir::WeightOp, ir::ConstantOp>(value.getDefiningOp()); }
bool mayBecomeBytes(Value value) { return isF32(value) && !isConstant(value); }
bool isPresent(Operation *op, unsigned slot) {
  return slot < op->getNumOperands() && isa<TensorType>(op->getOperand(slot).getType());
}
bool hasText(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<StringAttr>(name);
  return attr && !attr.getValue().empty();
}

// The two operands of a sum or product of tensors; the one of an operation with a number.
SmallVector<Value> operandsOf(ir::BinaryOp op) {
  if (op.getInputs().size() != 2)
    return {};
  Value a = op.getInputs()[0], b = op.getInputs()[1];
  if (splatNumber(b))
    return {a};
  if (splatNumber(a))
    return {b};
  bool isExact = llvm::is_contained({"add", "sub", "mul"}, op.getKind());
  return isExact ? SmallVector<Value>{a, b} : SmallVector<Value>{};
}

// The mean over all axes behind the second.
bool isSpatialMean(ir::ReduceOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getInputs()[0].getType());
  if (op.getKind() != "mean" || !type || type.getRank() < 3 || type.getRank() > 5 || !op.getAxes())
    return false;
  SmallVector<int64_t> axes(op.getAxes()->begin(), op.getAxes()->end());
  for (int64_t &axis : axes)
    axis = axis < 0 ? axis + type.getRank() : axis;
  llvm::sort(axes);
  return axes == llvm::to_vector(llvm::seq<int64_t>(2, type.getRank()));
}

// What an operation on bytes would read as bytes, be it constant or not; empty: it has no such form.
SmallVector<Value> tensorsRead(Operation *op) {
  if (auto binary = dyn_cast<ir::BinaryOp>(op))
    return operandsOf(binary);
  if (auto concat = dyn_cast<ir::ConcatOp>(op))
    return SmallVector<Value>(concat.getInputs());
  auto pool = dyn_cast<ir::PoolOp>(op);
  auto reduce = dyn_cast<ir::ReduceOp>(op);
  bool isAverage = (pool && pool.getKind() == "average") || (reduce && isSpatialMean(reduce));
  return ByteFlow::isFunction(op) || isAverage || movesFirstOperand(op)
             ? SmallVector<Value>{op->getOperand(0)}
             : SmallVector<Value>{};
}

} // namespace

ByteFlow::ByteFlow(func::FuncOp func, const std::shared_ptr<WeightStore> &weights) {
  llvm::StringMap<int> names;
  for (Operation &op : func.front())
    if (isContraction(&op, weights))
      names[firstLocationName(op.getLoc())] += 1;
  for (Operation &op : func.front()) {
    std::string node = firstLocationName(op.getLoc());
    if (!isContraction(&op, weights) || node.empty() || names[node] > 1)
      continue;
    indexOf[&op] = found.size();
    number(op.getOperand(0));
    found.push_back({&op, std::move(node), numbers[op.getOperand(0)]});
  }
}

bool ByteFlow::isContraction(Operation *op, const std::shared_ptr<WeightStore> &weights) const {
  if (!isa<ir::MatmulOp, ir::ConvOp>(op) || op->getNumResults() != 1 || hasText(op, "packed") ||
      hasText(op, "activation") || isPresent(op, 3) || !isF32(op->getOperand(0)) ||
      isConstant(op->getOperand(0)))
    return false;
  auto layout = op->getAttrOfType<StringAttr>("layout");
  auto transposed = op->getAttrOfType<IntegerAttr>("trans_a");
  if ((layout && layout.getValue() != "nchw") || (transposed && transposed.getInt() != 0))
    return false;
  int64_t rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  std::optional<ConstantTensor> factor = ConstantTensor::of(op->getOperand(1), weights);
  if (!factor || factor->elements() == 0)
    return false;
  return isa<ir::ConvOp>(op) ? rank >= 3 && rank <= 5 : rank >= 2 && factor->dims.size() == 2;
}

void ByteFlow::number(Value value) {
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!mayBecomeBytes(next) || !numbers.try_emplace(next, numbered.size()).second)
      continue;
    numbered.push_back(next);
    if (Operation *op = next.getDefiningOp())
      llvm::append_range(open, bytesTaken(op));
  }
}

std::optional<size_t> ByteFlow::numberOf(Value value) const {
  auto it = numbers.find(value);
  return it == numbers.end() ? std::nullopt : std::optional(it->second);
}

std::optional<size_t> ByteFlow::contractionOf(Value result) const {
  auto it = indexOf.find(result.getDefiningOp());
  return it == indexOf.end() ? std::nullopt : std::optional(it->second);
}

bool ByteFlow::isFunction(Operation *op) {
  if (isa<ir::UnaryOp>(op))
    return true;
  if (isa<ir::ClipOp>(op))
    return Bounds::of(op, op->getOperand(0)).has_value();
  auto binary = dyn_cast<ir::BinaryOp>(op);
  return binary && operandsOf(binary).size() == 1;
}

SmallVector<Value> ByteFlow::bytesTaken(Operation *op) {
  if (op->getNumResults() != 1 || !isF32(op->getResult(0)) || op->getNumOperands() == 0)
    return {};
  SmallVector<Value> taken = tensorsRead(op);
  return llvm::all_of(taken, mayBecomeBytes) ? taken : SmallVector<Value>();
}

bool ByteFlow::isMadeOfBytes(Value value, const llvm::BitVector &chosen,
                             const llvm::SetVector<Value> &points) const {
  llvm::DenseMap<Value, bool> known;
  auto visit = [&](auto &&self, Value v, int depth) -> bool {
    if (std::optional<size_t> contraction = contractionOf(v))
      return chosen.test(unsigned(*contraction));
    if (auto it = known.find(v); it != known.end())
      return it->second;
    Operation *op = v.getDefiningOp();
    SmallVector<Value> operands = op && depth < kMaxDepth ? bytesTaken(op) : SmallVector<Value>{};
    bool isMade = !operands.empty() && llvm::all_of(operands, [&](Value operand) {
      return points.contains(operand) || self(self, operand, depth + 1);
    });
    return known[v] = isMade;
  };
  return visit(visit, value, 0);
}

bool ByteFlow::hasFloatReaders(Value value) const {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *op = use.getOwner();
    if (op->getNumResults() != 1)
      return true;
    Value result = op->getResult(0);
    bool isTaken = contractionOf(result) ? use.getOperandNumber() == 0
                                         : numberOf(result) && llvm::is_contained(bytesTaken(op), value);
    return !isTaken;
  });
}

} // namespace dspark

// Contractions on bytes, with ranges that calibration found (PrecisionChoices.h, ByteFlow.h).
//
//   apply:    y = conv(x, w) -> y = conv(dequantize(quantize(x)), dequantize(w8)); the same pair on what a
//   chosen
//             contraction makes, wherever bytes can flow from there to another one's input
//   compare:  y = conv(x, w) -> y = select(flag, conv(dequantize(quantize(x)), dequantize(w8)), conv(x, w))
//   observe:  every value that may become bytes is an output
//
// What reads floats keeps reading them: only contractions that are chosen see rounded values.
#include "compiler/Support/ByteWeight.h"
#include "compiler/Support/LocationNames.h"
#include "compiler/Support/QuantizedValue.h"
#include "compiler/Transforms/ByteFlow.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/PrecisionChoices.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_QUANTIZECONTRACTIONSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

class Quantizer {
public:
  Quantizer(func::FuncOp func, std::shared_ptr<WeightStore> weights, PrecisionChoices &choices)
      : func(func), weights(std::move(weights)), choices(choices), builder(func.getContext()),
        factory(builder, analysis), flow(func, this->weights), chosen(unsigned(flow.contractions().size())) {
    analysis.run(func);
  }

  void describe() {
    for (const ByteFlow::Contraction &contraction : flow.contractions()) {
      auto type = cast<RankedTensorType>(contraction.op->getOperand(1).getType());
      int64_t outputs = type.getDimSize(outputAxis(contraction.op));
      choices.contractions.push_back({contraction.node, locationNames(contraction.op->getLoc()),
                                      isa<ir::ConvOp>(contraction.op), type.getNumElements() / outputs,
                                      outputs, contraction.input});
    }
    for (Value value : flow.values()) {
      ByteValue &described = choices.values.emplace_back();
      described.hasFloatReaders = flow.hasFloatReaders(value);
      if (std::optional<size_t> contraction = flow.contractionOf(value))
        described.contraction = int(*contraction);
      else if (Operation *op = value.getDefiningOp())
        for (Value operand : ByteFlow::bytesTaken(op))
          described.operands.push_back(*flow.numberOf(operand));
    }
  }

  void observe() {
    for (auto [index, value] : llvm::enumerate(flow.values()))
      addOutput(value, "dspark.observed#" + std::to_string(index));
  }

  void compare() {
    if (flow.contractions().empty())
      return;
    Value flags = addFlags();
    SmallVector<Value> errors;
    for (size_t i = 0; i < flow.contractions().size(); ++i)
      compareOne(i, flags, errors);
    builder.setInsertionPoint(func.front().getTerminator());
    addOutput(factory.make1(func.getLoc(), "concat", errors, {factory.attr("axis", 0)}), kByteErrors);
  }

  void apply() {
    for (auto [i, contraction] : llvm::enumerate(flow.contractions())) {
      auto found = choices.chosen.find(contraction.node);
      if (found == choices.chosen.end() || found->second.layout != kStaticInt8)
        continue;
      chosen.set(unsigned(i));
      choices.applied.insert(contraction.node);
    }
    for (unsigned i : chosen.set_bits()) {
      points.insert(flow.values()[flow.contractions()[i].input]);
      takers.insert(flow.contractions()[i].op);
    }
    for (size_t i = 0; i < points.size(); ++i)
      extend(points[i]);
    for (Value point : points)
      quantizeUses(point);
    for (unsigned i : chosen.set_bits()) {
      Operation *op = flow.contractions()[i].op;
      op->setOperand(1, byteWeight(op));
    }
  }

private:
  static unsigned outputAxis(Operation *op) {
    auto transposed = op->getAttrOfType<IntegerAttr>("trans_b");
    return isa<ir::ConvOp>(op) || (transposed && transposed.getInt() != 0) ? 0 : 1;
  }

  Value byteWeight(Operation *op) {
    Value &made = byteWeights[{op->getOperand(1), outputAxis(op)}];
    if (!made) {
      builder.setInsertionPointAfterValue(op->getOperand(1));
      made = dequantizedByteWeight(op->getOperand(1), outputAxis(op), weights, factory);
    }
    return made;
  }

  void addOutput(Value value, const std::string &name) {
    unsigned index = func.getNumResults();
    auto attributes =
        builder.getDictionaryAttr(builder.getNamedAttr(ir::kNameAttr, builder.getStringAttr(name)));
    (void)func.insertResult(index, value.getType(), attributes); // fails only for functions without a type
    func.front().getTerminator()->insertOperands(index, value);
  }

  Value addFlags() {
    unsigned index = func.getNumArguments();
    int64_t count = int64_t(flow.contractions().size());
    auto attributes =
        builder.getDictionaryAttr(builder.getNamedAttr(ir::kNameAttr, builder.getStringAttr(kByteFlags)));
    (void)func.insertArgument(index, RankedTensorType::get({count}, builder.getI1Type()), attributes,
                              func.getLoc());
    func.setArgAttr(index, ir::kDimsAttr, builder.getStrArrayAttr({std::to_string(count)}));
    analysis.bindArgument(func, index);
    return func.getArgument(index);
  }

  // dequantize(quantize(x)), after x is made or where the builder stands.
  Value pair(Location loc, Value x, const ByteRange &range) {
    Value scale = factory.scalar(loc, range.scale);
    std::byte byte{range.zero};
    FailureOr<Value> zero = factory.constant(loc, DType::U8, ArrayRef<int64_t>(), ArrayRef(byte));
    Value q = succeeded(zero) ? factory.make1(loc, "quantize_linear", {x, scale, *zero}) : Value();
    return q ? factory.make1(loc, "dequantize_linear", {q, scale, *zero}) : Value();
  }

  void compareOne(size_t i, Value flags, SmallVector<Value> &errors) {
    const ByteFlow::Contraction &contraction = flow.contractions()[i];
    Operation *op = contraction.op;
    auto nameOf = [&](const char *prefix) {
      return NameLoc::get(builder.getStringAttr(prefix + std::to_string(i)));
    };
    builder.setInsertionPointAfter(op);
    Value plain = op->getResult(0);
    Operation *other = builder.clone(*op);
    other->setLoc(nameOf(kByteStep));
    builder.setInsertionPoint(other);
    other->setOperand(0, pair(nameOf(kQuantizeStep), op->getOperand(0), choices.ranges[contraction.input]));
    other->setOperand(1, byteWeight(op));
    builder.setInsertionPointAfter(other);
    Location loc = func.getLoc();
    Value flag =
        factory.make1(loc, "gather", {flags, factory.scalar(loc, int64_t(i))}, {factory.attr("axis", 0)});
    Value taken = factory.make1(loc, "select", {flag, other->getResult(0), plain});
    Value off = factory.make1(loc, "binary", {other->getResult(0), plain}, {factory.attr("kind", "sub")});
    for (Value value : {off, plain}) {
      Value sum = factory.make1(loc, "reduce", {value},
                                {factory.attr("kind", "sum_square"), factory.attr("keepdims", 0)});
      errors.push_back(factory.make1(loc, "reshape", {sum, factory.ints(loc, {1})}));
    }
    taken.setType(plain.getType());
    SmallPtrSet<Operation *, 8> ours{other, taken.getDefiningOp(), off.getDefiningOp(),
                                     errors.back().getDefiningOp()->getOperand(0).getDefiningOp()};
    plain.replaceAllUsesExcept(taken, ours);
  }

  // What has to be bytes so that the maker of `value`, which is to be bytes, computes on bytes.
  void extend(Value value) {
    if (!flow.isMadeOfBytes(value, chosen, points))
      return;
    Operation *op = value.getDefiningOp();
    if (flow.contractionOf(value))
      return;
    takers.insert(op);
    // A bound of what one operation makes is part of that operation.
    if (Value inner = op->getOperand(0);
        Bounds::of(op, inner) && inner.hasOneUse() && !points.contains(inner)) {
      if (flow.contractionOf(inner))
        return;
      Operation *maker = inner.getDefiningOp();
      if (!ByteFlow::isFunction(maker) && !movesFirstOperand(maker)) {
        op = maker;
        takers.insert(op);
      }
    }
    // A chain of functions is one table.
    while (ByteFlow::isFunction(op)) {
      Value inner = ByteFlow::bytesTaken(op)[0];
      if (points.contains(inner) || flow.contractionOf(inner) || !ByteFlow::isFunction(inner.getDefiningOp()))
        break;
      op = inner.getDefiningOp();
      takers.insert(op);
    }
    for (Value operand : ByteFlow::bytesTaken(op))
      points.insert(operand);
  }

  // What only moves elements keeps their range.
  ByteRange rangeOf(Value point) const {
    for (Operation *op = point.getDefiningOp();
         op && movesFirstOperand(op) && points.contains(op->getOperand(0)); op = point.getDefiningOp())
      point = op->getOperand(0);
    return choices.ranges[*flow.numberOf(point)];
  }

  void quantizeUses(Value point) {
    builder.setInsertionPointAfterValue(point);
    Value bytes = pair(point.getLoc(), point, rangeOf(point));
    if (bytes)
      point.replaceUsesWithIf(bytes, [&](OpOperand &use) {
        bool isWeight = flow.contractionOf(use.getOwner()->getResult(0)) && use.getOperandNumber() != 0;
        return takers.contains(use.getOwner()) && !isWeight;
      });
  }

  func::FuncOp func;
  std::shared_ptr<WeightStore> weights;
  PrecisionChoices &choices;
  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
  ByteFlow flow;
  llvm::BitVector chosen;                                        // contractions
  llvm::SetVector<Value> points;                                 // values that become bytes
  llvm::DenseSet<Operation *> takers;                            // operations that read them as such
  llvm::DenseMap<std::pair<Value, unsigned>, Value> byteWeights; // by weight and axis of output channels
};

struct QuantizeContractionsPass : impl::QuantizeContractionsPassBase<QuantizeContractionsPass> {
  QuantizeContractionsPass(std::shared_ptr<WeightStore> store, PrecisionChoices *choices)
      : weights(store ? std::move(store) : std::make_shared<WeightStore>()), choices(choices) {}

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    PrecisionChoices own;
    if (!choices)
      chooseAll(own);
    PrecisionChoices &given = choices ? *choices : own;
    Quantizer quantizer(getOperation(), weights, given);
    quantizer.describe();
    if (given.bytes == ByteMode::Observe)
      quantizer.observe();
    else if (given.bytes == ByteMode::Compare)
      quantizer.compare();
    else if (given.bytes == ByteMode::Apply)
      quantizer.apply();
  }

  void chooseAll(PrecisionChoices &own) {
    own.bytes = mode == "observe"   ? ByteMode::Observe
                : mode == "compare" ? ByteMode::Compare
                                    : ByteMode::Apply;
    ByteFlow flow(getOperation(), weights);
    own.ranges.assign(flow.values().size(), {2.0f / 255, 128});
    for (const ByteFlow::Contraction &contraction : flow.contractions())
      own.chosen[contraction.node] = {kStaticInt8, ""};
  }

  std::shared_ptr<WeightStore> weights;
  PrecisionChoices *choices;
};

} // namespace

std::unique_ptr<Pass> createQuantizeContractionsPass() {
  return createQuantizeContractionsPass(nullptr, nullptr);
}

std::unique_ptr<Pass> createQuantizeContractionsPass(std::shared_ptr<WeightStore> weights,
                                                     PrecisionChoices *choices) {
  return std::make_unique<QuantizeContractionsPass>(std::move(weights), choices);
}

} // namespace dspark

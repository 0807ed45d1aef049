// Contractions of dequantised operands multiply the bytes, with the model's own scales:
//
//   quantize(bound(matmul or conv(dequantize(x), dequantize(w)) + b)) -> qlinear_matmul or qlinear_conv
//   cast(matmul_integer or conv_integer(...) (+ n)) * scale (+ b)     -> the same with f32 result
//
// where `bound` is a relu or clip, or missing, and n a bias in units of the sums. A product that nothing quantises gives f32 as well. Sums of
// products are whole numbers here, which the f32 form rounds, and scales are multiplied into one: where a
// result of the f32 form lies within about (K + 4) * 2^-24 of the sum of magnitudes of a tie, it may differ
// by one step.
#include "compiler/Support/DequantizedConstant.h"
#include "compiler/Support/QuantizedValue.h"
#include "compiler/Transforms/Passes.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSEQUANTIZEDCONTRACTIONSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

bool isPresent(Operation *op, unsigned slot) {
  return slot < op->getNumOperands() && isa<TensorType>(op->getOperand(slot).getType());
}
bool hasText(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<StringAttr>(name);
  return attr && !attr.getValue().empty();
}
int64_t number(Operation *op, StringRef name, int64_t otherwise) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}
bool isConstant(Value value) { return isa_and_nonnull<ir::WeightOp, ir::ConstantOp>(value.getDefiningOp()); }
int64_t elements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getNumElements() : -1;
}
int64_t rank(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : -1;
}
bool isF32(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  return type && type.getElementType().isF32();
}

// What follows a contraction up to the quantize_linear that takes its result.
struct Tail {
  Operation *last = nullptr; // whose result is replaced
  Value bias;
  std::optional<Bounds> bounds;
  std::optional<QuantizedValue> y;
};

class Fuser {
public:
  Fuser(func::FuncOp func, std::shared_ptr<WeightStore> weights)
      : weights(std::move(weights)), builder(func.getContext()), factory(builder, analysis) {
    analysis.run(func);
  }

  void fuse(Operation *op) {
    if (op->use_empty() || op->getNumResults() != 1)
      return;
    if (isa<ir::MatmulOp, ir::ConvOp>(op))
      fuseProduct(op);
    else if (auto kernel = dyn_cast<ir::KernelOp>(op))
      fuseInteger(kernel);
  }

private:
  void replace(Operation *op, Value value) {
    if (!value)
      return;
    if (value.getType() != op->getResult(0).getType())
      value.setType(op->getResult(0).getType()); // the operation's own type may know more dims
    op->getResult(0).replaceAllUsesWith(value);
  }

  // Scale and zero point of a second operand: one for all or one per output channel (`axis` of q).
  std::optional<QuantizedValue> weightOf(Value value, int64_t axis) {
    if (std::optional<QuantizedValue> plain = QuantizedValue::of(value))
      return plain;
    auto op = value.getDefiningOp<ir::DequantizeOp>();
    if (!op || op.getBlockSize().value_or(0) != 0 || !isF32(op.getInputs()[1]) ||
        rank(op.getInputs()[1]) != 1)
      return std::nullopt;
    Value q = op.getInputs()[0];
    int64_t along = number(op, "axis", 1), count = rank(q);
    DType type = ir::dtypeOf(cast<TensorType>(q.getType()).getElementType());
    if ((type != DType::I8 && type != DType::U8) || count < 0 || (along < 0 ? along + count : along) != axis)
      return std::nullopt;
    return QuantizedValue{q, op.getInputs()[1], isPresent(op, 2) ? op.getInputs()[2] : Value()};
  }

  Tail tailOf(Operation *op) {
    Tail tail;
    tail.last = op;
    if (isPresent(op, 2))
      tail.bias = op->getOperand(2);
    Operation *beforeActivation = op;
    for (Value value = op->getResult(0); value.hasOneUse();) {
      Operation *user = *value.user_begin();
      if (user->getBlock() != op->getBlock() || user->getNumResults() != 1)
        break;
      if (std::optional<QuantizedValue> y = QuantizedValue::madeBy(user); y && user->getOperand(0) == value) {
        tail.y = y;
        tail.last = user;
        return tail;
      }
      bool isBias = !tail.bounds && !tail.bias && takeBias(op, user, value, tail);
      if (!isBias && (tail.bounds || !(tail.bounds = Bounds::of(user, value))))
        break;
      value = user->getResult(0);
      if (isBias)
        beforeActivation = user;
    }
    tail.last = beforeActivation;
    tail.bounds = std::nullopt;
    return tail;
  }

  // add(value, b) with b [N] after a matmul, [1, C, 1 ...] after an integer convolution, of the given type.
  bool takeBias(Operation *op, Operation *user, Value value, Tail &tail, DType type = DType::F32) {
    auto add = dyn_cast<ir::BinaryOp>(user);
    auto kernel = dyn_cast<ir::KernelOp>(op);
    if (!add || add.getKind() != "add" || !(kernel || isa<ir::MatmulOp>(op)))
      return false;
    bool isConv = kernel && kernel.getName() == "conv_integer";
    Value other = add.getInputs()[add.getInputs()[0] == value ? 1 : 0];
    const TensorInfo &result = analysis.info(value), &addend = analysis.info(other);
    if (addend.type != type || !addend.hasRank || !result.hasRank || result.rank() < 2 ||
        addend.rank() != (isConv ? result.rank() : 1))
      return false;
    int channels = isConv ? 1 : 0;
    for (int i = 0; i < addend.rank(); ++i)
      if (i != channels && !addend.dims[i].is(1))
        return false;
    Dim count = addend.dims[channels];
    if (!count.isConst() || count.is(1) || !count.provablyEqual(isConv ? result.dims[1] : result.dims.back()))
      return false;
    builder.setInsertionPoint(user);
    tail.bias =
        isConv ? factory.make1(op->getLoc(), "reshape", {other, factory.ints(op->getLoc(), {count.value()})})
               : other;
    return tail.bias != Value();
  }

  // Scale, zero point and bias slots behind the six of the two factors, and the attributes that go with them.
  void addResult(Location loc, const Tail &tail, SmallVector<Value> &operands, NamedAttrList &attributes) {
    if (tail.y) {
      operands.append({tail.y->scale, tail.y->zeroOperand(loc, factory)});
    } else if (tail.bias) {
      operands.append({factory.none(loc), factory.none(loc)});
    }
    if (tail.bias) {
      std::optional<ConstantTensor> constant = dequantizedConstant(tail.bias, weights);
      operands.push_back(constant ? constant->materialize(builder, loc, weights, ".bias") : tail.bias);
    }
    if (!tail.bounds)
      return;
    bool isRelu = tail.bounds->isRelu();
    attributes.set("activation", builder.getStringAttr(isRelu ? "relu" : "clip"));
    if (!isRelu) {
      attributes.set("act_alpha", builder.getF64FloatAttr(tail.bounds->low));
      attributes.set("act_beta", builder.getF64FloatAttr(tail.bounds->high));
    }
  }

  void fuseProduct(Operation *op) {
    bool isConv = isa<ir::ConvOp>(op), isTransposed = number(op, "trans_b", 0) != 0;
    if (hasText(op, "activation") || hasText(op, "packed") || isPresent(op, 3) ||
        number(op, "trans_a", 0) != 0)
      return;
    std::optional<QuantizedValue> x = QuantizedValue::of(op->getOperand(0));
    int64_t channels = isConv ? 0 : rank(op->getOperand(1)) - (isTransposed ? 2 : 1);
    std::optional<QuantizedValue> w = weightOf(op->getOperand(1), channels);
    if (!x || !w || (isConv && !isConstant(w->q)))
      return;
    Tail tail = tailOf(op);
    if (tail.bias && rank(tail.bias) != 1)
      return;
    builder.setInsertionPoint(tail.last);
    Location loc = tail.y ? builder.getFusedLoc({op->getLoc(), tail.last->getLoc()}) : op->getLoc();
    SmallVector<Value> operands{x->q, x->scale, x->zeroOperand(loc, factory),
                                w->q, w->scale, w->zeroOperand(loc, factory)};
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase("trans_a");
    addResult(loc, tail, operands, attributes);
    replace(tail.last,
            factory.make1(loc, isConv ? "qlinear_conv" : "qlinear_matmul", operands, attributes.getAttrs()));
  }

  // The factors of a scale: A's is one number, B's one number or one per column.
  std::optional<std::pair<Value, Value>> factorsOf(Location loc, Value scale) {
    auto fits = [&](Value b) { return isF32(b) && (elements(b) == 1 || rank(b) == 1); };
    if (auto product = scale.getDefiningOp<ir::BinaryOp>(); product && product.getKind() == "mul")
      for (unsigned side = 0; side < 2; ++side) {
        Value a = product.getInputs()[side], b = product.getInputs()[1 - side];
        if (isF32(a) && elements(a) == 1 && fits(b))
          return std::pair(a, b);
      }
    if (!fits(scale))
      return std::nullopt;
    return std::pair(factory.scalar(loc, 1.0f), scale);
  }

  void fuseInteger(ir::KernelOp op) {
    bool isConv = op.getName() == "conv_integer";
    if (!isConv && op.getName() != "matmul_integer")
      return;
    auto soleUser = [&](Value value) {
      Operation *user = value.hasOneUse() ? *value.user_begin() : nullptr;
      return user && user->getBlock() == op->getBlock() ? user : nullptr;
    };
    Tail tail;
    Value sums = op->getResult(0);
    if (Operation *user = soleUser(sums); user && takeBias(op, user, sums, tail, DType::I32))
      sums = user->getResult(0);
    auto cast = dyn_cast_or_null<ir::CastOp>(soleUser(sums));
    if (!cast || !isF32(cast->getResult(0)))
      return;
    auto mul = dyn_cast_or_null<ir::BinaryOp>(soleUser(cast->getResult(0)));
    if (!mul || mul.getKind() != "mul")
      return;
    Value scale = mul.getInputs()[mul.getInputs()[0] == cast->getResult(0) ? 1 : 0];
    tail.last = mul;
    if (Operation *user = soleUser(mul->getResult(0));
        user && !tail.bias && takeBias(op, user, mul->getResult(0), tail))
      tail.last = user;
    builder.setInsertionPoint(tail.last);
    std::optional<std::pair<Value, Value>> factors = factorsOf(op.getLoc(), scale);
    if (!factors)
      return;
    auto zero = [&](unsigned i) {
      if (isPresent(op, i))
        return op->getOperand(i);
      return QuantizedValue{op->getOperand(i - 2), Value(), Value()}.zeroOperand(op.getLoc(), factory);
    };
    SmallVector<Value> operands{op->getOperand(0), factors->first,  zero(2),
                                op->getOperand(1), factors->second, zero(3)};
    NamedAttrList attributes(op.getConfig().value_or(DictionaryAttr()));
    addResult(op.getLoc(), tail, operands, attributes);
    replace(tail.last, factory.make1(op.getLoc(), isConv ? "qlinear_conv" : "qlinear_matmul", operands,
                                     attributes.getAttrs()));
  }

  std::shared_ptr<WeightStore> weights;
  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
};

struct FuseQuantizedContractionsPass
    : impl::FuseQuantizedContractionsPassBase<FuseQuantizedContractionsPass> {
  explicit FuseQuantizedContractionsPass(std::shared_ptr<WeightStore> store)
      : weights(store ? std::move(store) : std::make_shared<WeightStore>()) {}
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Fuser fuser(getOperation(), weights);
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      fuser.fuse(op);
  }
  std::shared_ptr<WeightStore> weights;
};

} // namespace

std::unique_ptr<Pass> createFuseQuantizedContractionsPass(std::shared_ptr<WeightStore> weights) {
  return std::make_unique<FuseQuantizedContractionsPass>(std::move(weights));
}

} // namespace dspark

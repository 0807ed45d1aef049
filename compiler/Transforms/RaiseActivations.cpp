// Activations and norms that exporters spell out in elementary operations, found again so that one kernel
// computes them. Each pattern is anchored at its last operation and checks that every intermediate is used
// only inside.
#include "compiler/Support/ConstantTensor.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DimAnalysis.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_RAISEACTIVATIONSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

bool near(std::optional<float> value, double expected) {
  return value && std::abs(*value - expected) <= 1e-5 * std::abs(expected);
}

// The operation that makes `value`, if it is of that kind; `value` may be null.
ir::BinaryOp binary(Value value, StringRef kind) {
  auto op = value ? value.getDefiningOp<ir::BinaryOp>() : ir::BinaryOp();
  return op && op.getKind() == kind && op.getInputs().size() == 2 ? op : ir::BinaryOp();
}
ir::UnaryOp unary(Value value, StringRef kind) {
  auto op = value.getDefiningOp<ir::UnaryOp>();
  return op && op.getKind() == kind ? op : ir::UnaryOp();
}

// value = kind(x, c) with c one number, on either side if the kind commutes. Null if not.
Value withNumber(Value value, StringRef kind, std::optional<float> &number) {
  auto op = binary(value, kind);
  if (!op)
    return Value();
  if ((number = ConstantTensor::splat(op.getInputs()[1])))
    return op.getInputs()[0];
  if ((kind == "add" || kind == "mul") && (number = ConstantTensor::splat(op.getInputs()[0])))
    return op.getInputs()[1];
  return Value();
}

// value = x * factor, written as a product or a quotient.
Value scaledBy(Value value, double &factor) {
  std::optional<float> number;
  if (Value x = withNumber(value, "mul", number)) {
    factor = *number;
    return x;
  }
  if (Value x = withNumber(value, "div", number);
      x && ConstantTensor::splat(binary(value, "div").getInputs()[1])) {
    factor = 1.0 / *number;
    return x;
  }
  return Value();
}

bool isClip(Value value, double low, double high, Value &x) {
  auto clip = value.getDefiningOp<ir::ClipOp>();
  if (!clip || clip.getInputs().size() != 3)
    return false;
  std::optional<float> lower = ConstantTensor::splat(clip.getInputs()[1]),
                       upper = ConstantTensor::splat(clip.getInputs()[2]);
  x = clip.getInputs()[0];
  return lower && upper && *lower == float(low) && *upper == float(high);
}

// The other operand of a product or sum that has `value` on one side; null if it has not.
Value otherOperand(ir::BinaryOp op, Value value) {
  if (op.getInputs()[0] == value)
    return op.getInputs()[1];
  return op.getInputs()[1] == value ? op.getInputs()[0] : Value();
}

class Raiser {
public:
  explicit Raiser(func::FuncOp func) : builder(func.getContext()) { analysis.run(func); }

  void raise(Operation *op) {
    if (op->getNumResults() != 1 || !isF32(op->getResult(0)))
      return;
    builder.setInsertionPoint(op);
    Value root = op->getResult(0);
    Value raised = hardSwish(root);
    if (!raised)
      raised = hardSigmoid(root);
    if (!raised)
      raised = silu(root);
    if (!raised)
      raised = gelu(root);
    if (!raised)
      raised = layerNorm(root);
    if (!raised || raised.getType() != root.getType()) {
      if (raised && raised.use_empty())
        raised.getDefiningOp()->erase();
      return;
    }
    analysis.setInfo(raised, analysis.info(root));
    raised.getDefiningOp()->setLoc(op->getLoc());
    root.replaceAllUsesWith(raised);
    eraseDead(op);
  }

private:
  static bool isF32(Value value) {
    auto type = dyn_cast<TensorType>(value.getType());
    return type && type.getElementType().isF32();
  }

  void eraseDead(Operation *op) {
    SmallVector<Operation *> work{op};
    while (!work.empty()) {
      Operation *dead = work.pop_back_val();
      SmallVector<Operation *> producers;
      for (Value operand : dead->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && !llvm::is_contained(producers, producer))
          producers.push_back(producer);
      dead->dropAllReferences();
      for (Operation *producer : producers)
        if (producer->use_empty() && isMemoryEffectFree(producer) && producer->getBlock() == dead->getBlock())
          work.push_back(producer);
      erased.insert(dead);
      dead->remove();
    }
  }

public:
  ~Raiser() {
    for (Operation *op : erased)
      op->destroy();
  }
  bool isErased(Operation *op) const { return erased.contains(op); }

private:
  Value makeUnary(Value like, StringRef kind, Value x, std::optional<double> alpha = {},
                  std::optional<double> beta = {}) {
    auto number = [&](std::optional<double> v) { return v ? builder.getF64FloatAttr(*v) : FloatAttr(); };
    return ir::UnaryOp::create(builder, like.getLoc(), TypeRange{like.getType()}, ValueRange{x},
                               builder.getStringAttr(kind), number(alpha), number(beta), IntegerAttr(),
                               IntegerAttr())
        ->getResult(0);
  }

  // x * clip(x + 3, 0, 6) * (1/6), the constant anywhere in the product; or x * hard_sigmoid(x) with alpha
  // 1/6, beta 0.5
  Value hardSwish(Value root) {
    double factor = 1;
    Value product = scaledBy(root, factor);
    if (product && std::abs(factor - 1.0 / 6) < 1e-6)
      if (auto mul = binary(product, "mul"))
        for (Value side : mul.getInputs()) {
          Value shifted, x = otherOperand(mul, side);
          std::optional<float> three;
          if (isClip(side, 0, 6, shifted) && withNumber(shifted, "add", three) == x && near(three, 3))
            return makeUnary(root, "hard_swish", x);
        }
    auto mul = binary(root, "mul");
    if (!mul)
      return Value();
    for (Value side : mul.getInputs()) {
      Value x = otherOperand(mul, side);
      if (auto gate = unary(side, "hard_sigmoid");
          gate && gate.getInputs()[0] == x && gate.getAlpha() && gate.getBeta() &&
          std::abs(gate.getAlpha()->convertToDouble() - 1.0 / 6) < 1e-5 &&
          gate.getBeta()->convertToDouble() == 0.5)
        return makeUnary(root, "hard_swish", x);
      double sixth = 1;
      Value clipped = scaledBy(side, sixth), shifted;
      std::optional<float> three;
      if (clipped && std::abs(sixth - 1.0 / 6) < 1e-6 && isClip(clipped, 0, 6, shifted) &&
          withNumber(shifted, "add", three) == x && near(three, 3))
        return makeUnary(root, "hard_swish", x);
    }
    return Value();
  }

  // clip(x + 3, 0, 6) / 6
  Value hardSigmoid(Value root) {
    double factor = 1;
    Value clipped = scaledBy(root, factor), shifted;
    std::optional<float> three;
    if (!clipped || std::abs(factor - 1.0 / 6) > 1e-6 || !isClip(clipped, 0, 6, shifted))
      return Value();
    Value x = withNumber(shifted, "add", three);
    return x && near(three, 3) ? makeUnary(root, "hard_sigmoid", x, 1.0 / 6, 0.5) : Value();
  }

  // x * sigmoid(x)
  Value silu(Value root) {
    auto mul = binary(root, "mul");
    if (!mul)
      return Value();
    for (Value side : mul.getInputs())
      if (auto gate = unary(side, "sigmoid"); gate && gate.getInputs()[0] == otherOperand(mul, side))
        return makeUnary(root, "silu", gate.getInputs()[0]);
    return Value();
  }

  // x * (1 + g) * 0.5, the 0.5 anywhere in the product, with g = erf(x / sqrt(2)) -> gelu, or
  // tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) -> gelu_tanh
  Value gelu(Value root) {
    // Flatten the product into its number and its (two) tensor factors.
    double factor = 1;
    SmallVector<Value> factors, work{root};
    while (!work.empty() && factors.size() <= 2) {
      Value value = work.pop_back_val();
      double number = 1;
      if (Value x = scaledBy(value, number);
          x && std::abs(number - 0.5) < 1e-6 && (value == root || value.hasOneUse())) {
        factor *= number;
        work.push_back(x);
      } else if (auto mul = binary(value, "mul");
                 mul && factors.empty() && (value == root || value.hasOneUse())) {
        work.append({mul.getInputs()[0], mul.getInputs()[1]});
      } else {
        factors.push_back(value);
      }
    }
    if (factors.size() != 2 || std::abs(factor - 0.5) > 1e-6)
      return Value();
    for (unsigned side = 0; side < 2; ++side) {
      std::optional<float> one;
      Value gate = withNumber(factors[side], "add", one), x = factors[1 - side];
      if (!gate || !near(one, 1))
        continue;
      if (isErfGate(gate, x))
        return makeUnary(root, "gelu", x);
      if (isTanhGate(gate, x))
        return makeUnary(root, "gelu_tanh", x);
    }
    return Value();
  }

  static bool isErfGate(Value gate, Value x) {
    auto erf = unary(gate, "erf");
    double scale = 0;
    return erf && scaledBy(erf.getInputs()[0], scale) == x && std::abs(scale - M_SQRT1_2) < 1e-5;
  }

  static bool isTanhGate(Value gate, Value x) {
    auto tanh = unary(gate, "tanh");
    double scale = 0, cubic = 0;
    auto sum = tanh ? binary(scaledBy(tanh.getInputs()[0], scale), "add") : ir::BinaryOp();
    if (!sum || std::abs(scale - M_2_SQRTPI * M_SQRT1_2) > 1e-5)
      return false;
    Value cube = otherOperand(sum, x);
    return cube && isCubeOf(scaledBy(cube, cubic), x) && std::abs(cubic - 0.044715) < 1e-6;
  }

  // x^3, or the product x * x * x in either order
  static bool isCubeOf(Value value, Value x) {
    if (!value)
      return false;
    std::optional<float> three;
    if (withNumber(value, "pow", three) == x && near(three, 3))
      return true;
    auto product = binary(value, "mul");
    auto square = product ? binary(otherOperand(product, x), "mul") : ir::BinaryOp();
    return square && square.getInputs()[0] == x && square.getInputs()[1] == x;
  }

  // A mean over the trailing axes [first, rank) with kept dims; -1 if `value` is none.
  int meanFrom(Value value, Value &x) {
    auto reduce = value.getDefiningOp<ir::ReduceOp>();
    if (!reduce || reduce.getKind() != "mean" || (reduce.getKeepdims() && *reduce.getKeepdims() == 0))
      return -1;
    x = reduce.getInputs()[0];
    const TensorInfo &info = analysis.info(x);
    if (!info.hasRank)
      return -1;
    SmallVector<int64_t> axes;
    if (reduce.getAxes())
      axes.assign(reduce.getAxes()->begin(), reduce.getAxes()->end());
    else if (reduce.getInputs().size() == 2)
      if (const TensorInfo &operand = analysis.info(reduce.getInputs()[1]); operand.hasContents)
        for (Dim axis : operand.ints)
          if (axis.isConst())
            axes.push_back(axis.value());
    for (int64_t &axis : axes)
      axis = normalizeAxis(axis, info.rank());
    llvm::sort(axes);
    if (axes.empty() || axes.front() < 0)
      return -1;
    for (auto [index, axis] : llvm::enumerate(axes))
      if (axis != info.rank() - int64_t(axes.size()) + int64_t(index))
        return -1;
    return int(axes.front());
  }

  bool isSquareOf(Value value, Value x) {
    std::optional<float> two;
    if (withNumber(value, "pow", two) == x && near(two, 2))
      return true;
    auto mul = binary(value, "mul");
    return mul && mul.getInputs()[0] == x && mul.getInputs()[1] == x;
  }

  bool isTrailing(Value parameter, const TensorInfo &x, int first) {
    const TensorInfo &info = analysis.info(parameter);
    if (!info.hasRank || info.type != DType::F32 || info.rank() != x.rank() - first)
      return false;
    for (int i = 0; i < info.rank(); ++i)
      if (!info.dims[i].provablyEqual(x.dims[first + i]))
        return false;
    return true;
  }

  // (x - mean) / sqrt(mean((x - mean)^2) + eps) [* scale] [+ bias]. Anchored at the add of the bias, which
  // exporters always write.
  Value layerNorm(Value root) {
    auto add = binary(root, "add");
    if (!add)
      return Value();
    for (unsigned side = 0; side < 2; ++side) {
      auto mul = binary(add.getInputs()[side], "mul");
      if (!mul || !mul->getResult(0).hasOneUse())
        continue;
      for (unsigned inner = 0; inner < 2; ++inner) {
        auto quotient = binary(mul.getInputs()[inner], "div");
        if (!quotient || !quotient->getResult(0).hasOneUse())
          continue;
        auto centred = binary(quotient.getInputs()[0], "sub");
        auto root2 = unary(quotient.getInputs()[1], "sqrt");
        std::optional<float> epsilon;
        Value variance = root2 ? withNumber(root2.getInputs()[0], "add", epsilon) : Value();
        Value squares, x;
        int first = variance ? meanFrom(variance, squares) : -1;
        if (!centred || first < 0 || !isSquareOf(squares, centred->getResult(0)) ||
            meanFrom(centred.getInputs()[1], x) != first || x != centred.getInputs()[0])
          continue;
        const TensorInfo &info = analysis.info(x);
        Value scale = mul.getInputs()[1 - inner], bias = add.getInputs()[1 - side];
        if (!isTrailing(scale, info, first) || !isTrailing(bias, info, first))
          continue;
        return ir::LayerNormOp::create(builder, root.getLoc(), TypeRange{root.getType()},
                                       ValueRange{x, scale, bias}, builder.getStringAttr("layer"),
                                       builder.getI64IntegerAttr(first - info.rank()),
                                       builder.getF64FloatAttr(*epsilon), IntegerAttr())
            ->getResult(0);
      }
    }
    return Value();
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
  llvm::SetVector<Operation *> erased;
};

struct RaiseActivationsPass : impl::RaiseActivationsPassBase<RaiseActivationsPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Raiser raiser(getOperation());
    SmallVector<Operation *> roots;
    getOperation().walk([&](Operation *op) {
      if (isa<ir::BinaryOp>(op))
        roots.push_back(op);
    });
    // Last operations first: gelu's outer product before the products inside it.
    for (Operation *op : llvm::reverse(roots))
      if (!raiser.isErased(op))
        raiser.raise(op);
  }
};

} // namespace
} // namespace dspark

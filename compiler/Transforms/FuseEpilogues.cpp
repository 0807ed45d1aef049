// act(product + bias + residual) in one kernel: the intermediate tensors are never written.
#include "compiler/Support/ConstantTensor.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DimAnalysis.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

// Operand slots of each contraction's epilogue.
struct Slots {
  unsigned bias, residual;
  bool hasResidual;
};
std::optional<Slots> slotsOf(Operation *op) {
  if (isa<ir::MatmulOp, ir::ConvOp>(op))
    return Slots{2, 3, true};
  if (isa<ir::QlinearMatmulOp, ir::QlinearConvOp>(op)) // of an f32 result
    return Slots{8, 9, true};
  if (isa<ir::MatmulDequantOp>(op))
    return Slots{4, 5, true};
  if (isa<ir::ConvTransposeOp>(op))
    return Slots{2, 3, false};
  return std::nullopt;
}

bool isPresent(Operation *op, unsigned slot) {
  return slot < op->getNumOperands() && isa<TensorType>(op->getOperand(slot).getType());
}
bool hasActivation(Operation *op) {
  auto attr = op->getAttrOfType<StringAttr>("activation");
  return attr && !attr.getValue().empty();
}

class Fuser {
public:
  explicit Fuser(func::FuncOp func) : builder(func.getContext()) { analysis.run(func); }

  // Fuses users of `op` into it until one does not fit.
  void fuse(Operation *op) {
    while (op->getResult(0).hasOneUse() &&
           cast<TensorType>(op->getResult(0).getType()).getElementType().isF32()) {
      Operation *user = *op->getResult(0).user_begin();
      if (user->getBlock() != op->getBlock())
        return;
      Operation *fused = tryActivation(op, user);
      if (!fused)
        fused = tryAdd(op, user);
      if (!fused)
        return;
      op = fused;
    }
  }

private:
  // A copy of `op` in the user's place (so that every operand is defined by then), with changed operands and
  // attributes, for the user's result.
  Operation *replace(Operation *op, Operation *user, ValueRange operands, ArrayRef<NamedAttribute> changed) {
    builder.setInsertionPoint(user);
    NamedAttrList attributes(op->getAttrDictionary());
    for (NamedAttribute attr : changed)
      attributes.set(attr.getName(), attr.getValue());
    OperationState state(builder.getFusedLoc({op->getLoc(), user->getLoc()}), op->getName());
    state.addOperands(operands);
    state.addTypes(user->getResultTypes());
    state.propertiesAttr = attributes.getDictionary(op->getContext());
    Operation *fused = builder.create(state);
    analysis.setInfo(fused->getResult(0), analysis.info(user->getResult(0)));
    user->replaceAllUsesWith(fused);
    for (Operation *gone : {user, op}) {
      analysis.forget(gone);
      gone->erase();
    }
    return fused;
  }

  Operation *tryActivation(Operation *op, Operation *user) {
    if (hasActivation(op))
      return nullptr;
    auto withActivation = [&](StringRef name, std::optional<double> alpha, std::optional<double> beta) {
      SmallVector<NamedAttribute> changed{builder.getNamedAttr("activation", builder.getStringAttr(name))};
      if (alpha)
        changed.push_back(builder.getNamedAttr("act_alpha", builder.getF64FloatAttr(*alpha)));
      if (beta)
        changed.push_back(builder.getNamedAttr("act_beta", builder.getF64FloatAttr(*beta)));
      return replace(op, user, op->getOperands(), changed);
    };
    if (auto unary = dyn_cast<ir::UnaryOp>(user)) {
      static constexpr StringLiteral kKinds[] = {"relu", "hard_swish", "hard_sigmoid", "sigmoid",   "silu",
                                                 "tanh", "gelu",       "gelu_tanh",    "leaky_relu"};
      if (!llvm::is_contained(kKinds, unary.getKind()))
        return nullptr;
      auto number = [](std::optional<APFloat> value) {
        return value ? std::optional(value->convertToDouble()) : std::nullopt;
      };
      std::optional<double> alpha = number(unary.getAlpha()), beta = number(unary.getBeta());
      if (unary.getKind() == "hard_sigmoid" || unary.getKind() == "hard_swish") {
        bool isSwish = unary.getKind() == "hard_swish";
        alpha = alpha.value_or(isSwish ? 1.0 / 6 : double(0.2f));
        beta = beta.value_or(0.5);
      } else if (unary.getKind() == "leaky_relu") {
        alpha = alpha.value_or(double(0.01f));
      }
      return withActivation(unary.getKind(), alpha, beta);
    }
    if (auto clip = dyn_cast<ir::ClipOp>(user); clip && clip.getInputs()[0].getDefiningOp() == op) {
      double low = -std::numeric_limits<double>::infinity(), high = -low;
      for (unsigned i = 1; i < clip.getInputs().size(); ++i) {
        if (isa<NoneType>(clip.getInputs()[i].getType()))
          continue;
        std::optional<float> bound = ConstantTensor::splat(clip.getInputs()[i]);
        if (!bound)
          return nullptr;
        (i == 1 ? low : high) = *bound;
      }
      return withActivation("clip", low, high);
    }
    return nullptr;
  }

  Operation *tryAdd(Operation *op, Operation *user) {
    auto add = dyn_cast<ir::BinaryOp>(user);
    if (!add || add.getKind() != "add" || hasActivation(op))
      return nullptr;
    Value other = add.getInputs()[add.getInputs()[0].getDefiningOp() == op ? 1 : 0];
    Slots slots = *slotsOf(op);
    const TensorInfo &result = analysis.info(op->getResult(0)), &addend = analysis.info(other);
    if (!result.hasRank || !addend.hasRank || addend.type != DType::F32 || isPresent(op, slots.residual))
      return nullptr;
    if (!isPresent(op, slots.bias) && isa<ir::MatmulOp, ir::MatmulDequantOp>(op) && isRowBias(addend, result))
      return withOperand(op, user, slots.bias, other);
    if (!slots.hasResidual || addend.rank() != result.rank())
      return nullptr;
    for (int i = 0; i < result.rank(); ++i)
      if (!addend.dims[i].provablyEqual(result.dims[i]))
        return nullptr;
    return withOperand(op, user, slots.residual, other);
  }

  // [N], added to every row.
  bool isRowBias(const TensorInfo &addend, const TensorInfo &result) {
    return addend.rank() == 1 && addend.dims[0].isConst() && !addend.dims[0].is(1) &&
           addend.dims[0].provablyEqual(result.dims.back());
  }
  Operation *withOperand(Operation *op, Operation *user, unsigned slot, Value value) {
    SmallVector<Value> operands(op->getOperands());
    builder.setInsertionPoint(user);
    while (operands.size() < slot)
      operands.push_back(ir::NoneOp::create(builder, op->getLoc(), builder.getNoneType()));
    if (operands.size() == slot)
      operands.push_back(value);
    else
      operands[slot] = value;
    return replace(op, user, operands, {});
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
};

struct FuseEpiloguesPass : impl::FuseEpiloguesPassBase<FuseEpiloguesPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Fuser fuser(getOperation());
    SmallVector<Operation *> contractions;
    getOperation().walk([&](Operation *op) {
      if (slotsOf(op))
        contractions.push_back(op);
    });
    for (Operation *op : contractions)
      fuser.fuse(op);
  }
};

} // namespace
} // namespace dspark

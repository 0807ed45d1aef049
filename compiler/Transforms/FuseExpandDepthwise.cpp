// conv 1x1 -> depthwise conv  becomes  expand_depthwise (kernels/conv/expand_depthwise.cpp): the expanded
// image, the largest tensor of MobileNets and their kin, is neither written to memory nor read back. Runs on
// packed weights, so whatever chose precisions has seen two convolutions.
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DSpark.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSEEXPANDDEPTHWISEPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

// What fits an L2 cache beside everything else gains nothing.
constexpr int64_t kCacheBytes = 256 * 1024;

bool isPresent(Operation *op, unsigned slot) {
  return slot < op->getNumOperands() && isa<TensorType>(op->getOperand(slot).getType());
}

RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

bool isF32Image(Value value) {
  RankedTensorType type = typeOf(value);
  return type && type.getRank() == 4 && type.getElementType().isF32();
}

bool isPacked(ir::ConvOp conv, StringRef layout) {
  return conv.getLayout() == "nhwc" && conv.getPacked() == layout && isF32Image(conv->getResult(0)) &&
         !isPresent(conv, 3);
}

bool areAll(std::optional<ArrayRef<int64_t>> values, int64_t value) {
  return !values || llvm::all_of(*values, [&](int64_t v) { return v == value; });
}

bool isPointwise(ir::ConvOp conv) {
  RankedTensorType weights = typeOf(conv.getInputs()[1]);
  return (isPacked(conv, "panel16") || isPacked(conv, "bf16")) && conv.getGroup().value_or(1) == 1 &&
         weights.getDimSize(2) == 1 && weights.getDimSize(3) == 1 && areAll(conv.getStrides(), 1) &&
         areAll(conv.getPads(), 0) && isF32Image(conv.getInputs()[0]);
}

// Per image, as far as its size is known.
bool outgrowsCache(Value image) {
  int64_t bytes = 4;
  for (int64_t dim : typeOf(image).getShape().drop_front())
    if (ShapedType::isDynamic(dim) || llvm::MulOverflow(bytes, dim, bytes))
      return true;
  return bytes > kCacheBytes;
}

class Fuser {
public:
  explicit Fuser(MLIRContext *context) : builder(context) {}

  void tryFuse(ir::ConvOp depthwise) {
    if (!isPacked(depthwise, "depthwise"))
      return;
    auto expand = depthwise.getInputs()[0].getDefiningOp<ir::ConvOp>();
    if (!expand || !isPointwise(expand) || !expand->hasOneUse() ||
        expand->getBlock() != depthwise->getBlock() || !outgrowsCache(expand->getResult(0)))
      return;
    builder.setInsertionPoint(depthwise);
    Value none = ir::NoneOp::create(builder, depthwise.getLoc(), builder.getNoneType());
    auto bias = [&](Operation *op) { return isPresent(op, 2) ? op->getOperand(2) : none; };
    SmallVector<Value> operands = {expand.getInputs()[0], expand.getInputs()[1], bias(expand),
                                   depthwise.getInputs()[1], bias(depthwise)};
    NamedAttrList attributes(depthwise->getAttrDictionary());
    for (StringRef name : {"activation", "act_alpha", "act_beta"})
      if (Attribute value = expand->getAttr(name))
        attributes.set(("expand_" + name).str(), value);
    if (expand.getPacked() == "bf16")
      attributes.set("expand_packed", expand->getAttr("packed"));
    OperationState state(builder.getFusedLoc({expand.getLoc(), depthwise.getLoc()}),
                         ir::ExpandDepthwiseOp::getOperationName());
    state.addOperands(operands);
    state.addTypes(depthwise->getResultTypes());
    state.propertiesAttr = attributes.getDictionary(builder.getContext());
    depthwise->replaceAllUsesWith(builder.create(state));
    depthwise->erase();
    expand->erase();
  }

private:
  OpBuilder builder;
};

struct FuseExpandDepthwisePass : impl::FuseExpandDepthwisePassBase<FuseExpandDepthwisePass> {
  void runOnOperation() override {
    Fuser fuser(&getContext());
    SmallVector<ir::ConvOp> convolutions;
    getOperation().walk([&](ir::ConvOp conv) { convolutions.push_back(conv); });
    for (ir::ConvOp conv :
         convolutions) // none is erased before its turn but by its only reader, which comes later
      if (conv.getPacked() == "depthwise")
        fuser.tryFuse(conv);
  }
};

} // namespace
} // namespace dspark

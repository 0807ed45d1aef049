// matmul(x, w1, b1?), matmul(x, w2, b2?) ...  become  multi_matmul(x, w1, b1, w2, b2 ...): weights of few
// bits in one layout, under the same attributes. The rows of x are quantised once, and a small product (keys
// and values of grouped attention) no longer leaves threads without work. Each result keeps its own dense
// tensor and, to the bit, its values. Runs on packed weights.
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DSpark.h"
#include "kernels/matmul/packed_format.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSESHAREDINPUTPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

constexpr size_t kMostProducts = 8; // of the kernel

bool isPresent(Operation *op, unsigned slot) {
  return slot < op->getNumOperands() && isa<TensorType>(op->getOperand(slot).getType());
}
bool isConstant(Value value) {
  return value.getDefiningOp<ir::WeightOp>() || value.getDefiningOp<ir::ConstantOp>();
}

// Constants only, so that all can be moved to the first product.
bool canBeFused(ir::MatmulOp op) {
  return op.getPacked() && PackedFormat::named(*op.getPacked()) && op.getGated().value_or(0) == 0 &&
         isConstant(op.getInputs()[1]) && (!isPresent(op, 2) || isConstant(op.getInputs()[2])) &&
         !isPresent(op, 3);
}

class Fuser {
public:
  explicit Fuser(MLIRContext *context) : builder(context) {}

  void fuse(ArrayRef<ir::MatmulOp> products) {
    ir::MatmulOp first = products.front();
    builder.setInsertionPoint(first);
    SmallVector<Value> operands = {first.getInputs()[0]};
    SmallVector<Type> types;
    SmallVector<Location> places;
    for (ir::MatmulOp product : products) {
      operands.push_back(atHand(product.getInputs()[1], first));
      operands.push_back(isPresent(product, 2)
                             ? atHand(product.getInputs()[2], first)
                             : Value(ir::NoneOp::create(builder, product.getLoc(), builder.getNoneType())));
      types.push_back(product->getResult(0).getType());
      places.push_back(product.getLoc());
    }
    auto fused =
        ir::KernelOp::create(builder, builder.getFusedLoc(places), types,
                             builder.getStringAttr("multi_matmul"), operands, first->getAttrDictionary());
    for (auto [product, result] : llvm::zip(products, fused->getResults())) {
      product->getResult(0).replaceAllUsesWith(result);
      product->erase();
    }
  }

private:
  // A constant before `op`.
  static Value atHand(Value constant, Operation *op) {
    Operation *source = constant.getDefiningOp();
    if (source->getBlock() == op->getBlock() && op->isBeforeInBlock(source))
      source->moveBefore(op);
    return constant;
  }

  OpBuilder builder;
};

struct FuseSharedInputPass : impl::FuseSharedInputPassBase<FuseSharedInputPass> {
  void runOnOperation() override {
    llvm::MapVector<std::tuple<Value, Block *, Attribute>, SmallVector<ir::MatmulOp>> siblings;
    getOperation().walk([&](ir::MatmulOp op) {
      if (canBeFused(op))
        siblings[{op.getInputs()[0], op->getBlock(), op->getAttrDictionary()}].push_back(op);
    });
    Fuser fuser(&getContext());
    for (auto &[shared, products] : siblings)
      if (products.size() > 1 && products.size() <= kMostProducts)
        fuser.fuse(products);
  }
};

} // namespace
} // namespace dspark

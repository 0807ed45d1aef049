// y = act-free contraction(x, w, b), then y*s + t with s and t constant per output channel, is contraction(x,
// w*s, b*s+t).
#include "compiler/Support/ConstantTensor.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/OpFactory.h"
#include <cmath>

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FOLDAFFINEPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

// A contraction with constant f32 weights and nothing fused yet.
struct Contraction {
  Operation *op = nullptr;
  ConstantTensor weight;
  std::optional<ConstantTensor> bias;
  int64_t channels = 0; // of the result
  int channelAxis = 0;  // of the result
  int weightAxis = 0;   // of the weight: where its output channels are
};

class Folder {
public:
  Folder(func::FuncOp func, std::shared_ptr<WeightStore> weights)
      : weights(std::move(weights)), builder(func.getContext()) {}

  void run(func::FuncOp func) {
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) {
      if (isa<ir::BatchNormOp, ir::BinaryOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      builder.setInsertionPoint(op);
      if (auto norm = dyn_cast<ir::BatchNormOp>(op))
        foldBatchNorm(norm);
      else
        foldBinary(cast<ir::BinaryOp>(op));
    }
  }

private:
  std::optional<Contraction> contractionOf(Value value) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<ir::ConvOp, ir::ConvTransposeOp, ir::MatmulOp>(op) || !value.hasOneUse())
      return std::nullopt;
    auto type = dyn_cast<RankedTensorType>(value.getType());
    auto text = [&](StringRef name) {
      auto attr = op->getAttrOfType<StringAttr>(name);
      return attr ? attr.getValue() : StringRef();
    };
    auto number = [&](StringRef name, int64_t otherwise) {
      auto attr = op->getAttrOfType<IntegerAttr>(name);
      return attr ? attr.getInt() : otherwise;
    };
    if (!type || op->getNumOperands() > 3 || !text("activation").empty() || !text("packed").empty() ||
        (!text("layout").empty() && text("layout") != "nchw"))
      return std::nullopt;
    Contraction c;
    c.op = op;
    std::optional<ConstantTensor> weight = ConstantTensor::of(op->getOperand(1), weights);
    if (!weight)
      return std::nullopt;
    c.weight = *weight;
    int rank = int(type.getRank());
    if (isa<ir::MatmulOp>(op)) {
      if (weight->dims.size() != 2 || rank < 2)
        return std::nullopt;
      c.channelAxis = rank - 1;
      c.weightAxis = number("trans_b", 0) ? 0 : 1;
    } else {
      if (isa<ir::ConvTransposeOp>(op) && number("group", 1) != 1)
        return std::nullopt;
      c.channelAxis = 1;
      c.weightAxis = isa<ir::ConvOp>(op) ? 0 : 1;
    }
    c.channels = weight->dims[size_t(c.weightAxis)];
    if (op->getNumOperands() == 3 && !isa<NoneType>(op->getOperand(2).getType())) {
      c.bias = ConstantTensor::of(op->getOperand(2), weights);
      if (!c.bias || c.bias->elements() != c.channels)
        return std::nullopt;
    }
    return c;
  }

  // The [channels] values of a constant that varies along the channel axis of a tensor of `rank` only, or is
  // one number.
  std::optional<ConstantTensor> perChannel(const ConstantTensor &constant, int rank, int channelAxis,
                                           int64_t channels) {
    if (int(constant.dims.size()) > rank)
      return std::nullopt;
    if (constant.elements() == 1)
      return ConstantTensor::zip(ConstantTensor::filled({channels}, 0, constant.name), constant.reshaped({1}),
                                 [](float, float value) { return value; });
    int axis = channelAxis - (rank - int(constant.dims.size()));
    if (axis < 0 || constant.dims[size_t(axis)] != channels || constant.elements() != channels)
      return std::nullopt;
    return constant.reshaped({channels});
  }

  // contraction * scale + shift; either may be absent.
  void rewrite(Contraction &c, Operation *end, std::optional<ConstantTensor> scale,
               std::optional<ConstantTensor> shift) {
    ConstantTensor bias =
        c.bias ? c.bias->reshaped({c.channels}) : ConstantTensor::filled({c.channels}, 0, c.weight.name);
    Location loc = builder.getFusedLoc({c.op->getLoc(), end->getLoc()});
    Value weight = c.op->getOperand(1);
    if (scale) {
      std::vector<int64_t> dims(c.weight.dims.size(), 1);
      dims[size_t(c.weightAxis)] = c.channels;
      auto times = [](float a, float b) { return a * b; };
      weight = ConstantTensor::zip(c.weight, scale->reshaped(dims), times)
                   .materialize(builder, loc, weights, ".scaled");
      if (c.bias)
        bias = ConstantTensor::zip(bias, *scale, times);
    }
    if (shift)
      bias = ConstantTensor::zip(bias, *shift, [](float a, float b) { return a + b; });
    SmallVector<Value> operands{c.op->getOperand(0), weight};
    if (c.bias || shift)
      operands.push_back(bias.materialize(builder, loc, weights, ".bias"));
    OperationState state(loc, c.op->getName());
    state.addOperands(operands);
    state.addTypes(end->getResultTypes());
    state.propertiesAttr = c.op->getAttrDictionary();
    Operation *folded = builder.create(state);
    end->replaceAllUsesWith(folded);
    end->erase();
    c.op->erase();
  }

  void foldBinary(ir::BinaryOp op) {
    if (op.getInputs().size() != 2)
      return;
    StringRef kind = op.getKind();
    bool commutes = kind == "add" || kind == "mul";
    for (unsigned side = 0; side < (commutes ? 2u : 1u); ++side) {
      std::optional<Contraction> c = contractionOf(op.getInputs()[side]);
      std::optional<ConstantTensor> constant = ConstantTensor::of(op.getInputs()[1 - side], weights);
      if (!c || !constant || op.getInputs()[side].getType() != op->getResult(0).getType())
        continue;
      int rank = int(cast<RankedTensorType>(op->getResult(0).getType()).getRank());
      std::optional<ConstantTensor> values = perChannel(*constant, rank, c->channelAxis, c->channels);
      if (!values)
        continue;
      if (kind == "add")
        return rewrite(*c, op, std::nullopt, values);
      if (kind == "sub")
        return rewrite(*c, op, std::nullopt, ConstantTensor::map(*values, [](float v) { return -v; }));
      if (kind == "mul")
        return rewrite(*c, op, values, std::nullopt);
      if (kind == "div")
        return rewrite(*c, op, ConstantTensor::map(*values, [](float v) { return 1 / v; }), std::nullopt);
    }
  }

  void foldBatchNorm(ir::BatchNormOp op) {
    if (op.getInputs().size() != 5)
      return;
    std::optional<ConstantTensor> parameters[4];
    for (int i = 0; i < 4; ++i)
      if (!(parameters[i] = ConstantTensor::of(op.getInputs()[i + 1], weights)))
        return;
    auto &[gamma, beta, mean, variance] = parameters;
    float epsilon = op.getEpsilon() ? float(op.getEpsilon()->convertToDouble()) : 1e-5f;
    auto times = [](float a, float b) { return a * b; };
    ConstantTensor scale = ConstantTensor::zip(
        *gamma, ConstantTensor::map(*variance, [epsilon](float v) { return 1 / std::sqrt(v + epsilon); }),
        times);
    ConstantTensor shift = ConstantTensor::zip(*beta, ConstantTensor::zip(*mean, scale, times),
                                               [](float b, float m) { return b - m; });
    if (std::optional<Contraction> c = contractionOf(op.getInputs()[0]); c && c->channelAxis == 1)
      return rewrite(*c, op, scale, shift);
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || type.getRank() < 2 || !type.getElementType().isF32())
      return;
    // No convolution to fold into: x * scale + shift, which later fuses with its neighbours.
    std::vector<int64_t> dims(size_t(type.getRank()) - 1, 1);
    dims[0] = scale.elements();
    Value product = binary(op, "mul", op.getInputs()[0],
                           scale.reshaped(dims).materialize(builder, op.getLoc(), weights, ".scale"));
    Value sum =
        binary(op, "add", product, shift.reshaped(dims).materialize(builder, op.getLoc(), weights, ".shift"));
    op->getResult(0).replaceAllUsesWith(sum);
    op->erase();
  }

  Value binary(Operation *like, StringRef kind, Value a, Value b) {
    return ir::BinaryOp::create(builder, like->getLoc(), like->getResultTypes(), ValueRange{a, b},
                                builder.getStringAttr(kind))
        ->getResult(0);
  }

  std::shared_ptr<WeightStore> weights;
  OpBuilder builder;
};

struct FoldAffinePass : impl::FoldAffinePassBase<FoldAffinePass> {
  explicit FoldAffinePass(std::shared_ptr<WeightStore> store)
      : weights(store ? std::move(store) : std::make_shared<WeightStore>()) {}
  void runOnOperation() override { Folder(getOperation(), weights).run(getOperation()); }
  std::shared_ptr<WeightStore> weights;
};

} // namespace

std::unique_ptr<Pass> createFoldAffinePass(std::shared_ptr<WeightStore> weights) {
  return std::make_unique<FoldAffinePass>(std::move(weights));
}

} // namespace dspark

// Constant operands of contractions get the layout their kernels read (runtime/format/PackedLayout.h).
#include "compiler/Support/LocationNames.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/PrecisionChoices.h"
#include "compiler/Transforms/SplitByRows.h"
#include "dialects/DSpark/Infer.h"
#include "runtime/format/PackedLayout.h"
#include "runtime/format/QuantizedWeight.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

template <typename Shape>
Status packInto(const std::string &layout, const Shape &shape, std::span<const std::byte> plain,
                std::vector<std::byte> &bytes) {
  if constexpr (std::is_same_v<Shape, MatrixWeight>)
    if (shape.elementBytes == 4 && isQuantizedLayout(layout)) {
      DSPARK_ASSIGN_OR_RETURN(uint64_t size, quantizedBytes(layout, shape.k, shape.n));
      bytes.resize(size);
      std::vector<float> values(plain.size() / 4); // the file's bytes may lie at any address
      std::memcpy(values.data(), plain.data(), values.size() * 4);
      return packQuantized(layout, shape.k, shape.n, shape.isTransposed, values, bytes);
    }
  DSPARK_ASSIGN_OR_RETURN(uint64_t size, packedBytes(layout, shape));
  bytes.resize(size);
  return packWeight(layout, shape, plain, bytes);
}

// Adds the packed form of `source` to the store. `Shape` is MatrixWeight or ConvWeight.
template <typename Shape>
std::string addPacked(const std::shared_ptr<WeightStore> &weights, std::string source, StringRef layout,
                      const Shape &shape, RankedTensorType type) {
  Weight packed;
  packed.type = ir::dtypeOf(type.getElementType());
  packed.dims.assign(type.getShape().begin(), type.getShape().end());
  packed.layout = layout.str();
  packed.derive = [store = std::weak_ptr<WeightStore>(weights), source, layout = layout.str(),
                   shape](std::vector<std::byte> &bytes, std::string &error) {
    std::shared_ptr<WeightStore> alive = store.lock();
    std::optional<WeightBytes> plain = alive ? alive->read(source, error) : std::nullopt;
    if (!plain)
      return false;
    Status status = packInto(layout, shape, plain->bytes(), bytes);
    if (!status.isOk()) {
      error = status.message();
      return false;
    }
    alive->release(source);
    return true;
  };
  return weights->add(source + "." + layout.str(), std::move(packed));
}

// Names of packed forms by source, layout and transposition, of all functions of a module.
using PackedNames = std::map<std::string, std::string>;

bool isRecurrent(Operation *op) {
  auto kernel = dyn_cast<ir::KernelOp>(op);
  return kernel ? kernel.getName() == "dynamic_quantize_lstm" : isa<ir::LstmOp, ir::GruOp, ir::RnnOp>(op);
}

bool isAttention(Operation *op) {
  auto kernel = dyn_cast<ir::KernelOp>(op);
  return kernel && kernel.getName() == "attention";
}

class Packer {
public:
  Packer(func::FuncOp func, std::shared_ptr<WeightStore> weights, PackedNames &packed,
         PrecisionChoices *choices)
      : weights(std::move(weights)), packed(packed), choices(choices), builder(func.getContext()),
        factory(builder, analysis) {
    if (choices && !choices->chosen.empty())
      analysis.run(func);
  }

  void pack(Operation *op) {
    if (isRecurrent(op))
      return packRecurrent(op);
    if (isAttention(op))
      return chooseArithmetic(op);
    Value operand = op->getOperand(weightSlot(op));
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    std::optional<std::string> weight = plainWeight(operand);
    if (!type || !weight || !text(op, "packed").empty())
      return;
    if (isa<ir::MatmulOp>(op) && type.getElementType().isF32())
      packProduct(op, *weight, type);
    else if (isa<ir::MatmulOp>(op) && (type.getElementType().isF16() || type.getElementType().isBF16()) &&
             number(op, "trans_a", 0) == 0)
      packMatrix(op, *weight, type, type.getElementType().isF16() ? "f16" : "bf16");
    else if (isa<ir::MatmulDequantOp>(op) && type.getElementType().isSignlessInteger(8))
      packMatrix(op, *weight, type, "panel16");
    else if (isa<ir::QlinearMatmulOp>(op))
      packMatrix(op, *weight, type, "panel16k4");
    else if (isa<ir::ConvOp, ir::ConvTransposeOp>(op) && type.getElementType().isF32() &&
             text(op, "layout") == "nhwc")
      packConv(op, *weight, type, convLayout(op));
    else if (isa<ir::QlinearConvOp>(op) && text(op, "layout") == "nhwc")
      packConv(op, *weight, type, "panel16k4");
  }

private:
  static unsigned weightSlot(Operation *op) {
    return isa<ir::QlinearMatmulOp, ir::QlinearConvOp>(op) ? 3 : 1;
  }

  // The store's name of row-major constant bytes; small constants of the IR are added to the store. Nullopt
  // if `value` is no constant.
  std::optional<std::string> plainWeight(Value value) {
    if (auto weight = value.getDefiningOp<ir::WeightOp>())
      return weight.getLayout() ? std::nullopt : std::optional(weight.getWeight().str());
    auto constant = value.getDefiningOp<ir::ConstantOp>();
    if (!constant)
      return std::nullopt;
    auto [it, isNew] = constants.try_emplace(constant.getValue(), "");
    if (isNew) {
      Weight weight;
      auto type = cast<RankedTensorType>(constant.getType());
      weight.type = ir::dtypeOf(type.getElementType());
      weight.dims.assign(type.getShape().begin(), type.getShape().end());
      weight.owned = ir::literalBytes(constant.getValue());
      it->second = weights->add("constant", std::move(weight));
    }
    return it->second;
  }

  static StringRef text(Operation *op, StringRef name) {
    auto attr = op->getAttrOfType<StringAttr>(name);
    return attr ? attr.getValue() : StringRef();
  }
  static int64_t number(Operation *op, StringRef name, int64_t otherwise) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : otherwise;
  }

  // f32 weights, in fewer bits where that was chosen.
  void packProduct(Operation *op, const std::string &weight, RankedTensorType type) {
    StringRef layout = "panel16";
    if (choices && type.getRank() == 2 && number(op, "trans_a", 0) == 0) {
      bool isTransposed = number(op, "trans_b", 0) != 0;
      std::string node = firstLocationName(op->getLoc());
      choices->products.push_back(
          {node, type.getDimSize(isTransposed ? 1 : 0), type.getDimSize(isTransposed ? 0 : 1)});
      auto chosen = choices->chosen.find(node);
      if (chosen != choices->chosen.end() && chosen->second.layout != kStaticInt8) {
        choices->applied.insert(chosen->first);
        return packChosen(op, weight, type, chosen->second);
      }
    }
    packMatrix(op, weight, type, layout);
  }

  void packChosen(Operation *op, const std::string &weight, RankedTensorType type,
                  const PrecisionChoice &choice) {
    if (choice.mostRows > 0) {
      SplitProduct split = splitByRows(op, choice.mostRows, factory);
      packMatrix(split.few ? split.many : op, weight, type, "panel16");
      if (!split.few)
        return;
      op = split.few;
    }
    if (!choice.arithmetic.empty())
      op->setAttr("arithmetic", builder.getStringAttr(choice.arithmetic));
    packMatrix(op, weight, type, choice.layout);
  }

  void packMatrix(Operation *op, const std::string &weight, RankedTensorType type, StringRef layout) {
    if (type.getRank() != 2)
      return;
    MatrixWeight shape;
    shape.isTransposed = number(op, "trans_b", 0) != 0;
    shape.k = type.getDimSize(shape.isTransposed ? 1 : 0);
    shape.n = type.getDimSize(shape.isTransposed ? 0 : 1);
    setElements(shape, type);
    use(op, weightSlot(op), weight, type, layout, shape);
  }

  static bool isPacked(Operation *op) {
    auto kernel = dyn_cast<ir::KernelOp>(op);
    DictionaryAttr attributes = kernel ? kernel.getConfigAttr() : op->getAttrDictionary();
    return attributes && attributes.contains("packed");
  }
  void setPacked(Operation *op, StringRef layout) {
    if (auto kernel = dyn_cast<ir::KernelOp>(op))
      setConfig(kernel, "packed", layout);
    else
      op->setAttr("packed", builder.getStringAttr(layout));
  }
  void setConfig(ir::KernelOp kernel, StringRef name, StringRef value) {
    NamedAttrList config(kernel.getConfigAttr());
    config.set(name, builder.getStringAttr(value));
    kernel.setConfigAttr(config.getDictionary(builder.getContext()));
  }

  // Of attention, which has no weights to pack.
  void chooseArithmetic(Operation *op) {
    if (!choices)
      return;
    std::string node = firstLocationName(op->getLoc());
    choices->attentions.push_back(node);
    auto chosen = choices->chosen.find(node);
    if (chosen == choices->chosen.end() || chosen->second.layout != "bf16")
      return;
    choices->applied.insert(node);
    setConfig(cast<ir::KernelOp>(op), "arithmetic", "bf16");
  }

  // W and R of every direction, which kernels read both packed or both as they are.
  void packRecurrent(Operation *op) {
    bool isBytes = isa<ir::KernelOp>(op);
    std::optional<std::string> names[2];
    for (unsigned k : {0, 1}) {
      auto type = dyn_cast<RankedTensorType>(op->getOperand(1 + k).getType());
      if (isPacked(op) || !type || type.getRank() != 3 || !(isBytes || type.getElementType().isF32()))
        return;
      names[k] = plainWeight(op->getOperand(1 + k));
      if (!names[k])
        return;
    }
    for (unsigned k : {0, 1}) {
      auto type = cast<RankedTensorType>(op->getOperand(1 + k).getType());
      MatrixWeight shape;
      shape.isTransposed = !isBytes;
      shape.batch = type.getDimSize(0);
      shape.k = type.getDimSize(isBytes ? 1 : 2);
      shape.n = type.getDimSize(isBytes ? 2 : 1);
      setElements(shape, type);
      use(op, 1 + k, *names[k], type, isBytes ? "panel16k4" : "panel16", shape);
    }
  }

  template <typename Shape> static void setElements(Shape &shape, RankedTensorType type) {
    shape.elementBytes = type.getElementTypeBitWidth() / 8;
    shape.isSigned = !type.getElementType().isUnsignedInteger();
  }

  void packConv(Operation *op, const std::string &weight, RankedTensorType type, StringRef layout) {
    ConvWeight shape;
    shape.group = number(op, "group", 1);
    shape.isTransposed = isa<ir::ConvTransposeOp>(op);
    int64_t first = type.getDimSize(0), second = type.getDimSize(1);
    shape.inputs = shape.isTransposed ? first : second * shape.group;
    shape.outputs = shape.isTransposed ? second * shape.group : first;
    for (int64_t dim : type.getShape().drop_front(2))
      shape.spatial *= dim;
    setElements(shape, type);
    bool isDepthwise =
        !shape.isTransposed && shape.group > 1 && shape.inputs == shape.group && shape.outputs == shape.group;
    use(op, weightSlot(op), weight, type, isDepthwise ? "depthwise" : layout, shape);
  }

  // Of f32 weights: bf16 where that was chosen.
  StringRef convLayout(Operation *op) {
    if (!choices || !isa<ir::ConvOp>(op))
      return "panel16";
    auto chosen = choices->chosen.find(firstLocationName(op->getLoc()));
    if (chosen == choices->chosen.end() || chosen->second.layout != "bf16")
      return "panel16";
    choices->applied.insert(chosen->first);
    return "bf16";
  }

  template <typename Shape>
  void use(Operation *op, unsigned slot, const std::string &weight, RankedTensorType type, StringRef layout,
           const Shape &shape) {
    builder.setInsertionPoint(op);
    // One packed form per source, layout and transposition, however many operations use it.
    std::string key = weight + "|" + layout.str() + "|" + (shape.isTransposed ? "t" : "");
    auto [it, isNew] = packed.try_emplace(key, "");
    if (isNew)
      it->second = addPacked(weights, weight, layout, shape, type);
    Value plain = op->getOperand(slot);
    Value value = ir::WeightOp::create(builder, plain.getLoc(), type,
                                       FlatSymbolRefAttr::get(builder.getContext(), it->second),
                                       builder.getStringAttr(layout));
    op->setOperand(slot, value);
    setPacked(op, layout);
    if (plain.use_empty()) {
      analysis.forget(plain.getDefiningOp());
      plain.getDefiningOp()->erase();
    }
  }

  std::shared_ptr<WeightStore> weights;
  PackedNames &packed;
  PrecisionChoices *choices;
  OpBuilder builder;
  ir::DimAnalysis analysis; // of functions with choices
  ir::OpFactory factory;
  llvm::DenseMap<Attribute, std::string> constants;
};

struct PackWeightsPass : impl::PackWeightsPassBase<PackWeightsPass> {
  PackWeightsPass(std::shared_ptr<WeightStore> store, PrecisionChoices *choices)
      : weights(store ? std::move(store) : std::make_shared<WeightStore>()), choices(choices) {}
  void runOnOperation() override {
    Packer packer(getOperation(), weights, *packed, choices);
    SmallVector<Operation *> contractions;
    getOperation().walk([&](Operation *op) {
      if (isa<ir::MatmulOp, ir::MatmulDequantOp, ir::ConvOp, ir::ConvTransposeOp, ir::QlinearMatmulOp,
              ir::QlinearConvOp>(op) ||
          isRecurrent(op) || isAttention(op))
        contractions.push_back(op);
    });
    for (Operation *op : contractions)
      packer.pack(op);
  }
  std::shared_ptr<WeightStore> weights;
  std::shared_ptr<PackedNames> packed = std::make_shared<PackedNames>(); // functions share their weights
  PrecisionChoices *choices;
};

} // namespace

std::unique_ptr<Pass> createPackWeightsPass(std::shared_ptr<WeightStore> weights) {
  return createPackWeightsPass(std::move(weights), nullptr);
}

std::unique_ptr<Pass> createPackWeightsPass(std::shared_ptr<WeightStore> weights, PrecisionChoices *choices) {
  return std::make_unique<PackWeightsPass>(std::move(weights), choices);
}

} // namespace dspark

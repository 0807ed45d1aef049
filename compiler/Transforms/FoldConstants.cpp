// op(constants) -> a weight made when the plan is written: exporters reorder an LSTM's gates by slices and a
// concatenation of its weights, and transpose shared ones. Only where that does not make the plan larger: an
// int8 weight behind a cast stays int8. Filters of convolutions, whose kernels read f32, are made whatever
// their size: unpacking and packing them in every run costs as much as the convolution. Tensors full of one
// number take no room in the plan (runtime/format/LineRuns.h), so they are weights too.
#include "compiler/Support/Evaluate.h"
#include "compiler/Support/LocationNames.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/Infer.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FOLDCONSTANTSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

// Pure functions of their operands whose results every machine gives alike.
constexpr StringLiteral kFoldable[] = {"binary",  "cast",      "clip",   "concat",   "expand", "flatten",
                                       "gather",  "pad",       "reduce", "reshape",  "slice",  "split",
                                       "squeeze", "transpose", "unary",  "unsqueeze"};
constexpr StringLiteral kFill = "constant_of_shape";
// Bytes that a model's fills may have together: the compiler makes each of them once, the runtime keeps them
// all. VGG-19's weights have 575e6.
constexpr int64_t kMostFilled = int64_t(1) << 30;

constexpr StringLiteral kDequantize = "dequantize_linear";

bool isFoldable(StringRef name) { return llvm::is_contained(kFoldable, name) || name == kDequantize; }

// Whether a value becomes the filter of f32 convolutions, and nothing else.
bool isFilter(Value value, int depth = 0) {
  auto isFilterUse = [&](OpOperand &use) {
    StringRef name = ir::catalogueName(use.getOwner());
    if (name == "conv" || name == "conv_transpose")
      return use.getOperandNumber() == 1;
    return depth < 4 && isFoldable(name) && use.getOwner()->getNumResults() == 1 &&
           isFilter(use.getOwner()->getResult(0), depth + 1);
  };
  return !value.use_empty() && llvm::all_of(value.getUses(), isFilterUse);
}

// One operand: bytes that are here, or a weight of the store.
struct Source {
  HostBytes tensor;   // without bytes where `weight` names them
  std::string weight; // of the store
};

// An operation on constants, kept until the plan is written.
struct Recipe {
  std::string op;
  ir::AttrList attributes;
  std::vector<Source> operands;
  std::vector<HostBytes> results; // without bytes

  bool run(const WeightStore &store, size_t result, std::vector<std::byte> &bytes, std::string &error) const {
    std::vector<HostBytes> in, out = results;
    for (const Source &source : operands) {
      in.push_back(source.tensor);
      if (source.weight.empty())
        continue;
      std::optional<WeightBytes> read = store.read(source.weight, error);
      if (!read)
        return false;
      in.back().bytes.assign(read->bytes().begin(), read->bytes().end());
      store.release(source.weight);
    }
    if (!evaluate(op, attributes.view(), in, out, error))
      return false;
    bytes = std::move(out[result].bytes);
    return true;
  }
};

std::optional<HostBytes> staticTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return std::nullopt;
  HostBytes result{ir::dtypeOf(tensor.getElementType()), {}, {}};
  result.dims.assign(tensor.getShape().begin(), tensor.getShape().end());
  // Strings lie in the weight store as the plan file has them, which kernels do not read.
  bool isPlain = result.type != DType::Undefined && result.type != DType::String;
  return isPlain ? std::optional(std::move(result)) : std::nullopt;
}

int64_t byteSize(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return dtypeBytes(ir::dtypeOf(tensor.getElementType()), tensor.getNumElements());
}

// INT64_MAX where it does not fit.
int64_t checkedByteSize(const HostBytes &tensor) {
  int64_t elements = 1;
  for (int64_t dim : tensor.dims)
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > INT64_MAX / 16)
      return INT64_MAX;
  return dtypeBytes(tensor.type, elements);
}

class Folder {
public:
  Folder(MLIRContext *context, std::shared_ptr<WeightStore> weights)
      : weights(std::move(weights)), builder(context) {}

  // A fill -> a weight, while those of the model have not too many bytes.
  void foldFill(Operation *op) {
    std::optional<HostBytes> result = staticTensor(op->getResult(0).getType());
    std::optional<Source> shape = sourceOf(op->getOperand(0));
    if (!result || !shape || !shape->weight.empty())
      return;
    int64_t bytes = checkedByteSize(*result);
    if (bytes > kMostFilled - filled)
      return;
    filled += bytes;
    auto recipe = std::make_shared<Recipe>();
    recipe->op = kFill.str();
    recipe->operands.push_back(std::move(*shape));
    recipe->results.push_back(std::move(*result));
    ir::catalogueAttributes(op, recipe->attributes);
    replace(op, nodeName(op, "fill") + "." + kFill.str(), recipe);
  }

  void fold(Operation *op) {
    auto recipe = std::make_shared<Recipe>();
    recipe->op = ir::catalogueName(op).str();
    int64_t operandBytes = 0, resultBytes = 0;
    std::string name;
    for (Value operand : op->getOperands()) {
      std::optional<Source> source = sourceOf(operand);
      if (!source)
        return;
      if (source->tensor.type != DType::Undefined)
        operandBytes += byteSize(operand.getType());
      if (name.empty())
        name = source->weight;
      recipe->operands.push_back(std::move(*source));
    }
    for (Type type : op->getResultTypes()) {
      std::optional<HostBytes> result = staticTensor(type);
      if (!result)
        return;
      resultBytes += byteSize(type);
      recipe->results.push_back(std::move(*result));
    }
    // Without a weight among them the operands are small, and passes want to see their numbers.
    bool isLarger = resultBytes > operandBytes || recipe->op == kDequantize;
    if ((isLarger || name.empty()) && !isFilter(op->getResult(0)))
      return;
    ir::catalogueAttributes(op, recipe->attributes);
    replace(op, (name.empty() ? nodeName(op, "filter") : name) + "." + recipe->op, recipe);
  }

private:
  static std::string nodeName(Operation *op, StringRef otherwise) {
    std::string name = firstLocationName(op->getLoc());
    return name.empty() ? otherwise.str() : name;
  }

  std::optional<Source> sourceOf(Value value) const {
    if (isa<NoneType>(value.getType()))
      return Source{};
    std::optional<HostBytes> tensor = staticTensor(value.getType());
    if (!tensor)
      return std::nullopt;
    Source source{std::move(*tensor), ""};
    if (auto constant = value.getDefiningOp<ir::ConstantOp>())
      source.tensor.bytes = ir::literalBytes(constant.getValue());
    else if (auto weight = value.getDefiningOp<ir::WeightOp>();
             weight && weight.getLayout().value_or("").empty())
      source.weight = weight.getWeight().str();
    else
      return std::nullopt;
    return source;
  }

  void replace(Operation *op, const std::string &name, const std::shared_ptr<Recipe> &recipe) {
    builder.setInsertionPoint(op);
    for (OpResult result : op->getResults()) {
      Weight weight;
      weight.type = recipe->results[result.getResultNumber()].type;
      weight.dims = recipe->results[result.getResultNumber()].dims;
      // The store holds the recipe, so the recipe must not own the store.
      weight.derive = [recipe, store = std::weak_ptr<WeightStore>(weights),
                       index = result.getResultNumber()](std::vector<std::byte> &bytes, std::string &error) {
        std::shared_ptr<WeightStore> alive = store.lock();
        return alive && recipe->run(*alive, index, bytes, error);
      };
      std::string unique = weights->add(name, std::move(weight));
      result.replaceAllUsesWith(ir::WeightOp::create(builder, op->getLoc(), result.getType(),
                                                     FlatSymbolRefAttr::get(builder.getContext(), unique),
                                                     StringAttr()));
    }
    op->erase();
  }

  std::shared_ptr<WeightStore> weights;
  OpBuilder builder;
  int64_t filled = 0; // bytes
};

struct FoldConstantsPass : impl::FoldConstantsPassBase<FoldConstantsPass> {
  explicit FoldConstantsPass(std::shared_ptr<WeightStore> store)
      : weights(store ? std::move(store) : std::make_shared<WeightStore>()) {}
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (!isa<ir::ShapeInterface>(op))
        return;
      StringRef name = ir::catalogueName(op);
      if (name == kFill || isFoldable(name))
        ops.push_back(op);
    });
    Folder folder(&getContext(), weights);
    for (Operation *op : ops) // in program order, so that a chain folds whole
      if (ir::catalogueName(op) == kFill)
        folder.foldFill(op);
      else
        folder.fold(op);
  }
  std::shared_ptr<WeightStore> weights;
};

} // namespace

std::unique_ptr<Pass> createFoldConstantsPass(std::shared_ptr<WeightStore> weights) {
  return std::make_unique<FoldConstantsPass>(std::move(weights));
}

} // namespace dspark

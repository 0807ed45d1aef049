#include "compiler/Pipeline/EmitPlan.h"
#include "compiler/Support/LocationNames.h"
#include "dialects/DSpark/Infer.h"
#include "dialects/Plan/Plan.h"
#include "runtime/format/LineRuns.h"

using namespace mlir;

namespace dspark {
namespace {

class Emitter {
public:
  Emitter(const WeightStore &weights, PlanWriter &writer, WeightPlaces &places)
      : weights(weights), writer(writer), places(places) {
    plan.locations.push_back("");
  }

  StatusOr<fb::PlanT> run(func::FuncOp func) {
    plan.body = std::make_unique<fb::BlockT>();
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      addInput(func, i);
    DSPARK_RETURN_IF_ERROR(emitSteps(func.front(), *plan.body));
    Operation *end = func.front().getTerminator();
    for (auto [index, value] : llvm::enumerate(end->getOperands()))
      if (!isUpdatedState(func, value))
        addOutput(func, unsigned(index), value);
    plan.symbols.assign(dims.symbols().begin(), dims.symbols().end());
    return std::move(plan);
  }

private:
  // --- dims ---

  int32_t dimNode(const DimNode *node) {
    auto [it, isNew] = dimIds.try_emplace(node, 0);
    if (isNew) {
      int32_t lhs = node->lhs ? dimNode(node->lhs) : -1, rhs = node->rhs ? dimNode(node->rhs) : -1;
      it->second = addDim(node->op, node->value, lhs, rhs);
      dimIds[node] = it->second;
      return it->second;
    }
    return it->second;
  }
  int32_t dim(Dim value) {
    if (value.isSymbolic())
      return dimNode(value.node());
    auto [it, isNew] = constantDims.try_emplace(value.value(), 0);
    if (isNew)
      it->second = addDim(DimOp::Const, value.value(), -1, -1);
    return it->second;
  }
  int32_t addDim(DimOp op, int64_t value, int32_t lhs, int32_t rhs) {
    auto expr = std::make_unique<fb::DimExprT>();
    expr->op = uint8_t(op);
    expr->value = value;
    expr->lhs = lhs;
    expr->rhs = rhs;
    plan.dim_exprs.push_back(std::move(expr));
    return int32_t(plan.dim_exprs.size() - 1);
  }
  // Dims by the text of a dspark.dims attribute; -1 where the text is "?".
  std::vector<int32_t> dimsOf(ArrayAttr texts) {
    std::vector<int32_t> result;
    if (texts)
      for (StringAttr text : texts.getAsRange<StringAttr>()) {
        std::optional<Dim> parsed = dims.parse(text.getValue().str());
        result.push_back(parsed ? dim(*parsed) : -1);
      }
    return result;
  }
  std::vector<int32_t> staticDims(ArrayRef<int64_t> shape) {
    std::vector<int32_t> result;
    for (int64_t size : shape)
      result.push_back(dim(Dim(size)));
    return result;
  }

  // --- values ---

  fb::ValueT &addValue(Value value, fb::ValueKind kind) {
    ids[value] = int32_t(plan.values.size());
    auto record = std::make_unique<fb::ValueT>();
    record->kind = kind;
    if (auto tensor = dyn_cast<TensorType>(value.getType()))
      record->dtype = uint8_t(ir::dtypeOf(tensor.getElementType()));
    plan.values.push_back(std::move(record));
    return *plan.values.back();
  }
  int32_t id(Value value) const { return isa<NoneType>(value.getType()) ? -1 : ids.lookup(value); }
  std::vector<int32_t> idsOf(ValueRange values) const {
    std::vector<int32_t> result;
    for (Value value : values)
      result.push_back(id(value));
    return result;
  }

  // The tree of a sequence, optional or map; null for a tensor.
  static std::unique_ptr<fb::ValueTypeT> listType(Type type) {
    return isa<TensorType>(type) ? nullptr : typeTree(type);
  }
  static std::unique_ptr<fb::ValueTypeT> typeTree(Type type) {
    auto tree = std::make_unique<fb::ValueTypeT>();
    if (auto tensor = dyn_cast<TensorType>(type)) {
      tree->dtype = uint8_t(ir::dtypeOf(tensor.getElementType()));
      if (tensor.hasRank()) {
        tree->rank = int32_t(tensor.getRank());
        for (int64_t dim : tensor.getShape())
          tree->dims.push_back(ShapedType::isDynamic(dim) ? -1 : dim);
      }
    } else if (auto sequence = dyn_cast<ir::SequenceType>(type)) {
      tree->kind = fb::TypeKind::Sequence;
      tree->items.push_back(typeTree(sequence.getItem()));
    } else if (auto optional = dyn_cast<ir::OptionalType>(type)) {
      tree->kind = fb::TypeKind::Optional;
      tree->items.push_back(typeTree(optional.getItem()));
    } else {
      auto map = cast<ir::MapType>(type);
      tree->kind = fb::TypeKind::Map;
      tree->items.push_back(typeTree(map.getKeys()));
      tree->items.push_back(typeTree(map.getValues()));
    }
    return tree;
  }

  void addInput(func::FuncOp func, unsigned index) {
    fb::ValueT &record = addValue(func.getArgument(index), fb::ValueKind::Input);
    if (auto name = func.getArgAttrOfType<StringAttr>(index, ir::kNameAttr))
      record.name = name.getValue().str();
    record.dims = dimsOf(func.getArgAttrOfType<ArrayAttr>(index, ir::kDimsAttr));
    record.type = listType(func.getArgument(index).getType());
    auto input = std::make_unique<fb::InputT>();
    input->value = id(func.getArgument(index));
    input->is_state = func.getArgAttr(index, ir::kStateAttr) != nullptr;
    plan.body->args.push_back(input->value);
    plan.inputs.push_back(std::move(input));
  }

  // A result that is a state as a step left it: the caller has that memory, so the plan has no output for it.
  static bool isUpdatedState(func::FuncOp func, Value value) {
    auto launch = value.getDefiningOp<plan::LaunchOp>();
    auto state = launch && !launch.getInputs().empty() ? dyn_cast<BlockArgument>(launch.getInputs()[0])
                                                       : BlockArgument();
    return state && state.getOwner() == &func.front() &&
           func.getArgAttr(state.getArgNumber(), ir::kStateAttr) != nullptr;
  }

  void addOutput(func::FuncOp func, unsigned index, Value value) {
    auto output = std::make_unique<fb::OutputT>();
    output->value = id(value);
    if (auto name = func.getResultAttrOfType<StringAttr>(index, ir::kNameAttr))
      output->name = name.getValue().str();
    if (auto tensor = dyn_cast<TensorType>(value.getType()))
      output->dtype = uint8_t(ir::dtypeOf(tensor.getElementType()));
    output->type = listType(value.getType());
    output->dims = dimsOf(func.getResultAttrOfType<ArrayAttr>(index, ir::kDimsAttr));
    plan.body->results.push_back(output->value);
    plan.outputs.push_back(std::move(output));
  }

  Status addBytes(fb::ValueT &record, std::span<const std::byte> bytes) {
    // Strings are places and characters, which the runtime reads where they lie.
    std::optional<std::vector<std::byte>> runs =
        DType(record.dtype) == DType::String ? std::nullopt : lineRuns(bytes);
    std::span<const std::byte> stored = runs ? std::span<const std::byte>(*runs) : bytes;
    DSPARK_ASSIGN_OR_RETURN(uint64_t offset, writer.addWeight(stored));
    record.blob = std::make_unique<fb::BlobT>();
    record.blob->offset = offset;
    record.blob->length = stored.size();
    record.blob->expanded = runs ? bytes.size() : 0;
    return Status();
  }

  Status emitWeight(plan::ConstantOp op) {
    std::string name = op.getWeight().str();
    if (auto it = weightIds.find(name); it != weightIds.end()) {
      ids[op.getResult()] = it->second;
      return Status();
    }
    fb::ValueT &record = addValue(op.getResult(), fb::ValueKind::Constant);
    weightIds[name] = id(op.getResult());
    record.name = name;
    record.layout = op.getLayout().value_or("").str();
    record.dims = staticDims(cast<TensorType>(op.getType()).getShape());
    if (auto place = places.find(name); place != places.end()) {
      record.blob = std::make_unique<fb::BlobT>(place->second);
      return Status();
    }
    std::string error;
    std::optional<WeightBytes> bytes = weights.read(name, error, Alignment::Bytes);
    if (!bytes)
      return {Code::InvalidArgument, error};
    DSPARK_RETURN_IF_ERROR(addBytes(record, bytes->bytes()));
    places.emplace(name, *record.blob);
    weights.release(name);
    return Status();
  }

  Status emitLiteral(plan::LiteralOp op) {
    fb::ValueT &record = addValue(op.getResult(), fb::ValueKind::Constant);
    auto type = cast<RankedTensorType>(op.getType());
    record.dims = staticDims(type.getShape());
    std::vector<std::byte> bytes = ir::literalBytes(op.getValue());
    return addBytes(record, bytes);
  }

  // --- steps ---

  Status emitSteps(Block &block, fb::BlockT &steps) {
    for (Operation &op : block.without_terminator()) {
      if (auto constant = dyn_cast<plan::ConstantOp>(op)) {
        DSPARK_RETURN_IF_ERROR(emitWeight(constant));
      } else if (auto literal = dyn_cast<plan::LiteralOp>(op)) {
        DSPARK_RETURN_IF_ERROR(emitLiteral(literal));
      } else if (isa<plan::AbsentOp, plan::FreeOp>(op)) {
        continue;
      } else {
        StatusOr<std::unique_ptr<fb::StepT>> step = emitStep(&op);
        if (!step.isOk())
          return step.status();
        steps.steps.push_back(std::move(*step));
      }
    }
    return Status();
  }

  StatusOr<std::unique_ptr<fb::StepT>> emitStep(Operation *op) {
    auto step = std::make_unique<fb::StepT>();
    step->location = location(op->getLoc());
    step->inputs = idsOf(op->getOperands());
    if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
      step->kind = fb::StepKind::Kernel;
      step->op = launch.getOp().str();
      step->in_place = int32_t(launch.getInPlace().value_or(-1));
      step->symbol = launch.getSymbol().value_or("").str();
      addAttributes(*step, launch.getConfigAttr());
    } else if (auto list = dyn_cast<plan::ListOp>(op)) {
      step->kind = fb::StepKind::List;
      step->op = list.getOp().str();
      addAttributes(*step, list.getConfigAttr());
    } else if (auto dims = dyn_cast<plan::DimsOp>(op)) {
      step->kind = fb::StepKind::Dims;
      step->dims = dimsOf(dims.getExprs());
      auto rank = std::make_unique<fb::AttrT>();
      rank->name = "rank";
      rank->ints = {cast<RankedTensorType>(dims.getType()).getRank()};
      step->attrs.push_back(std::move(rank));
    } else if (auto branch = dyn_cast<plan::IfOp>(op)) {
      step->kind = fb::StepKind::If;
      DSPARK_RETURN_IF_ERROR(emitBlock(branch.getThenBody().front(), *step));
      DSPARK_RETURN_IF_ERROR(emitBlock(branch.getElseBody().front(), *step));
    } else if (auto loop = dyn_cast<plan::LoopOp>(op)) {
      step->kind = fb::StepKind::Loop;
      addAttributes(*step, loop.getConfigAttr());
      DSPARK_RETURN_IF_ERROR(emitBlock(loop.getBody().front(), *step));
    } else {
      return Status(Code::Internal, op->getName().getStringRef().str() + " has no record in the plan file");
    }
    for (Value result : op->getResults()) {
      addValue(result, fb::ValueKind::Temp);
      step->outputs.push_back(id(result));
    }
    return step;
  }

  Status emitBlock(Block &block, fb::StepT &step) {
    auto record = std::make_unique<fb::BlockT>();
    for (BlockArgument argument : block.getArguments()) {
      addValue(argument, fb::ValueKind::Temp);
      record->args.push_back(id(argument));
    }
    DSPARK_RETURN_IF_ERROR(emitSteps(block, *record));
    record->results = idsOf(block.getTerminator()->getOperands());
    step.blocks.push_back(std::move(record));
    return Status();
  }

  void addAttributes(fb::StepT &step, DictionaryAttr config) {
    ir::AttrList list;
    list.add(config);
    for (auto [index, attr] : llvm::enumerate(list.entries())) {
      auto record = std::make_unique<fb::AttrT>();
      record->name = std::string(attr.name);
      record->is_list = list.isList(index);
      record->ints.assign(attr.ints.begin(), attr.ints.end());
      record->floats.assign(attr.floats.begin(), attr.floats.end());
      record->str = std::string(attr.str);
      step.attrs.push_back(std::move(record));
    }
  }

  uint32_t location(Location loc) {
    std::string names = locationNames(loc);
    auto [it, isNew] = locationIds.try_emplace(names, uint32_t(plan.locations.size()));
    if (isNew && !names.empty())
      plan.locations.push_back(names);
    return names.empty() ? 0 : it->second;
  }

  const WeightStore &weights;
  PlanWriter &writer;
  WeightPlaces &places;
  fb::PlanT plan;
  DimTable dims;
  std::map<const DimNode *, int32_t> dimIds;
  std::map<int64_t, int32_t> constantDims;
  std::map<std::string, int32_t> weightIds;
  std::map<std::string, uint32_t> locationIds;
  llvm::DenseMap<Value, int32_t> ids;
};

} // namespace

StatusOr<fb::PlanT> emitPlan(func::FuncOp func, const WeightStore &weights, PlanWriter &writer,
                             WeightPlaces &places) {
  return Emitter(weights, writer, places).run(func);
}

} // namespace dspark

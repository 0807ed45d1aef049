// Sequences and optionals: dspark.list, and SequenceMap as a loop.
#include "dialects/DSpark/Infer.h"
#include "frontends/onnx/ops/Control.h"

namespace dspark::onnx {
namespace {

/// The item type of operand i, which must be a sequence; null, with the node refused, if it is none.
mlir::Type sequenceItem(Node &n, size_t i) {
  if (auto sequence = mlir::dyn_cast<ir::SequenceType>(n.in(i).getType()))
    return sequence.getItem();
  n.invalid("operand " + std::to_string(i) + " is " + typeText(n.in(i).getType()) + "; expected a sequence");
  return {};
}

mlir::Type sequenceOf(mlir::Type item) { return ir::SequenceType::get(item.getContext(), item); }
mlir::Type lengthType(Node &n) { return typeOf(n, TensorInfo::make(DType::I64, {})); }
mlir::Type anyTensor(Node &n, DType type) {
  mlir::Type element = ir::mlirType(type, n.loc().getContext());
  if (!element)
    n.invalid("element type " + std::to_string(int(type)) + " is not known");
  return element ? mlir::UnrankedTensorType::get(element) : mlir::Type();
}

/// What the items of a sequence have in common, if one more is put in.
mlir::Type withItem(Node &n, mlir::Type items, mlir::Type one) {
  mlir::Type both = ir::joinTypes(items, one);
  if (!both)
    n.invalid("a sequence of " + typeText(items) + " cannot hold " + typeText(one));
  return both;
}

void buildConstruct(Node &n) {
  mlir::Type item = n.in(0).getType();
  for (size_t i = 1; i < n.numInputs() && item; ++i)
    item = withItem(n, item, n.in(i).getType());
  if (item)
    n.out(0, n.listOp("construct", n.inputs(), sequenceOf(item)));
}

void buildEmpty(Node &n) {
  if (mlir::Type item = anyTensor(n, DType(n.i("dtype", int64_t(DType::F32)))))
    n.out(0, n.listOp("construct", {}, sequenceOf(item)));
}

void buildInsert(Node &n) {
  mlir::Type item = sequenceItem(n, 0);
  item = item ? withItem(n, item, n.in(1).getType()) : item;
  if (item)
    n.out(0, n.listOp("insert", n.inputs(), sequenceOf(item)));
}

void buildErase(Node &n) {
  if (sequenceItem(n, 0))
    n.out(0, n.listOp("erase", n.inputs(), n.in(0).getType()));
}

void buildAt(Node &n) {
  if (mlir::Type item = sequenceItem(n, 0))
    n.out(0, n.listOp("at", n.inputs(), item));
}

void buildLength(Node &n) {
  if (sequenceItem(n, 0))
    n.out(0, n.listOp("length", {n.in(0)}, lengthType(n)));
}

/// keepdims counts only where `split` is absent.
void buildSplitToSequence(Node &n) {
  TensorInfo part = n.info(n.in(0));
  int64_t axis = n.i("axis", 0), at = axis < 0 ? axis + part.rank() : axis;
  bool keepsAxis = n.has(1) || n.i("keepdims", 1) != 0;
  if (!part.present())
    return n.invalid("operand 0 is " + typeText(n.in(0).getType()) + "; expected a tensor");
  if (part.hasRank) {
    if (at < 0 || at >= part.rank())
      return n.invalid("axis " + std::to_string(axis) + " is outside " + part.str());
    part.dims[size_t(at)] = n.has(1) ? Dim() : Dim(1);
    if (!keepsAxis)
      part.dims.erase(part.dims.begin() + at);
  }
  n.out(0, n.listOp("split", n.inputs(), sequenceOf(typeOf(n, part)),
                    {n.attr("axis", axis), n.attr("keepdims", int64_t(keepsAxis))}));
}

void buildConcatFromSequence(Node &n) {
  mlir::Type item = sequenceItem(n, 0);
  if (!item)
    return;
  TensorInfo info = ir::infoFromType(item);
  bool isStack = n.i("new_axis", 0) != 0;
  int64_t axis = n.i("axis", 0), rank = info.rank() + isStack, at = axis < 0 ? axis + rank : axis;
  if (info.hasRank) {
    if (at < 0 || at >= rank)
      return n.invalid("axis " + std::to_string(axis) + " is outside a result of rank " +
                       std::to_string(rank));
    if (isStack)
      info.dims.insert(info.dims.begin() + at, Dim());
    info.dims[size_t(at)] = Dim();
  }
  n.out(0, n.listOp("concat", {n.in(0)}, typeOf(n, info),
                    {n.attr("axis", axis), n.attr("new_axis", int64_t(isStack))}));
}

// --- optionals; a tensor or sequence in the place of one is an optional that has it ---

void buildOptional(Node &n) {
  mlir::Type item;
  if (n.has(0)) {
    item = n.in(0).getType();
  } else {
    const auto *type = n.attribute("type");
    if (!type)
      return n.invalid("an Optional without a value needs the attribute type");
    std::string problem;
    item = n.importer().valueType(type->tp(), problem);
    if (!item)
      return n.unsupported(problem);
  }
  n.out(0, n.listOp("construct", n.inputs(), ir::OptionalType::get(item.getContext(), item)));
}

void buildHasElement(Node &n) {
  if (n.has(0) && mlir::isa<ir::OptionalType>(n.in(0).getType()))
    return n.out(0, n.cast(n.listOp("length", {n.in(0)}, lengthType(n)), DType::Bool));
  n.out(0, n.scalar(DType::Bool, n.has(0)));
}

void buildGetElement(Node &n) {
  auto optional = mlir::dyn_cast<ir::OptionalType>(n.in(0).getType());
  n.out(0, optional ? n.listOp("at", {n.in(0)}, optional.getItem()) : n.in(0));
}

// --- SequenceMap ---

/// for i in range(length of the first): append body(items i of the sequences, the tensors) to the results.
void buildSequenceMap(Node &n) {
  if (!sequenceItem(n, 0))
    return;
  std::vector<mlir::Type> itemTypes; // of the results
  {                                  // the body once for its types
    mlir::Region scratch;
    scratch.push_back(new mlir::Block());
    mlir::OpBuilder::InsertionGuard guard(n.importer().builder());
    n.importer().builder().setInsertionPointToEnd(&scratch.front());
    Values arguments;
    for (mlir::Value operand : n.inputs()) {
      auto sequence = mlir::dyn_cast<ir::SequenceType>(operand.getType());
      arguments.push_back(sequence ? n.listOp("at", {operand}, sequence.getItem()) : operand);
    }
    auto results = n.importer().body(n, n.attribute("body")->g(), scratch.front(), arguments);
    for (mlir::Value result : results ? *results : Values())
      itemTypes.push_back(result.getType());
    scratch.front().walk([&](mlir::Operation *op) { n.importer().dims().forget(op); });
    scratch.dropAllReferences();
    if (!results)
      return;
  }
  Values sequences;
  for (mlir::Type item : itemTypes)
    sequences.push_back(n.listOp("construct", {}, sequenceOf(item)));
  auto body = [&](mlir::Value iteration, const Values &carried) -> std::optional<Values> {
    Values arguments;
    for (mlir::Value operand : n.inputs()) {
      auto sequence = mlir::dyn_cast<ir::SequenceType>(operand.getType());
      arguments.push_back(sequence ? n.listOp("at", {operand, iteration}, sequence.getItem()) : operand);
    }
    mlir::Block &block = *n.importer().builder().getInsertionBlock();
    auto results = n.importer().body(n, n.attribute("body")->g(), block, arguments);
    if (!results)
      return std::nullopt;
    Values grown;
    for (size_t i = 0; i < carried.size(); ++i)
      grown.push_back(n.listOp("insert", {carried[i], (*results)[i]}, carried[i].getType()));
    return grown;
  };
  if (auto results = buildCountedLoop(n, n.listOp("length", {n.in(0)}, lengthType(n)), sequences, body))
    n.outs(*results);
}

constexpr OpRow rows[] = {
    built("SequenceAt", 11, {2, 2}, buildAt),
    built("SequenceConstruct", 11, {1, kVariadic}, buildConstruct),
    built("SequenceEmpty", 11, {0, 0}, buildEmpty, "dtype:i"),
    built("SequenceErase", 11, {1, 2}, buildErase),
    built("SequenceInsert", 11, {2, 3}, buildInsert),
    built("SequenceLength", 11, {}, buildLength),
    built("SequenceMap", 17, {1, kVariadic, 1, kVariadic}, buildSequenceMap, "body:g!"),
    built("SplitToSequence", 11, {1, 2}, buildSplitToSequence, "axis:i keepdims:i"),
    built("ConcatFromSequence", 11, {}, buildConcatFromSequence, "axis:i! new_axis:i"),
    built("Optional", 15, {0, 1}, buildOptional, "type:y"),
    built("OptionalGetElement", 15, {}, buildGetElement),
    built("OptionalHasElement", 15, {0, 1}, buildHasElement),
};

} // namespace

OpRows sequenceRows() { return rows; }

} // namespace dspark::onnx

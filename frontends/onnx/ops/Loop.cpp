// Loop and Scan: both become dspark.loop.
#include "dialects/DSpark/Infer.h"
#include "frontends/onnx/ops/Control.h"

namespace dspark::onnx {
namespace {

/// Loop and Scan as one form.
struct LoopForm {
  mlir::Value trips, condition; // null: none
  Values carried, scanned;
  std::vector<int64_t> inAxes, inDirections, outAxes, outDirections; // empty: all 0
  /// Fills the block, whose arguments it gets, and returns what it yields.
  std::function<std::optional<Values>(mlir::Block &, Values)> body;
  bool isScan = false; // the body neither takes iteration and condition nor makes a condition
};

/// What one iteration sees of a scanned operand: the axis is gone. Sets the node's error if it has none.
TensorInfo sliceOf(Node &n, mlir::Value scanned, int64_t axis, Dim &trips) {
  TensorInfo info = n.info(scanned);
  info.hasContents = false;
  info.ints.clear();
  info.floats.clear();
  if (!info.hasRank)
    return info;
  if (axis < 0 || axis >= info.rank()) {
    n.invalid("scan axis " + std::to_string(axis) + " is outside " + info.str());
    return info;
  }
  trips = info.dims[size_t(axis)];
  info.dims.erase(info.dims.begin() + axis);
  return info;
}

/// The body's arguments. Carried values are given the facts that hold in every iteration.
Values makeArguments(Node &n, const LoopForm &form, const std::vector<Facts> &carried,
                     const std::vector<TensorInfo> &slices, mlir::Block &block) {
  std::vector<Facts> facts = {{TensorInfo::make(DType::I64, {}), {}},
                              {TensorInfo::make(DType::Bool, {}), {}}};
  facts.insert(facts.end(), carried.begin(), carried.end());
  for (const TensorInfo &slice : slices)
    facts.push_back({slice, {}});
  Values arguments;
  for (const Facts &fact : facts) {
    mlir::Value argument = block.addArgument(fact.type(n), n.loc());
    fact.set(n, argument);
    arguments.push_back(argument);
  }
  if (form.isScan)
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  return arguments;
}

/// Iteration number and condition may be declared as [1] instead of as scalars.
void matchDeclaredRank(Node &n, const ::onnx::GraphProto &graph, mlir::Block &block, Values &arguments) {
  mlir::OpBuilder::InsertionGuard guard(n.importer().builder());
  n.importer().builder().setInsertionPointToEnd(&block);
  for (int i : {0, 1})
    if (i < graph.input_size() && graph.input(i).type().tensor_type().shape().dim_size() == 1)
      arguments[i] = n.one("reshape", {arguments[i], n.list({1})});
}

/// An optional that becomes what it holds: the body's result is made an optional again.
void wrapOptionals(Node &n, const std::vector<Facts> &carried, Values &yields, size_t firstCarried,
                   mlir::Block &block, std::vector<bool> &isWrapped) {
  mlir::OpBuilder::InsertionGuard guard(n.importer().builder());
  n.importer().builder().setInsertionPointToEnd(&block);
  for (size_t i = 0; i < carried.size(); ++i) {
    mlir::Value &yielded = yields[firstCarried + i];
    if (!mlir::isa_and_nonnull<ir::OptionalType>(carried[i].list) ||
        mlir::isa<ir::OptionalType>(yielded.getType()))
      continue;
    mlir::Type type = ir::OptionalType::get(yielded.getContext(), yielded.getType());
    yielded = n.listOp("construct", {yielded}, type);
    isWrapped[i] = true;
  }
}

/// Makes `carried` no more specific than what an iteration yields; true if nothing had to change.
bool generalise(Node &n, std::vector<Facts> &carried, const Values &yields, size_t firstCarried) {
  bool holds = true;
  for (size_t i = 0; i < carried.size(); ++i) {
    Facts yielded = Facts::of(n, yields[firstCarried + i]);
    std::optional<Facts> both = join(carried[i], yielded);
    if (!both) {
      n.invalid("carried value " + std::to_string(i) + " begins as " + carried[i].str() + " and becomes " +
                yielded.str());
      return true;
    }
    const TensorInfo &before = carried[i].tensor, &after = both->tensor;
    bool same = carried[i].list == both->list && after.hasRank == before.hasRank;
    for (int d = 0; same && d < after.rank(); ++d)
      same = before.dims[size_t(d)].isUnknown() || !after.dims[size_t(d)].isUnknown();
    holds &= same;
    if (!same)
      carried[i] = std::move(*both);
  }
  return holds;
}

/// The stacked form of a value that every iteration yields. Symbols that only the body knows mean nothing
/// outside.
TensorInfo stacked(Node &n, mlir::Value yielded, int64_t &axis, Dim trips) {
  TensorInfo info = n.info(yielded);
  if (!info.present())
    n.invalid("a scan output is " + typeText(yielded.getType()) + "; expected a tensor");
  info.hasContents = false;
  info.ints.clear();
  info.floats.clear();
  if (!info.hasRank)
    return info;
  for (Dim &dim : info.dims)
    if (!n.importer().dims().isInputExpression(dim))
      dim = Dim();
  if (axis < 0)
    axis += info.rank() + 1;
  if (axis < 0 || axis > info.rank())
    n.invalid("scan output axis " + std::to_string(axis) + " is outside " + info.str());
  else
    info.dims.insert(info.dims.begin() + axis, trips);
  return info;
}

std::vector<int64_t> orZeros(std::vector<int64_t> values, size_t count) {
  values.resize(count, 0);
  return values;
}
bool allZero(const std::vector<int64_t> &values) {
  return llvm::all_of(values, [](int64_t value) { return value == 0; });
}

/// The body in a region of its own, and what it yields. `carried` becomes what holds in every iteration: the
/// body is imported with what the initial values say, and again with less as long as it yields something
/// else.
std::optional<Values> importBody(Node &n, const LoopForm &form, const std::vector<TensorInfo> &slices,
                                 std::vector<Facts> &carried, std::vector<bool> &isWrapped,
                                 mlir::Region &region) {
  GraphImporter &importer = n.importer();
  size_t issues = importer.issueCount(), firstCarried = form.isScan ? 0 : 1;
  for (int round = 0;; ++round) {
    if (round == 4) // not to converge slowly: nothing is known
      for (Facts &fact : carried) {
        fact.tensor.hasRank = false;
        fact.tensor.dims.clear();
      }
    mlir::Block *block = new mlir::Block();
    region.push_back(block);
    std::optional<Values> yields = form.body(*block, makeArguments(n, form, carried, slices, *block));
    if (yields && yields->size() < firstCarried + carried.size())
      n.invalid("its body makes " + std::to_string(yields->size()) + " values; expected at least " +
                std::to_string(firstCarried + carried.size()));
    if (!yields || n.failed())
      return std::nullopt;
    wrapOptionals(n, carried, *yields, firstCarried, *block, isWrapped);
    if (generalise(n, carried, *yields, firstCarried))
      return n.failed() ? std::nullopt : yields;
    importer.dropIssues(issues);
    region.dropAllReferences();
    region.getBlocks().clear();
  }
}

ir::LoopOp makeLoop(Node &n, const LoopForm &form, const std::vector<Facts> &results) {
  GraphImporter &importer = n.importer();
  llvm::SmallVector<mlir::Type> types;
  for (const Facts &fact : results)
    types.push_back(fact.type(n));
  Values operands = {form.trips ? form.trips : importer.none(n.loc()),
                     form.condition ? form.condition : importer.none(n.loc())};
  operands.append(form.carried);
  operands.append(form.scanned);
  mlir::OpBuilder &builder = importer.builder();
  auto list = [&](const std::vector<int64_t> &values) {
    return allZero(values) ? mlir::DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(values);
  };
  return ir::LoopOp::create(builder, n.loc(), types, operands,
                            builder.getI64IntegerAttr(int64_t(form.carried.size())), list(form.inAxes),
                            list(form.inDirections), list(form.outAxes), list(form.outDirections));
}

/// The loop's results, or nothing if it cannot be built.
std::optional<Values> buildLoopForm(Node &n, LoopForm form) {
  Dim trips;
  std::vector<TensorInfo> slices;
  std::vector<Facts> carried;
  form.inAxes = orZeros(form.inAxes, form.scanned.size());
  for (size_t i = 0; i < form.scanned.size(); ++i) {
    if (auto rank = n.rank(form.scanned[i]); rank && form.inAxes[i] < 0)
      form.inAxes[i] += *rank;
    slices.push_back(sliceOf(n, form.scanned[i], form.inAxes[i], trips));
  }
  for (mlir::Value value : form.carried) {
    Facts facts = Facts::of(n, value);
    carried.push_back(*join(facts, facts)); // contents are forgotten
  }
  for (mlir::Value value : form.scanned)
    if (ir::isList(value.getType()))
      n.invalid("a scanned operand is " + typeText(value.getType()) + "; expected a tensor");
  if (n.failed())
    return std::nullopt;
  mlir::Region region;
  std::vector<bool> isWrapped(carried.size());
  std::optional<Values> yields = importBody(n, form, slices, carried, isWrapped, region);
  if (!yields)
    return std::nullopt;
  if (!form.isScan && n.type((*yields)[0]) != DType::Bool)
    n.invalid("its body makes a condition of type " + n.info((*yields)[0]).str() + "; expected bool");

  std::vector<Facts> infos = carried;
  size_t firstStacked = (form.isScan ? 0 : 1) + carried.size(), stackedCount = yields->size() - firstStacked;
  form.outAxes = orZeros(form.outAxes, stackedCount);
  for (size_t i = 0; i < stackedCount; ++i)
    infos.push_back({stacked(n, (*yields)[firstStacked + i], form.outAxes[i], trips), {}});
  if (infos.size() < n.numOutputs())
    n.invalid("its body makes values for " + std::to_string(infos.size()) + " results of " +
              std::to_string(n.numOutputs()));
  if (n.failed())
    return std::nullopt;
  ir::LoopOp op = makeLoop(n, form, infos);
  {
    mlir::OpBuilder &builder = n.importer().builder();
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&region.front());
    if (form.isScan)
      yields->insert(yields->begin(), n.scalar(DType::Bool, 1));
    ir::YieldOp::create(builder, n.loc(), *yields);
  }
  op.getBody().takeBody(region);
  Values results(op.getResults());
  for (size_t i = 0; i < infos.size(); ++i)
    infos[i].set(n, results[i]);
  for (size_t i = 0; i < carried.size(); ++i)
    if (isWrapped[i])
      results[i] = n.listOp("at", {results[i]}, mlir::cast<ir::OptionalType>(carried[i].list).getItem());
  return results;
}

/// A Scan of `operands`, of which the last num_scan_inputs are scanned.
LoopForm scanForm(Node &n, const Values &operands) {
  LoopForm form;
  form.isScan = true;
  int64_t scanned = n.i("num_scan_inputs", 0);
  if (scanned < 1 || scanned > int64_t(operands.size()))
    n.invalid("num_scan_inputs is " + std::to_string(scanned) + " of " + std::to_string(operands.size()) +
              " operands");
  for (size_t i = 0; i < operands.size(); ++i)
    (i + size_t(scanned) < operands.size() ? form.carried : form.scanned).push_back(operands[i]);
  form.body = [&n](mlir::Block &block, Values arguments) {
    return n.importer().body(n, n.attribute("body")->g(), block, arguments);
  };
  return form;
}

} // namespace

std::optional<Values>
buildCountedLoop(Node &n, mlir::Value trips, const Values &carried,
                 const std::function<std::optional<Values>(mlir::Value, const Values &)> &body) {
  if (n.failed())
    return std::nullopt;
  LoopForm form;
  form.trips = trips;
  form.carried = carried;
  form.body = [&](mlir::Block &block, Values arguments) -> std::optional<Values> {
    mlir::OpBuilder::InsertionGuard guard(n.importer().builder());
    n.importer().builder().setInsertionPointToEnd(&block);
    std::optional<Values> results = body(arguments[0], Values(arguments.begin() + 2, arguments.end()));
    if (!results || n.failed())
      return std::nullopt;
    results->insert(results->begin(), arguments[1]);
    return results;
  };
  return buildLoopForm(n, std::move(form));
}

void buildLoop(Node &n) {
  LoopForm form;
  form.trips = n.in(0);
  form.condition = n.in(1);
  for (size_t i = 2; i < n.numInputs(); ++i)
    if (!n.has(i))
      return n.invalid("operand " + std::to_string(i) + " is required");
    else
      form.carried.push_back(n.in(i));
  form.body = [&](mlir::Block &block, Values arguments) {
    const ::onnx::GraphProto &graph = n.attribute("body")->g();
    matchDeclaredRank(n, graph, block, arguments);
    return n.importer().body(n, graph, block, arguments);
  };
  if (auto results = buildLoopForm(n, std::move(form)))
    n.outs(*results);
}

void buildScan(Node &n) {
  LoopForm form = scanForm(n, n.inputs());
  form.inAxes = n.ints("scan_input_axes");
  form.inDirections = n.ints("scan_input_directions");
  form.outAxes = n.ints("scan_output_axes");
  form.outDirections = n.ints("scan_output_directions");
  if (n.failed())
    return;
  if (auto results = buildLoopForm(n, std::move(form)))
    n.outs(*results);
}

/// Opset 8: all operands have a batch axis in front, over which an outer scan runs this one.
void buildScan8(Node &n) {
  if (n.numInputs() < 2)
    return n.invalid("has " + std::to_string(n.numInputs()) + " operands; expected at least 2");
  if (n.has(0))
    return n.unsupported("Scan of opset 8 with sequence_lens is not supported");
  Values operands(n.inputs().begin() + 1, n.inputs().end());
  LoopForm outer;
  outer.isScan = true;
  outer.scanned = operands;
  outer.body = [&n](mlir::Block &block, Values arguments) {
    mlir::OpBuilder::InsertionGuard guard(n.importer().builder());
    n.importer().builder().setInsertionPointToEnd(&block);
    LoopForm inner = scanForm(n, arguments);
    inner.inDirections = n.ints("directions");
    return n.failed() ? std::nullopt : buildLoopForm(n, std::move(inner));
  };
  if (auto results = buildLoopForm(n, std::move(outer)))
    n.outs(*results);
}

} // namespace dspark::onnx

#include "dialects/DSpark/Infer.h"
#include "frontends/onnx/ops/Control.h"

namespace dspark::onnx {

TensorInfo join(const TensorInfo &a, const TensorInfo &b) {
  TensorInfo both;
  both.type = a.type;
  if (!a.hasRank || !b.hasRank || a.rank() != b.rank())
    return both;
  both.hasRank = true;
  for (int i = 0; i < a.rank(); ++i)
    both.dims.push_back(a.dims[i].provablyEqual(b.dims[i]) ? a.dims[i] : Dim());
  return both;
}

mlir::Type typeOf(Node &n, const TensorInfo &info) { return ir::typeFromInfo(info, n.loc().getContext()); }

void setInfo(Node &n, mlir::Value value, TensorInfo info) {
  n.importer().dims().nameUnknownDims(info);
  n.importer().dims().setInfo(value, std::move(info));
}

Facts Facts::of(Node &n, mlir::Value value) {
  if (ir::isList(value.getType()))
    return {{}, value.getType()};
  return {n.info(value), {}};
}

std::optional<Facts> join(const Facts &a, const Facts &b) {
  if (a.list && b.list) {
    mlir::Type both = ir::joinTypes(a.list, b.list);
    return both ? std::optional(Facts{{}, both}) : std::nullopt;
  }
  if (a.list || b.list || a.tensor.type != b.tensor.type)
    return std::nullopt;
  return Facts{join(a.tensor, b.tensor), {}};
}

void buildIf(Node &n) {
  GraphImporter &importer = n.importer();
  if (n.type(n.in(0)) != DType::Bool)
    return n.invalid("its condition is " + n.info(n.in(0)).str() + "; expected a bool");
  mlir::Region regions[2];
  std::optional<Values> yields[2];
  for (int k : {0, 1}) {
    regions[k].push_back(new mlir::Block());
    yields[k] = importer.body(n, n.attribute(k ? "else_branch" : "then_branch")->g(), regions[k].front(), {});
  }
  if (!yields[0] || !yields[1])
    return;
  size_t count = yields[0]->size();
  if (yields[1]->size() != count || count < n.numOutputs())
    return n.invalid("its branches make " + std::to_string(count) + " and " +
                     std::to_string(yields[1]->size()) + " values for " + std::to_string(n.numOutputs()) +
                     " results");
  std::vector<Facts> facts;
  llvm::SmallVector<mlir::Type> types;
  for (size_t i = 0; i < count; ++i) {
    Facts a = Facts::of(n, (*yields[0])[i]), b = Facts::of(n, (*yields[1])[i]);
    std::optional<Facts> both = join(a, b);
    if (!both)
      return n.invalid("result " + std::to_string(i) + " is " + a.str() + " in one branch and " + b.str() +
                       " in the other");
    facts.push_back(*both);
    types.push_back(both->type(n));
  }
  auto op = ir::IfOp::create(importer.builder(), n.loc(), types, n.in(0));
  for (int k : {0, 1}) {
    mlir::OpBuilder::InsertionGuard guard(importer.builder());
    importer.builder().setInsertionPointToEnd(&regions[k].front());
    ir::YieldOp::create(importer.builder(), n.loc(), *yields[k]);
    (k ? op.getElseBody() : op.getThenBody()).takeBody(regions[k]);
  }
  for (size_t i = 0; i < count; ++i) {
    facts[i].set(n, op.getResult(unsigned(i)));
    n.out(i, op.getResult(unsigned(i)));
  }
}

} // namespace dspark::onnx

#include "compiler/Recovery/TokenWise.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dspark::recovery {
namespace {

bool hasSymbol(Dim dim, const std::string &name) {
  if (!dim.isSymbolic())
    return false;
  SmallVector<const DimNode *> work{dim.node()};
  while (!work.empty()) {
    const DimNode *node = work.pop_back_val();
    if (node->op == DimOp::Symbol && node->table->symbols()[size_t(node->value)] == name)
      return true;
    if (node->lhs)
      work.push_back(node->lhs);
    if (node->rhs)
      work.push_back(node->rhs);
  }
  return false;
}

// Element by element, or on axes that its results keep apart.
bool isElementwise(StringRef name) {
  static const llvm::StringSet<> names = {
      "unary",    "binary",  "compare",          "select",      "clip",          "cast",
      "identity", "reshape", "squeeze",          "unsqueeze",   "expand",        "transpose",
      "flatten",  "swiglu",  "rotary_embedding", "packed_rows", "packed_experts"};
  return names.contains(name);
}

class Axes {
public:
  Axes(Operation *op, ir::DimAnalysis &analysis, const TokenSymbols &symbols)
      : op(op), analysis(analysis), symbols(symbols) {
    ir::catalogueAttributes(op, attributes);
  }

  std::string mixing() {
    StringRef name = ir::catalogueName(op);
    bool isOnOneAxis = name == "softmax" || name == "top_k" || name == "concat" || name == "split" ||
                       name == "gather" || name == "gather_elements" || name == "arg_reduce" ||
                       name == "cumulative";
    if (isElementwise(name))
      return "";
    if (name == "matmul")
      return lastIsFree(0) ? "" : "sums over them";
    if (name == "layer_norm" || name == "lp_norm")
      return fromAxisOn() ? "" : "norms them together";
    if (name == "reduce" || name == "slice")
      return listed(name == "reduce" ? 1 : 3) ? "" : "takes some of them or reduces over them";
    if (isOnOneAxis)
      return isFree(axis(name == "gather" || name == "concat" ? 0 : -1)) ? "" : "joins or selects them";
    return "is not known to compute each by itself";
  }

private:
  const TensorInfo &info(unsigned i) { return analysis.info(op->getOperand(i)); }
  int64_t axis(int64_t otherwise) { return attributes.view().i("axis", otherwise); }

  // Of the first operand.
  bool isFree(int64_t at) {
    const TensorInfo &data = info(0);
    at = at < 0 ? at + data.rank() : at;
    return data.hasRank && at >= 0 && at < data.rank() && !countsTokens(data.dims[size_t(at)], symbols);
  }
  bool lastIsFree(unsigned i) {
    const TensorInfo &data = info(i);
    return data.hasRank && data.rank() > 0 && !countsTokens(data.dims.back(), symbols);
  }
  bool fromAxisOn() {
    const TensorInfo &data = info(0);
    int64_t first = axis(-1);
    first = first < 0 ? first + data.rank() : first;
    for (int64_t at = first; at < data.rank(); ++at)
      if (!isFree(at))
        return false;
    return data.hasRank && first >= 0;
  }
  // The axes are operand i.
  bool listed(unsigned i) {
    if (i >= op->getNumOperands())
      return false;
    const TensorInfo &axes = info(i);
    return axes.hasContents && !axes.ints.empty() &&
           llvm::all_of(axes.ints, [&](Dim at) { return at.isConst() && isFree(at.value()); });
  }

  Operation *op;
  ir::DimAnalysis &analysis;
  const TokenSymbols &symbols;
  ir::AttrList attributes;
};

// A dim of a result that counts tokens counts them alone, or all of a batch; no two of them count the same.
bool keepsApart(const TensorInfo &info, const TokenSymbols &symbols) {
  int batches = 0, sequences = 0;
  for (Dim dim : info.dims) {
    bool hasBatch = hasSymbol(dim, symbols.batch), hasSequence = hasSymbol(dim, symbols.sequence);
    if (!hasBatch && !hasSequence)
      continue;
    const DimNode *node = dim.node();
    bool isProduct = node->op == DimOp::Mul && Dim(node->lhs).isSymbolic() && Dim(node->rhs).isSymbolic() &&
                     node->lhs->op == DimOp::Symbol && node->rhs->op == DimOp::Symbol;
    if (node->op != DimOp::Symbol && !(isProduct && hasBatch && hasSequence))
      return false;
    batches += hasBatch;
    sequences += hasSequence;
  }
  return info.hasRank && batches <= 1 && sequences <= 1;
}

} // namespace

bool countsTokens(Dim dim, const TokenSymbols &symbols) {
  return dim.isUnknown() || hasSymbol(dim, symbols.batch) || hasSymbol(dim, symbols.sequence);
}

std::string mixingOf(Operation *op, ir::DimAnalysis &analysis, const TokenSymbols &symbols) {
  if (!isa<ir::ShapeInterface>(op))
    return "is not known to compute each by itself";
  for (Value result : op->getResults())
    if (!keepsApart(analysis.info(result), symbols))
      return "arranges them as " + analysis.info(result).str();
  return Axes(op, analysis, symbols).mixing();
}

} // namespace dspark::recovery

#include "compiler/Recovery/DecoderPattern.h"
#include "compiler/Support/LocationNames.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace dspark::recovery {
namespace {

std::string nameOf(BlockArgument argument) {
  auto func = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ir::kNameAttr);
  return name ? name.str() : "";
}

std::string symbolOf(Dim dim) {
  bool isSymbol = dim.isSymbolic() && dim.node()->op == DimOp::Symbol;
  return isSymbol ? dim.node()->table->symbols()[size_t(dim.node()->value)] : "";
}

Status unfit(const std::string &what) { return {Code::Unsupported, what}; }

bool isPast(StringRef name) { return name.starts_with("past"); }

} // namespace

Status atNode(Operation *op, const std::string &what) {
  return unfit("node '" + locationNames(op->getLoc()) + "': " + what);
}

bool isDecoder(func::FuncOp func) {
  bool hasTokens = false, hasPast = false;
  for (BlockArgument argument : func.getArguments()) {
    hasTokens |= nameOf(argument) == "input_ids";
    hasPast |= isPast(nameOf(argument));
  }
  return hasTokens && hasPast;
}

StatusOr<DecoderPattern> PatternMatcher::match() {
  DecoderPattern pattern;
  DSPARK_RETURN_IF_ERROR(matchInputs(pattern));
  for (Operation &op : func.getBody().front())
    if (isa<ir::ShapeInterface>(op) && ir::catalogueName(&op) == "attention") {
      DSPARK_ASSIGN_OR_RETURN(pattern.layers.emplace_back(), matchAttention(pattern, &op));
    }
  if (pattern.layers.empty())
    return unfit("no attention over past and new keys is recognised");
  return pattern;
}

Status PatternMatcher::matchInputs(DecoderPattern &pattern) {
  for (BlockArgument argument : func.getArguments()) {
    std::string name = nameOf(argument);
    if (name == "input_ids")
      pattern.tokens = argument;
    else if (name == "position_ids")
      pattern.positions = argument;
    else if (name == "attention_mask")
      pattern.mask = argument;
    else if (isPast(name) && pattern.past.empty() && analysis.info(argument).rank() == 4)
      pattern.past = symbolOf(analysis.info(argument).dims[2]);
  }
  for (BlockArgument argument : {pattern.tokens, pattern.positions, pattern.mask})
    if (argument && analysis.info(argument).rank() != 2)
      return unfit("input '" + nameOf(argument) + "' is " + analysis.info(argument).str() +
                   ", expected two dims, sequences and tokens");
  const TensorInfo &tokens = analysis.info(pattern.tokens);
  pattern.symbols = {symbolOf(tokens.dims[0]), symbolOf(tokens.dims[1])};
  if (pattern.symbols.batch.empty() || pattern.symbols.sequence.empty() || pattern.past.empty())
    return unfit(
        "input 'input_ids' is " + tokens.str() +
        ", expected symbols for the numbers of sequences and tokens, and for the length of past keys");
  Operation *end = func.getBody().front().getTerminator();
  for (auto [i, result] : llvm::enumerate(end->getOperands()))
    if (auto name = func.getResultAttrOfType<StringAttr>(unsigned(i), ir::kNameAttr);
        name && name == "logits")
      pattern.logits = result;
  const TensorInfo *logits = pattern.logits ? &analysis.info(pattern.logits) : nullptr;
  if (!logits || logits->rank() != 3 || !logits->dims[2].isConst())
    return unfit("no output 'logits' [batch, sequence, vocabulary]");
  pattern.vocabulary = logits->dims[2].value();
  return Status::ok();
}

// [B,H,T,D] whose heads stand repeated, each behind itself, for groups of query heads.
Value PatternMatcher::withoutRepeat(Value value) {
  auto merge = value.getDefiningOp<ir::ReshapeOp>();
  auto expand = merge ? merge.getInputs()[0].getDefiningOp<ir::ExpandOp>() : ir::ExpandOp();
  Operation *split = expand ? expand.getInputs()[0].getDefiningOp() : nullptr;
  if (!split || !(isa<ir::UnsqueezeOp, ir::ReshapeOp>(split)))
    return value;
  Value inner = split->getOperand(0);
  const TensorInfo &from = analysis.info(inner), &one = analysis.info(expand.getInputs()[0]),
                   &many = analysis.info(expand->getResult(0)), &to = analysis.info(value);
  auto same = [](Dim a, Dim b) { return a.provablyEqual(b); };
  bool isRepeat = from.rank() == 4 && one.rank() == 5 && many.rank() == 5 && to.rank() == 4 &&
                  same(one.dims[1], from.dims[1]) && one.dims[2].is(1) && same(many.dims[1], from.dims[1]) &&
                  same(many.dims[2] * from.dims[1], to.dims[1]);
  return isRepeat ? inner : value;
}

std::optional<PatternMatcher::Grown> PatternMatcher::grownOf(Value value) {
  if (auto concat = value.getDefiningOp<ir::ConcatOp>(); concat && concat.getInputs().size() == 2) {
    int64_t axis = concat.getAxis();
    if (auto past = dyn_cast<BlockArgument>(concat.getInputs()[0]); past && (axis == 2 || axis == -2))
      return Grown{past, concat.getInputs()[1]};
  }
  Operation *scatter = value.getDefiningOp();
  if (!scatter || !isa<ir::ShapeInterface>(scatter) || ir::catalogueName(scatter) != "tensor_scatter")
    return std::nullopt;
  ir::AttrList attributes;
  ir::catalogueAttributes(scatter, attributes);
  Value into = scatter->getOperand(0);
  if (Operation *pad = into.getDefiningOp();
      pad && isa<ir::ShapeInterface>(pad) && ir::catalogueName(pad) == "pad")
    into = pad->getOperand(0);
  auto past = dyn_cast<BlockArgument>(into);
  return past && attributes.view().i("axis", -2) == 2 ? std::optional(Grown{past, scatter->getOperand(1)})
                                                      : std::nullopt;
}

bool PatternMatcher::isReturned(Value value) {
  return llvm::is_contained(func.getBody().front().getTerminator()->getOperands(), value);
}

StatusOr<AttentionSite> PatternMatcher::matchAttention(const DecoderPattern &pattern, Operation *op) {
  ir::AttrList attributes;
  ir::catalogueAttributes(op, attributes);
  AttentionSite site;
  site.op = op;
  site.query = op->getOperand(0);
  Value keys = withoutRepeat(op->getOperand(1)), values = withoutRepeat(op->getOperand(2));
  std::optional<Grown> key = grownOf(keys), value = grownOf(values);
  if (!key || !value || !isReturned(keys) || !isReturned(values))
    return atNode(
        op, "its keys and values are not a past input with new ones behind it, which an output returns");
  site.pastKey = key->past, site.key = key->fresh;
  site.pastValue = value->past, site.value = value->fresh;
  for (unsigned i = 4; i < op->getNumOperands(); ++i)
    if (!op->getOperand(i).getDefiningOp<ir::NoneOp>())
      return atNode(op, "operand " + std::to_string(i) + " of attention has no place in a paged step");
  bool hasMask = op->getNumOperands() > 3 && !op->getOperand(3).getDefiningOp<ir::NoneOp>();
  if (!hasMask || attributes.view().i("is_causal", 0) != 0)
    return atNode(op, "it has no mask that hides later tokens");
  DSPARK_RETURN_IF_ERROR(matchSizes(site, attributes));
  DSPARK_RETURN_IF_ERROR(matchMask(pattern, site, op->getOperand(3)));
  return site;
}

Status PatternMatcher::matchSizes(AttentionSite &site, const ir::AttrList &attributes) {
  Attrs attrs = attributes.view();
  const TensorInfo &q = analysis.info(site.query), &k = analysis.info(site.pastKey),
                   &v = analysis.info(site.pastValue);
  auto constant = [](const TensorInfo &info, int at) {
    return info.rank() == 4 && info.dims[size_t(at)].isConst() ? info.dims[size_t(at)].value() : 0;
  };
  site.kvHeads = constant(k, 1), site.size = constant(k, 3), site.valueSize = constant(v, 3);
  site.heads = q.rank() == 3 ? attrs.i("q_num_heads", 0) : constant(q, 1);
  bool fits = site.kvHeads > 0 && site.size > 0 && site.valueSize > 0 && site.heads > 0 &&
              site.heads % site.kvHeads == 0 && constant(v, 1) == site.kvHeads;
  if (!fits)
    return atNode(site.op, "queries " + q.str() + ", past keys " + k.str() + " and values " + v.str() +
                               " do not have known and fitting heads and sizes");
  site.scale = attrs.f("scale", 1 / std::sqrt(double(site.size)));
  site.softcap = attrs.f("softcap", 0);
  return Status::ok();
}

// One sequence of `past` tokens and `fresh` new ones, nothing padded.
Probe PatternMatcher::probe(const DecoderPattern &pattern, Lengths lengths) {
  int64_t total = lengths.past + lengths.fresh;
  std::map<std::string, int64_t> symbols = {
      {pattern.symbols.batch, 1}, {pattern.symbols.sequence, lengths.fresh}, {pattern.past, lengths.past}};
  std::vector<int64_t> places(static_cast<size_t>(lengths.fresh));
  std::iota(places.begin(), places.end(), lengths.past);
  if (pattern.mask)
    if (std::string name = symbolOf(analysis.info(pattern.mask).dims[1]); !name.empty())
      symbols[name] = total;
  Probe made(analysis, weights, std::move(symbols));
  made.setInput(pattern.tokens, {1, lengths.fresh}, std::vector<int64_t>(places.size(), 0));
  if (pattern.positions)
    made.setInput(pattern.positions, {1, lengths.fresh}, places);
  if (pattern.mask)
    made.setInput(pattern.mask, {1, total}, std::vector<int64_t>(size_t(total), 1));
  for (BlockArgument argument : func.getArguments()) // a count of all tokens
    if (nameOf(argument) == "total_sequence_length" && analysis.info(argument).elements().is(1))
      made.setInput(argument, std::vector<int64_t>(size_t(analysis.info(argument).rank()), 1), {total});
  return made;
}

bool PatternMatcher::isPositions(const DecoderPattern &pattern, Value value) {
  const TensorInfo &info = analysis.info(value);
  bool mayBe = (info.type == DType::I64 || info.type == DType::I32) && info.rank() == 2 &&
               symbolOf(info.dims[1]) == pattern.symbols.sequence &&
               (info.dims[0].is(1) || symbolOf(info.dims[0]) == pattern.symbols.batch);
  if (!mayBe || value == pattern.tokens)
    return false;
  for (Lengths lengths : {Lengths{0, 3}, Lengths{5, 4}, Lengths{17, 2}}) {
    Probe probing = probe(pattern, lengths);
    std::optional<std::vector<int64_t>> found = probing.integers(value);
    std::vector<int64_t> places(static_cast<size_t>(lengths.fresh));
    std::iota(places.begin(), places.end(), lengths.past);
    if (!found || *found != places)
      return false;
  }
  return true;
}

} // namespace dspark::recovery

#include "compiler/Recovery/RecoverDecoder.h"
#include "compiler/Recovery/DecoderPattern.h"
#include "compiler/Support/LocationNames.h"
#include "frontends/language/PagedStep.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dspark::recovery {
namespace {

std::string text(int64_t number) { return std::to_string(number); }

// The step's weights are those that the model's operations name.
class NoCheckpoint : public checkpoint::DecoderWeights {
public:
  bool has(std::string_view) const override { return false; }
  StatusOr<checkpoint::Matrix> matrix(std::string_view name, int64_t, int64_t) const override {
    return none(name);
  }
  StatusOr<std::vector<checkpoint::Matrix>> experts(std::string_view name, int64_t, int64_t,
                                                    int64_t) const override {
    return none(name);
  }
  StatusOr<std::vector<float>> vector(std::string_view name, int64_t) const override { return none(name); }

private:
  static Status none(std::string_view name) {
    return {Code::Internal, "there is no checkpoint that has '" + std::string(name) + "'"};
  }
};

class Rewriter {
public:
  Rewriter(func::FuncOp func, ir::DimAnalysis &analysis, PatternMatcher &matcher, DecoderPattern pattern,
           DType cacheType, language::GraphBuilder &graph)
      : func(func), analysis(analysis), matcher(matcher), pattern(std::move(pattern)), g(graph),
        paged(graph, cacheType) {
    for (AttentionSite &site : this->pattern.layers)
      sites[site.op] = &site;
  }

  Status run() {
    addInputs();
    findHead();
    DSPARK_RETURN_IF_ERROR(collect());
    for (Operation &op : func.getBody().front())
      if (live.contains(&op))
        DSPARK_RETURN_IF_ERROR(copy(&op));
    finish();
    return g.status();
  }

private:
  struct LayerCaches {
    language::PagedRows key, value;
  };

  void addInputs() {
    Value tokens = g.argument("tokens", DType::I32, {"rows"});
    Value places = g.argument("positions", DType::I32, {"rows"});
    paged.addBatch();
    wanted = g.argument("logit_rows", DType::I32, {"wanted"});
    for (size_t i = 0; i < pattern.layers.size(); ++i) {
      const AttentionSite &site = pattern.layers[i];
      language::PagedRows key = paged.addCache("key", int64_t(i), site.kvHeads, site.size);
      caches.push_back({key, paged.addCache("value", int64_t(i), site.kvHeads, site.valueSize)});
    }
    positions = g.reshape(places, {"rows", "1"});
    made[pattern.tokens] = column(g.reshape(tokens, {"rows", "1"}), pattern.tokens);
    if (pattern.positions)
      made[pattern.positions] = column(positions, pattern.positions);
  }
  // i32 numbers in the type of the value that they stand for.
  Value column(Value numbers, Value like) {
    DType type = analysis.info(like).type;
    return type == DType::I32 ? numbers : g.cast(numbers, type);
  }

  // The product with the output projection, if nothing but elementwise operations follow it.
  void findHead() {
    Value value = pattern.logits;
    while (Operation *op = value.getDefiningOp()) {
      bool isProduct = isa<ir::MatmulOp>(op) && op->getNumOperands() <= 3 &&
                       op->getOperand(1).getDefiningOp<ir::WeightOp>();
      if (isProduct && analysis.info(op->getOperand(0)).rank() == 3)
        head = op;
      bool isScaled = isa<ir::BinaryOp>(op) && op->getOperand(1).getDefiningOp<ir::ConstantOp>();
      if (isProduct || !value.hasOneUse() || !(isa<ir::UnaryOp, ir::CastOp>(op) || isScaled))
        return;
      value = op->getOperand(0);
    }
  }

  // What logits depend on, up to inputs, positions and caches.
  Status collect() {
    SmallVector<Value> work{pattern.logits};
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (made.contains(value))
        continue;
      if (matcher.isPositions(pattern, value)) {
        made[value] = column(positions, value);
        continue;
      }
      Operation *op = value.getDefiningOp();
      if (!op)
        return unbound(cast<BlockArgument>(value));
      if (!live.insert(op))
        continue;
      if (auto site = sites.find(op); site != sites.end())
        work.append({site->second->query, site->second->key, site->second->value});
      else
        work.append(op->operand_begin(), op->operand_end());
    }
    return Status::ok();
  }
  Status unbound(BlockArgument argument) {
    auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ir::kNameAttr);
    std::string what = "input '" + (name ? name.str() : "") + "' is used otherwise than for attention";
    for (Operation *user : argument.getUsers())
      if (live.contains(user))
        return atNode(user, what);
    return {Code::Unsupported, what};
  }

  Status copy(Operation *op) {
    g.at(locationNames(op->getLoc()));
    if (isa<ir::ConstantOp, ir::WeightOp, ir::NoneOp>(op)) {
      made[op->getResult(0)] = g.copy(op);
      return Status::ok();
    }
    if (auto dims = dyn_cast<ir::DimsOp>(op))
      return copyDims(dims);
    if (auto site = sites.find(op); site != sites.end()) {
      attend(*site->second, caches[size_t(site->second - pattern.layers.data())]);
      return g.status();
    }
    if (std::string mixing = mixingOf(op, analysis, pattern.symbols); !mixing.empty())
      return atNode(op, ir::catalogueName(op).str() + " " + mixing + ", the tokens");
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(made.lookup(operand));
      if (!operands.back())
        return atNode(op, "it uses what a paged step does not make");
    }
    if (op == head)
      operands[0] = g.op("gather", {operands[0], wanted}, {g.attr("axis", 0)});
    auto kernel = dyn_cast<ir::KernelOp>(op);
    DictionaryAttr attributes = kernel ? kernel.getConfigAttr() : op->getAttrDictionary();
    SmallVector<Value> results =
        g.ops(ir::catalogueName(op), operands,
              attributes ? attributes.getValue() : ArrayRef<NamedAttribute>(), op->getNumResults());
    for (auto [old, value] : llvm::zip(op->getResults(), results))
      made[old] = value;
    return g.status();
  }

  Status copyDims(ir::DimsOp op) {
    std::vector<std::string> texts;
    for (Dim dim : analysis.info(op.getResult()).ints) {
      Dim here = ofRows(dim);
      if (here.isUnknown())
        return atNode(op,
                      "it computes with " + dim.str() + ", which is not the same for all rows of a batch");
      for (Operation *user : op->getUsers())
        if (countsTokens(dim, pattern.symbols) && live.contains(user) &&
            !isa<ir::ReshapeOp, ir::ExpandOp>(user))
          return atNode(user, "it computes with the number of tokens, " + dim.str());
      texts.push_back(here.str());
    }
    made[op.getResult()] = g.dims(texts, op.getType());
    return Status::ok();
  }
  // The expression for rows that are sequences of one token; unknown if it has other symbols.
  Dim ofRows(Dim dim) {
    if (!dim.isSymbolic())
      return dim;
    const DimNode *node = dim.node();
    if (node->op == DimOp::Symbol) {
      const std::string &name = node->table->symbols()[size_t(node->value)];
      return name == pattern.symbols.batch      ? analysis.table().symbol("rows")
             : name == pattern.symbols.sequence ? Dim(1)
                                                : Dim();
    }
    if (node->op == DimOp::Const)
      return dim;
    Dim a = ofRows(Dim(node->lhs)), b = ofRows(Dim(node->rhs));
    return a.isUnknown() || b.isUnknown() ? Dim() : analysis.table().make(node->op, a, b);
  }

  void attend(const AttentionSite &site, const LayerCaches &cache) {
    auto rows = [&](Value value, int64_t heads, int64_t size) {
      return g.reshape(made.lookup(value), {"rows", text(heads), text(size)});
    };
    language::PagedRows keys = paged.write(cache.key, rows(site.key, site.kvHeads, site.size));
    language::PagedRows values = paged.write(cache.value, rows(site.value, site.kvHeads, site.valueSize));
    Value slopes = site.slopes.empty() ? Value() : g.floats("alibi_slopes", site.slopes, {site.heads});
    Value y = paged.attend(rows(site.query, site.heads, site.size), keys, values,
                           {site.scale, site.softcap, site.window, slopes});
    bool isHeadMajor = analysis.info(site.query).rank() == 4;
    made[site.op->getResult(0)] = isHeadMajor
                                      ? g.reshape(y, {"rows", text(site.heads), "1", text(site.valueSize)})
                                      : g.reshape(y, {"rows", "1", text(site.heads * site.valueSize)});
  }
  void finish() {
    g.at("output");
    Value logits = made.lookup(pattern.logits);
    if (!head)
      logits = g.op("gather", {logits, wanted}, {g.attr("axis", 0)});
    if (analysis.info(pattern.logits).type != DType::F32)
      logits = g.cast(logits, DType::F32);
    g.finish({{g.reshape(logits, {"wanted", text(pattern.vocabulary)}), "logits"}});
  }

  func::FuncOp func;
  ir::DimAnalysis &analysis;
  PatternMatcher &matcher;
  DecoderPattern pattern;
  language::GraphBuilder &g;
  language::PagedStep paged;
  llvm::DenseMap<Operation *, AttentionSite *> sites;
  llvm::DenseMap<Value, Value> made; // of the model's values those of the step
  llvm::SetVector<Operation *> live;
  Operation *head = nullptr;
  Value positions, wanted;
  std::vector<LayerCaches> caches;
};

} // namespace

bool looksLikeDecoder(ModuleOp module) {
  auto func = module.lookupSymbol<func::FuncOp>("main");
  return func && isDecoder(func);
}

StatusOr<RecoveredDecoder> recoverDecoder(ModuleOp module, int64_t contextLength,
                                          const language::DecoderOptions &options, WeightStore &weights) {
  auto func = module.lookupSymbol<func::FuncOp>("main");
  if (!func || !isDecoder(func))
    return Status(Code::Unsupported,
                  "the model has no input 'input_ids' with inputs 'past...' for keys and values");
  ir::DimAnalysis analysis;
  analysis.run(func);
  PatternMatcher matcher(func, analysis, weights, contextLength);
  DSPARK_ASSIGN_OR_RETURN(DecoderPattern pattern, matcher.match());
  RecoveredDecoder recovered;
  for (const AttentionSite &site : pattern.layers)
    recovered.windows.push_back(site.window);
  recovered.vocabulary = pattern.vocabulary;
  NoCheckpoint none;
  recovered.module = ModuleOp::create(UnknownLoc::get(module.getContext()));
  language::GraphBuilder graph(*recovered.module, "main", none, weights, "");
  Rewriter rewriter(func, analysis, matcher, std::move(pattern), options.cacheType, graph);
  DSPARK_RETURN_IF_ERROR(rewriter.run());
  return recovered;
}

} // namespace dspark::recovery

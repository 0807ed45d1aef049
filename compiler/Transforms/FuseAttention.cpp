// softmax(scale Q K^T + mask) V, spelled out in matrix products, becomes one attention: the scores are never
// written, and Q, K, V and the result need no transposes where the heads come from a split last axis.
//
//   K' = transpose(K); S = Q @ K'; S = S * scale (also on Q or K'); S = S + mask, or where(c, S, number)
//   P = softmax(S); Y = P @ V          ->          attention(Q, K, V, mask) {scale}
//
// It differs from the original by the order of sums only: rows whose keys are all at -inf stay NaN
// (hidden_rows = "nan") unless the graph itself made them 0, as torch's where(isnan(P), 0, P) does.
#include "compiler/Support/ConstantTensor.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/OpFactory.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

// A plain product of two values.
ir::MatmulOp product(Value value) {
  auto op = value.getDefiningOp<ir::MatmulOp>();
  return op && op.getInputs().size() == 2 && !op.getActivation() && !op.getPacked() &&
                 op.getTransA().value_or(0) == 0
             ? op
             : ir::MatmulOp();
}

// The operand of a transpose by `perm`, or null.
Value transposed(Value value, ArrayRef<int64_t> perm) {
  auto op = value.getDefiningOp<ir::TransposeOp>();
  return op && op.getPerm() && *op.getPerm() == perm ? op.getInputs()[0] : Value();
}

// Takes numbers that multiply or divide a value off it, into `scale`.
Value withoutScale(Value value, double &scale, bool needsOneUse) {
  while (auto op = value.getDefiningOp<ir::BinaryOp>()) {
    bool isProduct = op.getKind() == "mul";
    if (op.getInputs().size() != 2 || (!isProduct && op.getKind() != "div") ||
        (needsOneUse && !value.hasOneUse()))
      break;
    std::optional<float> right = ConstantTensor::splat(op.getInputs()[1]), left;
    if (isProduct && !right)
      left = ConstantTensor::splat(op.getInputs()[0]);
    Value rest = op.getInputs()[left ? 1 : 0];
    // A number of more dims than the value would add some.
    if ((!right && !left) || rest.getType() != value.getType())
      break;
    scale = left ? scale * *left : isProduct ? scale * *right : scale / *right;
    value = rest;
  }
  return value;
}

// Rows of heads: [B,H,T,D], or [B,T,H,D] where `isTokenMajor`; of rank 3 [B,T,D].
struct Heads {
  Value value;
  bool isTokenMajor = false;
};

struct Match {
  Heads q, k, v;
  Value mask;       // added to the scores; or
  Value visible;    // where not, the scores become `hidden`
  float hidden = 0; // a splat constant's number
  double scale = 1;
  bool isGuarded = false;  // NaN probabilities become 0
  SmallVector<Dim> spread; // the last dims that a mask must be given, where they are not known to be so
};

class Fuser {
public:
  explicit Fuser(func::FuncOp func) : builder(func.getContext()), factory(builder, analysis) {
    analysis.run(func);
  }

  void fuse(ir::MatmulOp root) {
    Match m;
    if (match(root, m))
      rewrite(root, m);
  }

private:
  bool match(ir::MatmulOp root, Match &m) {
    if (!product(root->getResult(0)) || root.getTransB().value_or(0) != 0)
      return false;
    Value probabilities = root.getInputs()[0];
    Value scores = softmaxInput(probabilities, m);
    if (!scores)
      return false;
    ir::MatmulOp qk = unmasked(scores, m);
    if (!qk || !isF32(root->getResult(0)))
      return false;
    m.q = heads(withoutScale(qk.getInputs()[0], m.scale, false));
    m.v = heads(root.getInputs()[1]);
    m.k = keys(withoutScale(qk.getInputs()[1], m.scale, false), qk.getTransB().value_or(0) != 0);
    return m.k.value && fits(m, analysis.info(qk->getResult(0)));
  }

  static bool isF32(Value value) { return cast<TensorType>(value.getType()).getElementType().isF32(); }

  // What the softmax of these probabilities reads, if nothing else uses it or them.
  Value softmaxInput(Value probabilities, Match &m) {
    if (!probabilities.hasOneUse())
      return Value();
    if (auto guard = probabilities.getDefiningOp<ir::SelectOp>()) { // where(isnan(P), 0, P)
      auto isNan = guard.getInputs()[0].getDefiningOp<ir::UnaryOp>();
      Value inner = guard.getInputs()[2];
      if (!isNan || isNan.getKind() != "isnan" || isNan.getInputs()[0] != inner ||
          ConstantTensor::splat(guard.getInputs()[1]) != 0.0f || !inner.hasNUses(2) || !isNan->hasOneUse())
        return Value();
      m.isGuarded = true;
      probabilities = inner;
    }
    auto softmax = probabilities.getDefiningOp<ir::SoftmaxOp>();
    if (!softmax || softmax.getKind().value_or("softmax") != "softmax")
      return Value();
    const TensorInfo &info = analysis.info(probabilities);
    int64_t axis = softmax.getAxis().value_or(-1);
    if (!info.hasRank || (axis != -1 && axis != info.rank() - 1))
      return Value();
    return softmax.getInputs()[0].hasOneUse() ? softmax.getInputs()[0] : Value();
  }

  // The product behind scale and mask.
  ir::MatmulOp unmasked(Value scores, Match &m) {
    if (auto add = scores.getDefiningOp<ir::BinaryOp>(); add && add.getKind() == "add")
      for (unsigned i : {0, 1}) {
        double scale = 1;
        Value inner = withoutScale(add.getInputs()[i], scale, true);
        if (ir::MatmulOp qk = product(inner); qk && inner.hasOneUse() && isScores(inner)) {
          m.mask = add.getInputs()[1 - i], m.scale = scale;
          return qk;
        }
      }
    if (auto select = scores.getDefiningOp<ir::SelectOp>())
      if (std::optional<float> number = ConstantTensor::splat(select.getInputs()[2])) {
        m.visible = select.getInputs()[0], m.hidden = *number;
        scores = select.getInputs()[1];
      }
    scores = withoutScale(scores, m.scale, true);
    return scores.hasOneUse() ? product(scores) : ir::MatmulOp();
  }
  // Not itself the sum of a mask that is a product: both factors have a batch.
  bool isScores(Value value) {
    return analysis.info(product(value).getInputs()[0]).rank() >= 3 &&
           analysis.info(product(value).getInputs()[1]).rank() >= 3;
  }

  static Heads heads(Value value) {
    if (Value tokenMajor = transposed(value, {0, 2, 1, 3}))
      return {tokenMajor, true};
    return {value, false};
  }

  // K from K', whose last two axes are the other way round.
  Heads keys(Value value, bool isTransposed) {
    if (isTransposed)
      return heads(value);
    if (Value k = transposed(value, {0, 1, 3, 2}))
      return heads(k);
    if (Value k = transposed(value, {0, 2, 3, 1}))
      return {k, true};
    if (Value k = transposed(value, {0, 2, 1}))
      return {k, false};
    return heads(throughReshapes(value));
  }
  // reshape(transpose(reshape(K, [B*H,T,D]), [0,2,1]), [B,H,D,T]) is transpose(K, [0,1,3,2]).
  Value throughReshapes(Value value) {
    auto outer = value.getDefiningOp<ir::ReshapeOp>();
    Value inner = outer ? transposed(outer.getInputs()[0], {0, 2, 1}) : Value();
    auto merge = inner ? inner.getDefiningOp<ir::ReshapeOp>() : ir::ReshapeOp();
    if (!merge)
      return Value();
    Value k = merge.getInputs()[0];
    const TensorInfo &to = analysis.info(value), &from = analysis.info(k), &middle = analysis.info(inner);
    if (!to.hasRank || !from.hasRank || to.rank() != 4 || from.rank() != 4)
      return Value();
    auto same = [](Dim a, Dim b) { return a.provablyEqual(b); };
    bool isPlain = same(to.dims[0], from.dims[0]) && same(to.dims[1], from.dims[1]) &&
                   same(to.dims[2], from.dims[3]) && same(to.dims[3], from.dims[2]) &&
                   same(middle.dims[1], from.dims[2]) && same(middle.dims[2], from.dims[3]);
    return isPlain ? k : Value();
  }

  // Equal batches and heads, and a mask that broadcasts onto the scores without hiding keys beyond its end.
  bool fits(Match &m, const TensorInfo &scores) {
    TensorInfo q = headMajor(m.q), k = headMajor(m.k), v = headMajor(m.v);
    if (!scores.hasRank || q.rank() != scores.rank() || k.rank() != q.rank() || v.rank() != q.rank() ||
        q.rank() < 3 || q.rank() > 4 || q.type != DType::F32 || k.type != DType::F32 || v.type != DType::F32)
      return false;
    for (int i = 0; i < q.rank() - 2; ++i)
      if (!q.dims[i].provablyEqual(k.dims[i]) || !q.dims[i].provablyEqual(v.dims[i]))
        return false;
    // A head count is an attribute's matter in rank 3, and heads must divide in rank 4: known is simplest.
    if (q.rank() == 4 && !(q.dims[1].isConst() && q.dims[1].value() > 0))
      return false;
    for (Value mask : {m.mask, m.visible})
      if (mask && !maskFits(analysis.info(mask), scores, m))
        return false;
    return true;
  }
  bool maskFits(const TensorInfo &mask, const TensorInfo &scores, Match &m) {
    int rank = mask.rank(), offset = scores.rank() - rank;
    if (!mask.hasRank || rank < 1 || offset < 0 || (scores.rank() == 3 && rank > 2))
      return false;
    for (int i = 0; i < rank; ++i) {
      Dim found = mask.dims[i], wanted = scores.dims[offset + i];
      if (found.provablyEqual(wanted) || (found.is(1) && i < rank - 1))
        continue;
      // A run decides whether the dim is 1 or the scores' own.
      if (i < rank - 2 || found.isConst() || !analysis.isInputExpression(wanted))
        return false;
      m.spread.assign(scores.dims.end() - std::min(rank, 2), scores.dims.end());
    }
    return llvm::all_of(m.spread, [&](Dim dim) { return analysis.isInputExpression(dim); });
  }
  TensorInfo headMajor(const Heads &heads) {
    TensorInfo info = analysis.info(heads.value);
    if (!info.hasRank)
      return TensorInfo::make(DType::Undefined, {});
    if (heads.isTokenMajor)
      std::swap(info.dims[1], info.dims[2]);
    return info;
  }

  void rewrite(ir::MatmulOp root, const Match &m) {
    builder.setInsertionPoint(root);
    Location loc = root.getLoc();
    TensorInfo q = headMajor(m.q), v = headMajor(m.v);
    SmallVector<NamedAttribute> attributes{factory.attr("scale", m.scale)};
    if (!m.isGuarded)
      attributes.push_back(factory.attr("hidden_rows", "nan"));
    bool isTokenMajor = m.q.isTokenMajor && m.k.isTokenMajor && m.v.isTokenMajor && q.dims[3].isConst() &&
                        v.dims[3].isConst();
    int64_t count = q.rank() == 3 ? 1 : q.dims[1].isConst() ? q.dims[1].value() : 0;
    if (isTokenMajor || q.rank() == 3)
      attributes.append({factory.attr("q_num_heads", count), factory.attr("kv_num_heads", count)});
    SmallVector<Value> operands;
    for (const Heads &h : {m.q, m.k, m.v})
      operands.push_back(isTokenMajor ? merged(loc, h.value) : headMajorValue(loc, h));
    Value mask = m.mask;
    if (m.visible)
      mask =
          factory.make1(loc, "select", {m.visible, factory.scalar(loc, 0.0f), factory.scalar(loc, m.hidden)});
    if (mask && !m.spread.empty())
      mask = factory.make1(loc, "expand", {mask, dims(loc, m.spread)});
    if (mask || m.mask || m.visible)
      operands.push_back(mask);
    Value y = llvm::is_contained(operands, Value()) ? Value()
                                                    : factory.make1(loc, "attention", operands, attributes);
    if (!y)
      return;
    Value result = root->getResult(0);
    if (isTokenMajor) {
      y = factory.make1(loc, "reshape", {y, factory.ints(loc, {0, 0, count, v.dims[3].value()})});
      if (Operation *user = result.hasOneUse() ? *result.user_begin() : nullptr;
          user && user->getNumResults() == 1 && transposed(user->getResult(0), {0, 2, 1, 3}) == result)
        result = user->getResult(0);
      else
        y = factory.make1(loc, "transpose", {y}, {factory.attr("perm", ArrayRef<int64_t>{0, 2, 1, 3})});
    }
    y.setType(result.getType());
    analysis.setInfo(y, analysis.info(result));
    result.replaceAllUsesWith(y);
  }

  Value dims(Location loc, ArrayRef<Dim> values) {
    SmallVector<std::string> texts;
    for (Dim dim : values)
      texts.push_back(dim.str());
    SmallVector<StringRef> exprs(texts.begin(), texts.end());
    auto type = RankedTensorType::get({int64_t(exprs.size())}, builder.getI64Type());
    auto op = ir::DimsOp::create(builder, loc, type, builder.getStrArrayAttr(exprs));
    analysis.visit(op);
    return op.getResult();
  }
  Value headMajorValue(Location loc, const Heads &h) {
    if (!h.isTokenMajor)
      return h.value;
    return factory.make1(loc, "transpose", {h.value}, {factory.attr("perm", ArrayRef<int64_t>{0, 2, 1, 3})});
  }
  // [B,T,H,D] as [B,T,H*D]: what it was split from, if it was.
  Value merged(Location loc, Value value) {
    const TensorInfo &info = analysis.info(value);
    int64_t width = info.dims[2].value() * info.dims[3].value();
    if (auto split = value.getDefiningOp<ir::ReshapeOp>()) {
      const TensorInfo &whole = analysis.info(split.getInputs()[0]);
      if (whole.hasRank && whole.rank() == 3 && whole.dims[0].provablyEqual(info.dims[0]) &&
          whole.dims[1].provablyEqual(info.dims[1]) && whole.dims[2].is(width))
        return split.getInputs()[0];
    }
    return factory.make1(loc, "reshape", {value, factory.ints(loc, {0, 0, width})});
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
};

struct FuseAttentionPass : impl::FuseAttentionPassBase<FuseAttentionPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Fuser fuser(getOperation());
    SmallVector<ir::MatmulOp> roots;
    getOperation().walk([&](ir::MatmulOp op) { roots.push_back(op); });
    for (ir::MatmulOp root : roots)
      fuser.fuse(root);
    // What is left of the spelled-out form must not count as a use in the passes that follow.
    SmallVector<Operation *> all;
    getOperation().walk([&](Operation *op) { all.push_back(op); });
    for (Operation *op : llvm::reverse(all))
      if (isOpTriviallyDead(op))
        op->erase();
  }
};

} // namespace
} // namespace dspark

// Shape functions meet hostile plans: whatever the operands' ranks, types, dims, contents and attributes,
// they answer, refuse with a sentence, or ask for contents that are not known. Run under the sanitizers this
// is a small fuzzer; the draws favour values at the edges.
#include "kernels/common/catalogue.h"
#include "kernels/common/infer.h"
#include "test/kernels/shape_case.h"

namespace dspark {
namespace {

using namespace test;

class Draw {
public:
  explicit Draw(uint32_t seed) : rng(seed) {}
  int64_t below(int64_t n) { return int64_t(rng() % uint64_t(n)); }
  int64_t number() {
    constexpr int64_t kEdges[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  7,
                                  64,
                                  1000,
                                  -1,
                                  -2,
                                  -3,
                                  INT32_MAX,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_MIN + 1,
                                  int64_t(1) << 40};
    return kEdges[below(below(3) == 0 ? std::size(kEdges) : 7)];
  }
  Dim dim(bool symbolic) {
    if (symbolic && below(3) == 0)
      return below(2) ? table.symbol("n") + Dim(below(3)) : table.symbol("m") * Dim(below(4));
    return below(8) == 0 ? Dim() : Dim(number());
  }
  TensorInfo tensor(bool symbolic) {
    constexpr DType kTypes[] = {DType::Undefined, DType::F32, DType::I64, DType::I64, DType::I32,
                                DType::Bool,      DType::F16, DType::U4,  DType::C64, DType::String};
    TensorInfo info;
    info.type = kTypes[below(below(3) ? 4 : int64_t(std::size(kTypes)))];
    info.hasRank = below(8) != 0;
    for (int64_t i = below(below(6) ? 5 : 14); info.hasRank && i > 0; --i)
      info.dims.push_back(dim(symbolic));
    if (below(2)) {
      // Mostly as many as the dims say, where that is few.
      info.hasContents = true;
      int64_t count = below(6);
      if (below(4)) {
        info.hasRank = true;
        info.dims.clear();
        if (count != 1 || below(2))
          info.dims.push_back(Dim(count));
      }
      for (int64_t i = 0; i < count; ++i)
        if (isFloat(info.type))
          info.floats.push_back(double(number()) / double(below(3)));
        else
          info.ints.push_back(dim(symbolic));
    }
    return info;
  }
  DimTable table;

private:
  std::mt19937_64 rng;
};

// Attributes of every family; each operator ignores most of them.
AttrList attributes(Draw &draw) {
  constexpr const char *kInts[] = {
      "axis", "allowzero", "axes",  "batch_axis", "time_axis", "batch_dims", "blocksize",   "dtype",
      "end",  "start",     "k",     "keepdims",   "largest",   "num_groups", "num_outputs", "p",
      "perm", "size",      "split", "stash_type", "value",     "sorted"};
  constexpr const char *kTexts[] = {"sum",      "mean", "argmax", "log_softmax", "layer",
                                    "constant", "edge", "DCR",    "nonsense",    ""};
  AttrList attrs;
  for (const char *name : kInts) {
    if (draw.below(2))
      continue;
    std::vector<int64_t> list;
    for (int64_t i = draw.below(3) ? 1 : draw.below(5); i > 0; --i)
      list.push_back(draw.number());
    attrs.set(name, list);
  }
  for (const char *name : {"kind", "mode", "reduction"})
    if (draw.below(2))
      attrs.set(name, kTexts[draw.below(std::size(kTexts))]);
  return attrs;
}

bool allKnown(const std::vector<TensorInfo> &operands, const TensorInfo &asked) {
  for (const TensorInfo &info : operands)
    if (info.present() && knownElements(info) < 0)
      return false;
  return contentsFit(asked) && (isFloat(asked.type) || numbers(asked.ints));
}

void hammer(const OpEntry &op, uint32_t seed) {
  Draw draw(seed);
  for (int round = 0; round < 3000; ++round) {
    bool symbolic = draw.below(2);
    std::vector<TensorInfo> in;
    for (int64_t i = draw.below(6); i > 0; --i)
      in.push_back(draw.tensor(symbolic));
    AttrList attrs = attributes(draw);
    InferContext ctx;
    ctx.in = in;
    ctx.attrs = attrs.view();
    ctx.out.resize(size_t(draw.below(5)));
    InferStatus status = op.infer(ctx);
    if (status == InferStatus::Error) {
      ASSERT_FALSE(ctx.error.empty()) << op.name;
      continue;
    }
    if (status == InferStatus::NeedsContents) {
      ASSERT_TRUE(ctx.has(size_t(ctx.needed))) << op.name;
      ASSERT_FALSE(allKnown(in, ctx.in[size_t(ctx.needed)])) << op.name << " asks for contents that it has";
      continue;
    }
    for (const TensorInfo &out : ctx.out) {
      ASSERT_LE(out.rank(), kMaxRank) << op.name;
      if (out.hasContents) {
        ASSERT_LE(std::max(out.ints.size(), out.floats.size()), size_t(kMaxKnownElements)) << op.name;
      }
    }
  }
}

TEST(ShapeTotality, EveryOperator) {
  uint32_t seed = 1;
  for (const OpEntry &op : allOps())
    hammer(op, seed++);
}

} // namespace
} // namespace dspark

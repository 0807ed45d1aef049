// Shape functions of data movement: symbolic dims stay exact, shape subgraphs fold, nonsense is refused.
#include "test/kernels/shape_case.h"

namespace dspark {
namespace {

using namespace test;

class MovementShape : public testing::Test {
protected:
  DimTable table;
  Dim batch = table.symbol("batch"), seq = table.symbol("seq");
  AttrList attrs;
};

// Entries that no shape depends on are read by the kernel all the same.
TEST_F(MovementShape, SliceWantsAnEntryPerAxis) {
  TensorInfo none = contents({});
  EXPECT_EQ(infer("slice", {f32({4, 5}), i64({3}), i64({3}), none}).str(),
            "error: operand 1 has 3 entries for 0 axes");
  EXPECT_EQ(infer("slice", {f32({4, 5}), i64({0}), i64({3}), none}).str(),
            "error: operand 2 has 3 entries for 0 axes");
  EXPECT_EQ(infer("slice", {f32({4, 5}), i64({1}), i64({1}), contents({0}), i64({2})}).str(),
            "error: operand 4 has 2 entries for 1 axes");
}

TEST_F(MovementShape, ReshapeDividesSymbolically) {
  EXPECT_EQ(infer("reshape", {f32({batch, seq, 768}), contents({0, 0, 12, 64})}).str(),
            "f32[batch, seq, 12, 64]");
  EXPECT_EQ(infer("reshape", {f32({batch, seq, 768}), contents({0, -1, 64})}).str(),
            "f32[batch, seq*12, 64]");
  EXPECT_EQ(infer("reshape", {f32({batch, seq, 768}), contents({batch, -1})}).str(), "f32[batch, seq*768]");
  EXPECT_EQ(infer("reshape", {f32({batch, seq, 12, 64}), contents({-1, 768})}).str(),
            infer("flatten", {f32({batch, seq, 768})}, AttrList().set("axis", 2)).str());
  // A copied dim cancels even where it is unknown.
  EXPECT_EQ(infer("reshape", {f32({Dim(), seq, 64}), contents({0, -1})}).str(), "f32[?, seq*64]");
}

TEST_F(MovementShape, ReshapeRefuses) {
  EXPECT_EQ(infer("reshape", {f32({2, 3}), contents({4, -1})}).str(),
            "error: cannot reshape f32[2, 3]: its 6 elements do not divide by 4");
  EXPECT_EQ(infer("reshape", {f32({2, 3}), contents({-1, -1})}).str(),
            "error: the shape has more than one -1");
  EXPECT_EQ(infer("reshape", {f32({2, 3}), contents({5})}).str(),
            "error: cannot reshape f32[2, 3] to f32[5]: the numbers of elements differ");
  EXPECT_EQ(infer("reshape", {f32({2}), contents({2, 0})}).str(),
            "error: entry 1 of the shape is 0 but f32[2] has no such dim to copy");
  EXPECT_EQ(infer("reshape", {f32({2, 3}), contents({-2})}).str(),
            "error: entry 0 of the shape is -2, expected -1 or more");
}

TEST_F(MovementShape, ReshapeNeedsContentsButKnowsTheRank) {
  Inferred r = infer("reshape", {f32({batch, 4}), i64({3})});
  EXPECT_EQ(r.status, InferStatus::NeedsContents);
  EXPECT_EQ(r.needed, 1);
  EXPECT_EQ(r.str(), "f32[?, ?, ?]");
}

// Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as exporters write "x.view(b, -1)".
TEST_F(MovementShape, ShapeSubgraphFolds) {
  TensorInfo x = f32({batch, seq, 12, 64});
  TensorInfo shape = infer("shape", {x}).out[0];
  EXPECT_EQ(shape.str(), "i64[4]");
  TensorInfo first = infer("gather", {shape, scalarContents(0)}).out[0];
  TensorInfo row = infer("unsqueeze", {first, contents({0})}).out[0];
  Inferred target =
      infer("concat", {row, contents({-1}), contents({768})}, AttrList().set("axis", int64_t(0)));
  EXPECT_EQ(target.ints(), "batch, -1, 768");
  EXPECT_EQ(infer("reshape", {x, target.out[0]}).str(), "f32[batch, seq, 768]");
}

TEST_F(MovementShape, ContentsPassThrough) {
  TensorInfo v = contents({batch, 2, 3, seq});
  EXPECT_EQ(infer("slice", {v, contents({1}), contents({INT64_MAX})}).ints(), "2, 3, seq");
  EXPECT_EQ(infer("slice", {v, contents({-1}), contents({INT64_MIN}), contents({0}), contents({-2})}).ints(),
            "seq, 2");
  EXPECT_EQ(infer("squeeze", {infer("slice", {v, contents({0}), contents({1})}).out[0]}).ints(), "batch");
  EXPECT_EQ(infer("reshape", {v, contents({2, 2})}).ints(), "batch, 2, 3, seq");
  TensorInfo square = infer("reshape", {v, contents({2, 2})}).out[0];
  EXPECT_EQ(infer("transpose", {square}).ints(), "batch, 3, 2, seq");
  EXPECT_EQ(infer("split", {v, contents({3, 1})}, {}, 2).ints(1), "seq");
  EXPECT_EQ(infer("tile", {v, contents({2})}).ints(), "batch, 2, 3, seq, batch, 2, 3, seq");
  EXPECT_EQ(infer("expand", {contents({seq}), contents({3})}).ints(), "seq, seq, seq");
  EXPECT_EQ(infer("size", {f32({batch, 3, seq})}).ints(), (batch * seq * Dim(3)).str());
  EXPECT_EQ(infer("shape", {f32({batch, 3, seq})}, AttrList().set("start", -1)).ints(), "seq");
}

TEST_F(MovementShape, SliceOfSymbolicDims) {
  auto slice = [&](Dim start, Dim end, int64_t step = 1) {
    return infer("slice", {f32({seq}), contents({start}), contents({end}), contents({0}), contents({step})})
        .str();
  };
  EXPECT_EQ(slice(0, INT64_MAX), "f32[seq]");
  EXPECT_EQ(slice(0, INT32_MAX), "f32[seq]");
  EXPECT_EQ(slice(0, 5), "f32[min(seq, 5)]");
  EXPECT_EQ(slice(-3, INT64_MAX), "f32[min(seq, 3)]");
  EXPECT_EQ(slice(0, -1), slice(1, INT64_MAX));
  EXPECT_EQ(slice(0, batch), "f32[" + min(batch, seq).str() + "]");
  EXPECT_EQ(slice(-1, INT64_MIN, -1), "f32[seq]");
  EXPECT_EQ(slice(0, INT64_MAX, 2), "f32[ceildiv(seq, 2)]");
}

// The expressions agree with the numbers for every small case.
TEST_F(MovementShape, SliceExpressionsAreExact) {
  for (int64_t step : {1, 2, 3, -1, -2})
    for (int64_t start : {0, 1, 4, -1, -3, 9})
      for (int64_t end : {0, 1, 5, -1, -2, 9, -9})
        for (int64_t dim = 1; dim < 7; ++dim) {
          std::vector<TensorInfo> rest = {contents({start}), contents({end}), contents({0}),
                                          contents({step})};
          auto infered = [&](Dim d) {
            return infer("slice", {f32({d}), rest[0], rest[1], rest[2], rest[3]}).out[0].dims[0];
          };
          Dim expression = infered(seq), number = infered(dim);
          if (expression.isUnknown())
            continue;
          std::function<int64_t(const DimNode *)> evaluate = [&](const DimNode *node) -> int64_t {
            if (node->op == DimOp::Const)
              return node->value;
            if (node->op == DimOp::Symbol)
              return dim;
            return *evaluateDimOp(node->op, evaluate(node->lhs), evaluate(node->rhs));
          };
          int64_t value = expression.isConst() ? expression.value() : evaluate(expression.node());
          ASSERT_EQ(value, number.value())
              << start << ":" << end << ":" << step << " of " << dim << " as " << expression.str();
        }
}

TEST_F(MovementShape, JoinsAndCuts) {
  attrs.set("axis", 1);
  EXPECT_EQ(infer("concat", {f32({batch, 3, seq}), f32({batch, 5, 7}), f32({Dim(), 1, Dim()})}, attrs).str(),
            "f32[batch, 9, 7]");
  EXPECT_EQ(infer("concat", {f32({2, 3}), f32({3, 3})}, attrs).str(),
            "error: cannot concat f32[2, 3] and f32[3, 3] along axis 1: dim 0 differs");
  EXPECT_EQ(infer("split", {f32({2, 7})}, attrs, 3).str(2), "f32[2, 1]");
  EXPECT_EQ(infer("split", {f32({2, seq * Dim(3)})}, attrs, 3).str(2), "f32[2, seq]");
  EXPECT_EQ(infer("split", {f32({2, 7}), contents({4, 4})}, attrs, 2).str(),
            "error: split adds up to 8 but dim 1 of f32[2, 7] is 7");
  EXPECT_EQ(infer("pad", {f32({batch, seq}), contents({0, 1, 0, 2})}).str(), "f32[batch, seq + 3]");
  EXPECT_EQ(infer("pad", {f32({2, 0}), contents({0, 1, 0, 2})}, AttrList().set("mode", "edge")).str(),
            "error: mode edge has nothing to repeat in dim 1 of f32[2, 0]");
  EXPECT_EQ(infer("expand", {f32({batch, 1}), contents({1, seq})}).str(), "f32[batch, seq]");
  EXPECT_EQ(infer("transpose", {f32({batch, seq, 3})}, AttrList().set("perm", {2, 0, 1})).str(),
            "f32[3, batch, seq]");
  EXPECT_EQ(infer("transpose", {f32({batch, seq})}, AttrList().set("perm", {0, 0})).str(),
            "error: perm is no permutation of the 2 dims of f32[batch, seq]");
  EXPECT_EQ(infer("depth_to_space", {f32({batch, 12, seq, 5})}, AttrList().set("blocksize", 2)).str(),
            "f32[batch, 3, seq*2, 10]");
}

} // namespace
} // namespace dspark

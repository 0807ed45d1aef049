// Shape functions of the elementwise family: result types and dims, what they refuse, and how the contents of
// small tensors, known or symbolic, pass through them.
#include "kernels/common/catalogue.h"
#include "kernels/elementwise/contents.h"
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using test::AttrList;

TensorInfo ints(std::vector<Dim> values, DType type = DType::I64) {
  TensorInfo info = TensorInfo::make(type, {Dim(values.size())});
  info.hasContents = true;
  info.ints = std::move(values);
  return info;
}
TensorInfo floats(std::vector<double> values) {
  TensorInfo info = TensorInfo::make(DType::F32, {Dim(values.size())});
  info.hasContents = true;
  info.floats = std::move(values);
  return info;
}

struct Inferred {
  InferStatus status;
  TensorInfo out;
  std::string error;
};
Inferred infer(const char *op, std::vector<TensorInfo> in, const AttrList &attrs) {
  InferContext ctx;
  ctx.in = in;
  Attrs view = attrs.view();
  ctx.attrs = view;
  ctx.out.resize(1);
  InferStatus status = findOp(op)->infer(ctx);
  return {status, ctx.out[0], ctx.error};
}
std::string contents(const Inferred &result) {
  std::string text;
  if (!result.out.hasContents)
    return "none";
  for (Dim dim : result.out.ints)
    text += dim.str() + ";";
  for (double value : result.out.floats)
    text += std::to_string(value) + ";";
  return text;
}
AttrList kind(const char *name) {
  AttrList attrs;
  attrs.set("kind", name);
  return attrs;
}

TEST(ElementwiseShape, BroadcastsSymbolicDims) {
  DimTable table;
  Dim batch = table.symbol("batch");
  Inferred r =
      infer("binary", {TensorInfo::make(DType::F32, {batch, 1, 4}), TensorInfo::make(DType::F32, {3, 4})},
            kind("add"));
  EXPECT_EQ(r.status, InferStatus::Ok);
  EXPECT_EQ(r.out.str(), "f32[batch, 3, 4]");
  r = infer("compare", {TensorInfo::make(DType::I32, {batch}), TensorInfo::make(DType::I32, {})}, kind("lt"));
  EXPECT_EQ(r.out.str(), "bool[batch]");
}

TEST(ElementwiseShape, Refuses) {
  TensorInfo f = TensorInfo::make(DType::F32, {2}), i = TensorInfo::make(DType::I32, {2}),
             wide = TensorInfo::make(DType::F32, {3}), b = TensorInfo::make(DType::Bool, {2});
  struct Case {
    const char *op;
    std::vector<TensorInfo> in;
    AttrList attrs;
    const char *says;
  };
  AttrList badCast, narrowCast;
  badCast.set("to", 999);
  narrowCast.set("to", int64_t(DType::F16));
  for (const Case &c :
       {Case{"unary", {f}, kind("frobnicate"), "unknown kind"},
        Case{"unary", {i}, kind("exp"), "exp does not take operand 0 of type i32"},
        Case{"unary", {f, f}, kind("exp"), "expected 1 operands, found 2"},
        Case{"binary", {f, i}, kind("add"), "must have type i32"},
        Case{"binary", {f, wide}, kind("add"), "does not broadcast"},
        Case{"binary", {f, f}, kind("and"), "and does not take"},
        Case{"select", {f, f, f}, AttrList(), "must have type bool"},
        Case{"select", {b, f, i}, AttrList(), "must have type i32"},
        Case{"clip", {f, f}, AttrList(), "must have one element"}, Case{"cast", {f}, badCast, "attribute to"},
        Case{"bitcast", {f}, narrowCast, "32 bits"}}) {
    Inferred r = infer(c.op, c.in, c.attrs);
    EXPECT_EQ(r.status, InferStatus::Error) << c.op << c.says;
    EXPECT_NE(r.error.find(c.says), std::string::npos) << r.error;
  }
}

TEST(ElementwiseShape, FoldsNumbers) {
  EXPECT_EQ(contents(infer("binary", {ints({7, -7, 5}), ints({2})}, kind("div"))), "3;-3;2;");
  EXPECT_EQ(contents(infer("binary", {ints({7, -7}), ints({3, 3})}, kind("mod"))), "1;2;");
  EXPECT_EQ(contents(infer("binary", {ints({7, -7}), ints({3, 3})}, kind("fmod"))), "1;-1;");
  EXPECT_EQ(contents(infer("binary", {ints({200}, DType::U8), ints({100}, DType::U8)}, kind("add"))), "44;");
  EXPECT_EQ(contents(infer("binary", {ints({1}), ints({0})}, kind("div"))), "0;");
  EXPECT_EQ(contents(infer("binary", {ints({INT64_MIN}), ints({-1})}, kind("div"))), "-9223372036854775808;");
  EXPECT_EQ(contents(infer("unary", {ints({-4, 4})}, kind("abs"))), "4;4;");
  EXPECT_EQ(contents(infer("compare", {ints({1, 2, 3}), ints({2})}, kind("le"))), "1;1;0;");
  EXPECT_EQ(contents(infer("select", {ints({1, 0}, DType::Bool), ints({5, 6}), ints({7})}, AttrList())),
            "5;7;");
  EXPECT_EQ(contents(infer("binary", {floats({1.5, 2}), floats({2})}, kind("mul"))), "3.000000;4.000000;");
  AttrList toInt, toFloat;
  toInt.set("to", int64_t(DType::I64));
  toFloat.set("to", int64_t(DType::F32));
  EXPECT_EQ(contents(infer("cast", {floats({-2.7, 3.9})}, toInt)), "-2;3;");
  EXPECT_EQ(contents(infer("cast", {ints({3})}, toFloat)), "3.000000;");
  EXPECT_EQ(contents(infer("clip", {ints({1, 9}), ints({2}), ints({5})}, AttrList())), "2;5;");
}

TEST(ElementwiseShape, FoldsExpressions) {
  DimTable table;
  Dim seq = table.symbol("seq");
  EXPECT_EQ(contents(infer("binary", {ints({seq, 4}), ints({2})}, kind("mul"))), (seq * 2).str() + ";8;");
  EXPECT_EQ(contents(infer("binary", {ints({seq * 4}), ints({2})}, kind("div"))), (seq * 2).str() + ";");
  EXPECT_EQ(contents(infer("binary", {ints({seq}), ints({2})}, kind("div"))), floorDiv(seq, 2).str() + ";");
  // May be negative, where truncation and flooring differ.
  EXPECT_EQ(contents(infer("binary", {ints({seq - 5}), ints({2})}, kind("div"))), "?;");
  EXPECT_EQ(contents(infer("compare", {ints({seq}), ints({-1})}, kind("eq"))), "0;");
  EXPECT_EQ(contents(infer("compare", {ints({seq}), ints({0})}, kind("ge"))), "1;");
  EXPECT_EQ(contents(infer("compare", {ints({seq}), ints({1})}, kind("eq"))), "?;");
  EXPECT_EQ(contents(infer("compare", {ints({seq + 1}), ints({seq})}, kind("gt"))), "1;");
  EXPECT_EQ(contents(infer("select", {ints({Dim()}, DType::Bool), ints({seq}), ints({seq})}, AttrList())),
            "seq;");
  EXPECT_EQ(contents(infer("select", {ints({Dim()}, DType::Bool), ints({seq}), ints({1})}, AttrList())),
            "?;");
  EXPECT_EQ(contents(infer("binary", {ints({Dim()}, DType::Bool), ints({0}, DType::Bool)}, kind("and"))),
            "0;");
  AttrList toI32, toFloat;
  toI32.set("to", int64_t(DType::I32));
  toFloat.set("to", int64_t(DType::F32));
  EXPECT_EQ(contents(infer("cast", {ints({seq})}, toI32)), "seq;");
  EXPECT_EQ(contents(infer("cast", {ints({seq})}, toFloat)), "none");
}

TEST(ElementwiseShape, LowerBounds) {
  DimTable table;
  Dim a = table.symbol("a");
  EXPECT_EQ(lowerBound(a * 2 + 3), 3);
  EXPECT_EQ(lowerBound(a - 3), -3);
  EXPECT_EQ(lowerBound(max(a - 3, Dim(1))), 1);
  EXPECT_EQ(lowerBound(floorDiv(a + 7, 2)), 3);
  EXPECT_EQ(lowerBound(Dim(5) - a), std::nullopt);
}

} // namespace
} // namespace dspark

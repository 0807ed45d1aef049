// Shape functions of contractions, windows and recurrent operators: exact symbolic results, and sentences
// instead of undefined behaviour for whatever a damaged plan may hold.
#include "kernels/common/catalogue.h"
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using test::AttrList;

struct Inferred {
  InferStatus status;
  std::vector<TensorInfo> out;
  std::string error;
};

Inferred infer(const char *op, std::vector<TensorInfo> in, const AttrList &attrs, size_t results = 1) {
  InferContext ctx;
  ctx.in = in;
  ctx.attrs = attrs.view();
  ctx.out.resize(results);
  InferStatus status = findOp(op)->infer(ctx);
  return {status, ctx.out, ctx.error};
}

std::string shapeOf(const char *op, std::vector<TensorInfo> in, const AttrList &attrs = {}) {
  Inferred r = infer(op, std::move(in), attrs);
  return r.status == InferStatus::Ok ? r.out[0].str() : r.error;
}

TensorInfo f32(std::vector<Dim> dims) { return TensorInfo::make(DType::F32, std::move(dims)); }

TEST(ContractionShapes, StaySymbolic) {
  DimTable table;
  Dim batch = table.symbol("batch"), seq = table.symbol("seq"), h = table.symbol("h");
  EXPECT_EQ(shapeOf("matmul", {f32({batch, 12, seq, 64}), f32({batch, 12, 64, seq})}),
            "f32[batch, 12, seq, seq]");
  EXPECT_EQ(shapeOf("matmul", {f32({batch, seq, 384}), f32({384, 1536})}), "f32[batch, seq, 1536]");
  EXPECT_EQ(shapeOf("matmul", {f32({seq}), f32({seq})}), "f32[]");
  AttrList same;
  same.set("pads", {1, 1, 1, 1});
  EXPECT_EQ(shapeOf("conv", {f32({batch, 3, h, 48}), f32({16, 3, 3, 3})}, same), "f32[batch, 16, h, 48]");
  AttrList half;
  half.set("pads", {1, 1, 1, 1}).set("strides", {2, 2}).set("layout", "nhwc");
  EXPECT_EQ(shapeOf("conv", {f32({batch, h, 48, 3}), f32({16, 3, 3, 3})}, half),
            "f32[batch, " + (floorDiv(h + Dim(-1), Dim(2)) + Dim(1)).str() + ", 24, 16]");
  AttrList twice;
  twice.set("strides", {2, 2});
  EXPECT_EQ(shapeOf("conv_transpose", {f32({batch, 24, h, 5}), f32({24, 6, 2, 2})}, twice),
            "f32[batch, 6, " + (Dim(2) * h).str() + ", 10]");
  AttrList upper;
  upper.set("auto_pad", "SAME_UPPER").set("strides", {2, 2}).set("kernel_shape", {3, 3});
  EXPECT_EQ(shapeOf("pool", {f32({batch, 3, h, 7})}, upper),
            "f32[batch, 3, " + ceilDiv(h, Dim(2)).str() + ", 4]");
  EXPECT_EQ(
      infer("lstm", {f32({seq, batch, 128}), f32({1, 512, 128}), f32({1, 512, 128})}, {}, 3).out[0].str(),
      "f32[seq, 1, batch, 128]");
}

TEST(ContractionShapes, CeilModeDropsWindowsInThePadding) {
  AttrList attrs;
  attrs.set("kernel_shape", 2).set("strides", 3).set("pads", {0, 1}).set("ceil_mode", 1);
  // Windows at 0, 3 and 6; the one at 6 would start beyond the input.
  EXPECT_EQ(shapeOf("pool", {f32({1, 1, 6})}, attrs), "f32[1, 1, 2]");
}

TEST(ContractionShapes, SayWhatDoesNotFit) {
  EXPECT_NE(shapeOf("matmul", {f32({2, 3}), f32({4, 5})}).find("expected 3, found 4"), std::string::npos);
  EXPECT_NE(shapeOf("conv", {f32({1, 3, 8, 8}), f32({16, 4, 3, 3})}).find("expected 4, found 3"),
            std::string::npos);
  AttrList activation;
  activation.set("activation", "swoosh");
  EXPECT_NE(shapeOf("matmul", {f32({2, 3}), f32({3, 5})}, activation).find("swoosh"), std::string::npos);
}

} // namespace
} // namespace dspark

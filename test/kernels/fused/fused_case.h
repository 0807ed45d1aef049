// Programs of fused regions in the form of their attributes, and runs of single rows of the catalogue on
// them.
#pragma once
#include "kernels/fused/program.h"
#include "test/kernels/kernel_case.h"

namespace dspark::test {

constexpr int64_t kUnaryOp = int64_t(FusedCategory::Unary), kBinaryOp = int64_t(FusedCategory::Binary),
                  kCompareOp = int64_t(FusedCategory::Compare), kSelectOp = int64_t(FusedCategory::Select),
                  kClipOp = int64_t(FusedCategory::Clip), kConstantOp = int64_t(FusedCategory::Constant),
                  kReduceOp = int64_t(FusedCategory::Reduce);

/// A program in the form of its attributes.
struct Program {
  std::vector<int64_t> words, results, shapes, kept;
  std::vector<double> params;
  std::vector<int64_t> rowAxes = {0};

  Program &add(int64_t category, int64_t kind, int64_t a = 0, int64_t b = 0, int64_t c = 0, double alpha = 0,
               double beta = 0) {
    words.insert(words.end(), {category, kind, a, b, c});
    params.insert(params.end(), {alpha, beta});
    return *this;
  }
  std::vector<Attr> attrs(std::span<const int64_t> inner = {}) const {
    std::vector<Attr> list = {
        {"program", words, {}, {}}, {"params", {}, params, {}}, {"results", results, {}, {}}};
    if (rowAxes[0] != 0)
      list.push_back({"row_axes", rowAxes, {}, {}});
    if (!shapes.empty())
      list.push_back({"shapes", shapes, {}, {}});
    if (!kept.empty())
      list.push_back({"kept", kept, {}, {}});
    if (!inner.empty())
      list.push_back({"inner", inner, {}, {}});
    return list;
  }
};

/// The index of input dims `in` that belongs to element k of `out`.
inline int64_t indexOf(const std::vector<int64_t> &out, const std::vector<int64_t> &in, int64_t k) {
  int64_t index = 0, stride = 1;
  for (size_t i = out.size(), j = in.size(); i-- > 0; k /= out[i])
    if (j > 0) {
      --j;
      index += in[j] == 1 ? 0 : k % out[i] * stride;
      stride *= in[j];
    }
  return index;
}

/// Runs a row on attributes and code that runRow's AttrList cannot hold; `inPlace` lends input 0's buffer to
/// result 0.
inline std::vector<Tensor> runFused(const Kernel &row, std::vector<Tensor> &in, std::span<const Attr> attrs,
                                    const std::vector<int64_t> &dims, size_t results,
                                    const void *code = nullptr, bool inPlace = false) {
  std::vector<Tensor> out;
  for (size_t r = 0; r < results; ++r)
    out.push_back(zeros(DType::F32, dims));
  if (inPlace)
    out[0].bytes = in[0].bytes;
  std::vector<TensorView> inViews, outViews;
  for (Tensor &t : in)
    inViews.push_back(t.view());
  for (Tensor &t : out)
    outViews.push_back(t.view());
  if (inPlace)
    inViews[0].data = outViews[0].data;
  KernelCall call{inViews, outViews, Attrs(attrs), nullptr, code};
  EXPECT_TRUE(!row.accepts || row.accepts(call)) << row.name;
  KernelWork work;
  row.prepare(call, work);
  std::vector<float> scratch(work.scratchPerThread / sizeof(float) + 16, NAN);
  for (uint32_t end = work.tiles[0]; end > 0;) {
    uint32_t begin = end > 2 ? end - 2 : 0;
    row.run(call, work, {begin, end, 0, 0, reinterpret_cast<std::byte *>(scratch.data()), nullptr});
    end = begin;
  }
  return out;
}

/// The broadcast shape.
inline std::vector<int64_t> resultDims(std::vector<Tensor> &in) {
  std::vector<TensorInfo> infos;
  for (Tensor &t : in)
    infos.push_back(TensorInfo::make(t.type, {t.dims.begin(), t.dims.end()}));
  InferContext ctx;
  ctx.in = infos;
  TensorInfo result;
  EXPECT_TRUE(broadcastDims(ctx, infos, result));
  std::vector<int64_t> dims;
  for (Dim dim : result.dims)
    dims.push_back(dim.value());
  return dims;
}

} // namespace dspark::test

// Calls a shape function on operands given as TensorInfo, for tests of dims, contents and refusals.
#pragma once
#include "test/kernels/kernel_case.h"

namespace dspark::test {

inline TensorInfo contents(std::vector<Dim> values, DType type = DType::I64) {
  TensorInfo info = TensorInfo::make(type, {Dim(values.size())});
  info.hasContents = true;
  info.ints = std::move(values);
  return info;
}
inline TensorInfo scalarContents(Dim value) {
  TensorInfo info = contents({value});
  info.dims.clear();
  return info;
}
inline TensorInfo f32(std::vector<Dim> dims) { return TensorInfo::make(DType::F32, std::move(dims)); }
inline TensorInfo i64(std::vector<Dim> dims) { return TensorInfo::make(DType::I64, std::move(dims)); }

struct Inferred {
  InferStatus status;
  std::vector<TensorInfo> out;
  int needed;
  bool dimsFromKernel;
  std::string error;

  std::string str(size_t i = 0) const {
    return status == InferStatus::Error ? "error: " + error : out[i].str();
  }
  /// Known integer contents as "a, b", "none" where there are none.
  std::string ints(size_t i = 0) const {
    std::string text = out[i].hasContents ? "" : "none";
    for (size_t k = 0; k < out[i].ints.size(); ++k)
      text += (k ? ", " : "") + out[i].ints[k].str();
    return text;
  }
};

inline Inferred infer(const char *op, std::vector<TensorInfo> in, const AttrList &attrs = {},
                      size_t results = 1) {
  InferContext ctx;
  ctx.in = in;
  ctx.attrs = attrs.view();
  ctx.out.resize(results);
  InferStatus status = findOp(op)->infer(ctx);
  return {status, ctx.out, ctx.needed, ctx.dimsFromKernel, ctx.error};
}

} // namespace dspark::test

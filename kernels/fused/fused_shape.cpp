#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/fused/program.h"

namespace dspark {
namespace {

InferStatus inferFused(InferContext &ctx) {
  for (size_t i = 0; i < ctx.in.size(); ++i)
    if (ctx.in[i].type != DType::F32 && ctx.in[i].type != DType::Bool)
      return ctx.fail("operand " + std::to_string(i) +
                      " of a fused region must have type f32 or bool, found " + ctx.in[i].str());
  TensorInfo result;
  if (!FusedProgram::parse(ctx.attrs, ctx.in.size(), ctx.out.size(), ctx.error) ||
      !broadcastDims(ctx, ctx.in, result) || !checkRank(ctx, result.dims.size()))
    return InferStatus::Error;
  result.type = DType::F32;
  for (TensorInfo &out : ctx.out)
    out = result;
  return InferStatus::Ok;
}

} // namespace

std::span<const OpEntry> fusedOps() {
  // Any f32 input of the full size can become the first output: it is written after all else is read.
  static const OpEntry entries[] = {
      {.name = "fused", .infer = inferFused, .inPlace = (1u << kMaxFusedOperands) - 1},
  };
  return entries;
}

} // namespace dspark

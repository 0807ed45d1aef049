#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/fused/program.h"

namespace dspark {
namespace {

/// The dims of a reduced result.
TensorInfo reducedShape(const TensorInfo &full, int rowAxes, FusedShape shape) {
  TensorInfo result = full;
  size_t outer = full.dims.size() - size_t(rowAxes);
  if (shape == FusedShape::Dropped)
    result.dims.resize(outer);
  else
    std::fill(result.dims.begin() + ptrdiff_t(outer), result.dims.end(), Dim(1));
  return result;
}

/// The dims of the full shape have a product that loops can count, also over those beside a 0. Reduced
/// results would not say so, nor bound the room for kept rows.
bool isCountable(const TensorInfo &full) {
  constexpr int64_t kMost = int64_t(1) << 48;
  int64_t count = 1;
  for (Dim dim : full.dims)
    if (dim.isConst() &&
        (__builtin_mul_overflow(count, std::max<int64_t>(dim.value(), 1), &count) || count > kMost))
      return false;
  return true;
}

/// The full shape has the row axes, and inputs that must not vary along a row do not.
bool checkRows(InferContext &ctx, const FusedProgram &program, const TensorInfo &full) {
  if (full.rank() < program.rowAxes) {
    ctx.error =
        "the full shape " + full.str() + " has fewer axes than row_axes " + std::to_string(program.rowAxes);
    return false;
  }
  uint32_t uniform = program.uniformInputs();
  for (size_t k = 0; k < ctx.in.size(); ++k)
    for (int back = 1; back <= std::min(program.rowAxes, ctx.in[k].rank()); ++back) {
      Dim dim = ctx.in[k].dims[ctx.in[k].dims.size() - size_t(back)];
      if (uniform >> k & 1 && dim.isConst() && !dim.is(1)) {
        ctx.error = "operand " + std::to_string(k) + " " + ctx.in[k].str() +
                    " reaches a reduced result, so its row axes must be 1";
        return false;
      }
    }
  return true;
}

InferStatus infer(InferContext &ctx, bool mayReduce) {
  for (size_t i = 0; i < ctx.in.size(); ++i)
    if (ctx.in[i].type != DType::F32 && ctx.in[i].type != DType::Bool)
      return ctx.fail("operand " + std::to_string(i) +
                      " of a fused region must have type f32 or bool, found " + ctx.in[i].str());
  TensorInfo full;
  std::optional<FusedProgram> program =
      FusedProgram::parse(ctx.attrs, ctx.in.size(), ctx.out.size(), ctx.error);
  if (!program || !broadcastDims(ctx, ctx.in, full) || !checkRank(ctx, full.dims.size()))
    return InferStatus::Error;
  full.type = DType::F32;
  if (mayReduce && program->rowAxes == 0)
    return ctx.fail("attribute row_axes is 0, but fused_reduce reduces rows");
  if (!isCountable(full))
    return ctx.fail("the full shape " + full.str() + " has too many elements");
  if (full.hasRank && program->rowAxes > 0 && !checkRows(ctx, *program, full))
    return InferStatus::Error;
  for (size_t r = 0; r < ctx.out.size(); ++r) {
    if (program->body().isReduced(r) && !mayReduce)
      return ctx.fail("result " + std::to_string(r) + " is reduced, which only fused_reduce allows");
    ctx.out[r].type = DType::F32;
    if (full.hasRank)
      ctx.out[r] =
          program->body().isReduced(r) ? reducedShape(full, program->rowAxes, program->shapes[r]) : full;
  }
  return InferStatus::Ok;
}

InferStatus inferFused(InferContext &ctx) { return infer(ctx, false); }
InferStatus inferFusedReduce(InferContext &ctx) { return infer(ctx, true); }

} // namespace

std::span<const OpEntry> fusedOps() {
  // Any f32 input of the full size can become the first output: an element, or with reductions a row, is read
  // for the last time before it is written. A reduced result may be as large as an input that every row
  // needs.
  static const OpEntry entries[] = {
      {.name = "fused", .infer = inferFused, .inPlace = (1u << kMaxFusedOperands) - 1},
      {.name = "fused_reduce", .infer = inferFusedReduce},
  };
  return entries;
}

} // namespace dspark

// Shapes of the recurrent operators. Operands as in ONNX: x, w, r, b?, sequence_lens?, initial_h?, and for
// LSTM initial_c?, p? (peepholes). Results y, y_h and for LSTM y_c. Operands of dynamic_quantize_lstm are
// lstm's with w and r transposed, then w_scale, w_zero_point?, r_scale, r_zero_point?.
#include "kernels/common/families.h"
#include "kernels/common/infer.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/rnn/activations.h"
#include <algorithm>

namespace dspark {
namespace {

// Operand i has these dims where both are known.
bool checkDims(InferContext &ctx, size_t i, const char *what, std::initializer_list<Dim> expected) {
  if (!ctx.has(i) || !ctx.in[i].hasRank)
    return true;
  const TensorInfo &operand = ctx.in[i];
  bool fits = operand.dims.size() == expected.size();
  for (size_t d = 0; fits && d < expected.size(); ++d)
    fits = mergeDims(operand.dims[d], expected.begin()[d]).has_value();
  if (!fits)
    ctx.error = std::string(what) + ": expected " + TensorInfo::make(operand.type, expected).str() +
                ", found " + operand.str();
  return fits;
}

bool checkAttrs(InferContext &ctx, int cellFunctions, std::string_view layout, int64_t &directions) {
  std::string_view direction = ctx.attrs.s("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    ctx.error = "direction: expected forward, reverse or bidirectional, found " + std::string(direction);
    return false;
  }
  directions = direction == "bidirectional" ? 2 : 1;
  RnnActivations activations;
  if (const char *error = activations.read(ctx.attrs, cellFunctions, int(directions))) {
    ctx.error = error;
    return false;
  }
  return checkPacked(ctx, {"", layout});
}

// The types of the operands from `first` on that an lstm has too.
bool checkTypes(InferContext &ctx, size_t first, size_t end, DType type) {
  for (size_t i = first; i < std::min(end, ctx.in.size()); ++i)
    if (ctx.has(i) && !checkType(ctx, i, i == 4 ? DType::I32 : type))
      return false;
  return true;
}

// What is the same for all. W and R are [directions, gates * hidden, k], or the last two dims the other way
// round. `gates` gets the dim gates * hidden.
template <int kGates>
InferStatus inferLayer(InferContext &ctx, std::string_view layout, bool isTransposed, Dim &dirs, Dim &gates) {
  constexpr int kCellFunctions = kGates == 4 ? 3 : kGates == 3 ? 2 : 1;
  DType type = ctx.in[0].type;
  int64_t directions;
  if (!checkAttrs(ctx, kCellFunctions, layout, directions))
    return InferStatus::Error;

  const TensorInfo &x = ctx.in[0], &r = ctx.in[2];
  bool batchFirst = ctx.attrs.i("layout", 0) != 0;
  if (x.hasRank && x.rank() != 3)
    return ctx.fail("x: expected rank 3, found " + x.str());
  Dim steps = x.hasRank ? x.dims[batchFirst ? 1 : 0] : Dim(),
      batch = x.hasRank ? x.dims[batchFirst ? 0 : 1] : Dim();
  Dim input = x.hasRank ? x.dims[2] : Dim();
  dirs = Dim(directions);
  Dim hidden = r.hasRank && r.rank() == 3 ? r.dims[isTransposed ? 1 : 2] : Dim();
  if (int64_t attr = ctx.attrs.i("hidden_size", 0)) {
    std::optional<Dim> both = mergeDims(hidden, Dim(attr));
    if (attr < 0 || !both)
      return ctx.fail("hidden_size: expected " + hidden.str() + ", found " + std::to_string(attr));
    hidden = *both;
  }
  gates = hidden * Dim(kGates);
  auto checkMatrix = [&](size_t i, const char *what, const Dim &k) {
    return isTransposed ? checkDims(ctx, i, what, {dirs, k, gates})
                        : checkDims(ctx, i, what, {dirs, gates, k});
  };
  bool fits = checkMatrix(1, "w", input) && checkMatrix(2, "r", hidden) &&
              checkDims(ctx, 3, "b", {dirs, gates * Dim(2)}) && checkDims(ctx, 4, "sequence_lens", {batch});
  if (batchFirst)
    fits = fits && checkDims(ctx, 5, "initial_h", {batch, dirs, hidden}) &&
           checkDims(ctx, 6, "initial_c", {batch, dirs, hidden});
  else
    fits = fits && checkDims(ctx, 5, "initial_h", {dirs, batch, hidden}) &&
           checkDims(ctx, 6, "initial_c", {dirs, batch, hidden});
  if (!fits || !checkDims(ctx, 7, "p", {dirs, hidden * Dim(3)}))
    return InferStatus::Error;

  std::vector<Dim> all = {steps, dirs, batch, hidden}, last = {dirs, batch, hidden};
  if (batchFirst) {
    all = {batch, steps, dirs, hidden};
    last = {batch, dirs, hidden};
  }
  for (size_t k = 0; k < ctx.out.size(); ++k)
    ctx.out[k] = TensorInfo::make(type, k == 0 ? all : last);
  return InferStatus::Ok;
}

template <int kGates> InferStatus inferRnn(InferContext &ctx) {
  constexpr bool isLstm = kGates == 4;
  if (!checkCounts(ctx, 3, isLstm ? 8 : 6, 1, isLstm ? 3 : 2))
    return InferStatus::Error;
  DType type = ctx.in[0].type;
  if (type != DType::F32 && type != DType::F16 && type != DType::BF16 && type != DType::F64)
    return ctx.fail("expected float operands, found " + ctx.in[0].str());
  Dim dirs, gates;
  if (!checkTypes(ctx, 1, ctx.in.size(), type))
    return InferStatus::Error;
  return inferLayer<kGates>(ctx, "panel16", false, dirs, gates);
}

// Scale (operand i) and zero point of operand `of`: one per direction, or one per direction and column.
bool checkScales(InferContext &ctx, size_t i, size_t of, const char *what, const Dim &dirs,
                 const Dim &gates) {
  if (!checkType(ctx, i, DType::F32) || (ctx.has(i + 1) && !checkType(ctx, i + 1, ctx.in[of].type)))
    return false;
  if (!ctx.in[i].hasRank)
    return true;
  std::initializer_list<Dim> perColumn = {dirs, gates}, perDirection = {dirs};
  std::initializer_list<Dim> expected = ctx.in[i].rank() == 2 ? perColumn : perDirection;
  return checkDims(ctx, i, what, expected) && checkDims(ctx, i + 1, what, expected);
}

InferStatus inferDynamicQuantizeLstm(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 12, 1, 3) || !checkType(ctx, 0, DType::F32) || !checkTypes(ctx, 3, 8, DType::F32))
    return InferStatus::Error;
  if (!ctx.has(8) || !ctx.has(10))
    return ctx.fail("expected the scales of w and r as operands 8 and 10");
  for (size_t i : {1, 2})
    if (ctx.in[i].type != DType::I8 && ctx.in[i].type != DType::U8)
      return ctx.fail("operand " + std::to_string(i) + ": expected i8 or u8, found " + ctx.in[i].str());
  Dim dirs, gates;
  InferStatus status = inferLayer<4>(ctx, "panel16k4", true, dirs, gates);
  if (status != InferStatus::Ok)
    return status;
  bool fits = checkScales(ctx, 8, 1, "scale and zero point of w", dirs, gates) &&
              checkScales(ctx, 10, 2, "scale and zero point of r", dirs, gates);
  return fits ? InferStatus::Ok : InferStatus::Error;
}

constexpr OpEntry kOps[] = {
    {"lstm", inferRnn<4>},
    {"dynamic_quantize_lstm", inferDynamicQuantizeLstm},
    {"gru", inferRnn<3>},
    {"rnn", inferRnn<1>},
};

} // namespace

std::span<const OpEntry> rnnOps() { return kOps; }

} // namespace dspark

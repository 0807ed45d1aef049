// Shapes of the recurrent operators. Operands as in ONNX: x, w, r, b?, sequence_lens?, initial_h?, and for
// LSTM initial_c?, p? (peepholes). Results y, y_h and for LSTM y_c.
#include "kernels/common/families.h"
#include "kernels/common/infer.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/rnn/activations.h"

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

bool checkAttrs(InferContext &ctx, int cellFunctions, int64_t &directions) {
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
  return checkPacked(ctx, {"", "panel16"});
}

template <int kGates> InferStatus inferRnn(InferContext &ctx) {
  constexpr bool isLstm = kGates == 4;
  constexpr int kCellFunctions = isLstm ? 3 : kGates == 3 ? 2 : 1;
  if (!checkCounts(ctx, 3, isLstm ? 8 : 6, 1, isLstm ? 3 : 2))
    return InferStatus::Error;
  DType type = ctx.in[0].type;
  if (type != DType::F32 && type != DType::F16 && type != DType::BF16 && type != DType::F64)
    return ctx.fail("expected float operands, found " + ctx.in[0].str());
  for (size_t i = 1; i < ctx.in.size(); ++i)
    if (i != 4 && ctx.has(i) && !checkType(ctx, i, type))
      return InferStatus::Error;
  if (ctx.has(4) && !checkType(ctx, 4, DType::I32))
    return InferStatus::Error;
  int64_t directions;
  if (!checkAttrs(ctx, kCellFunctions, directions))
    return InferStatus::Error;

  const TensorInfo &x = ctx.in[0], &r = ctx.in[2];
  bool batchFirst = ctx.attrs.i("layout", 0) != 0;
  if (x.hasRank && x.rank() != 3)
    return ctx.fail("x: expected rank 3, found " + x.str());
  Dim steps = x.hasRank ? x.dims[batchFirst ? 1 : 0] : Dim(),
      batch = x.hasRank ? x.dims[batchFirst ? 0 : 1] : Dim();
  Dim input = x.hasRank ? x.dims[2] : Dim(), dirs(directions);
  Dim hidden = r.hasRank && r.rank() == 3 ? r.dims[2] : Dim();
  if (int64_t attr = ctx.attrs.i("hidden_size", 0)) {
    std::optional<Dim> both = mergeDims(hidden, Dim(attr));
    if (attr < 0 || !both)
      return ctx.fail("hidden_size: expected " + hidden.str() + ", found " + std::to_string(attr));
    hidden = *both;
  }
  Dim gates = hidden * Dim(kGates);
  bool fits = checkDims(ctx, 1, "w", {dirs, gates, input}) && checkDims(ctx, 2, "r", {dirs, gates, hidden}) &&
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

constexpr OpEntry kOps[] = {
    {"lstm", inferRnn<4>},
    {"gru", inferRnn<3>},
    {"rnn", inferRnn<1>},
};

} // namespace

std::span<const OpEntry> rnnOps() { return kOps; }

} // namespace dspark

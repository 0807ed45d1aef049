// Shapes of matrix products: matmul with numpy batch broadcasting, its integer and dequantising forms.
#include "kernels/common/families.h"
#include "kernels/common/infer.h"
#include "kernels/matmul/einsum.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/packed_format.h"

namespace dspark {
namespace {

bool isMatmulType(DType type) {
  switch (type) {
  case DType::F16:
  case DType::BF16:
  case DType::F32:
  case DType::F64:
    return true;
  default:
    return isInteger(type) && dtypeBits(type) >= 8;
  }
}

// Rows, columns and depth of the two operands, vectors promoted as numpy does.
struct Product {
  Dim m, n;
  bool aIsVector = false, bIsVector = false;
};

bool readProduct(InferContext &ctx, size_t aIndex, size_t bIndex, bool transA, bool transB,
                 Product &product) {
  const TensorInfo &a = ctx.in[aIndex], &b = ctx.in[bIndex];
  if (a.rank() == 0 || b.rank() == 0) {
    ctx.error = "expected operands of rank 1 or more, found " + a.str() + " and " + b.str();
    return false;
  }
  product.aIsVector = a.rank() == 1;
  product.bIsVector = b.rank() == 1;
  auto fromEnd = [](const TensorInfo &t, int i) { return t.dims[t.rank() - i]; };
  Dim depthA = product.aIsVector ? a.dims[0] : fromEnd(a, transA ? 2 : 1);
  Dim depthB = product.bIsVector ? b.dims[0] : fromEnd(b, transB ? 1 : 2);
  product.m = product.aIsVector ? Dim(1) : fromEnd(a, transA ? 1 : 2);
  product.n = product.bIsVector ? Dim(1) : fromEnd(b, transB ? 2 : 1);
  if (!mergeDims(depthA, depthB)) {
    ctx.error = "inner dims differ: expected " + depthA.str() + ", found " + depthB.str() + " in " + a.str() +
                " and " + b.str();
    return false;
  }
  return true;
}

// The dims of a @ b into result; leaves the rank unknown where an operand's is.
bool productDims(InferContext &ctx, size_t aIndex, size_t bIndex, bool transA, bool transB,
                 TensorInfo &result, Dim &columns) {
  const TensorInfo &a = ctx.in[aIndex], &b = ctx.in[bIndex];
  if (!a.hasRank || !b.hasRank)
    return true;
  if (!checkRank(ctx, a.dims.size()) || !checkRank(ctx, b.dims.size()))
    return false;
  Product product;
  if (!readProduct(ctx, aIndex, bIndex, transA, transB, product))
    return false;
  TensorInfo batches[2] = {a, b};
  for (TensorInfo &batch : batches)
    batch.dims.resize(batch.rank() < 2 ? 0 : batch.dims.size() - 2);
  if (!broadcastDims(ctx, batches, result))
    return false;
  if (!product.aIsVector)
    result.dims.push_back(product.m);
  if (!product.bIsVector)
    result.dims.push_back(product.n);
  columns = product.n;
  return true;
}

// Operand i is a bias [N], or absent.
bool checkBias(InferContext &ctx, size_t i, const TensorInfo &result, Dim columns) {
  if (!ctx.has(i))
    return true;
  const TensorInfo &bias = ctx.in[i];
  if (bias.type == result.type && (!bias.hasRank || (bias.rank() == 1 && mergeDims(bias.dims[0], columns))))
    return true;
  ctx.error = "bias: expected " + TensorInfo::make(result.type, {columns}).str() + ", found " + bias.str();
  return false;
}

// A bias and a residual of the result's dims, operands first and first + 1.
bool checkBiasAndResidual(InferContext &ctx, size_t first, TensorInfo &result, Dim columns) {
  return checkBias(ctx, first, result, columns) && checkResidual(ctx, first + 1, result);
}

// B, operand b, is packed in few bits (packed_format.h): one matrix, which the kernels read as a whole.
bool checkInBits(InferContext &ctx, size_t b) {
  DType type = ctx.in[0].type;
  if (type != DType::F32 && type != DType::F16 && type != DType::BF16)
    ctx.error = "packed " + std::string(ctx.attrs.s("packed", "")) + ": expected f32, f16 or bf16, found " +
                ctx.in[0].str();
  else if (ctx.in[b].hasRank && ctx.in[b].rank() != 2)
    ctx.error = "packed " + std::string(ctx.attrs.s("packed", "")) + ": expected weights of rank 2, found " +
                ctx.in[b].str();
  else if (std::string_view how = ctx.attrs.s("arithmetic", "f32");
           how != "f32" && how != "int8" && how != "bf16")
    ctx.error = "arithmetic: expected f32, int8 or bf16, found " + std::string(how);
  else if (how == "bf16" && ctx.attrs.s("packed", "") != "bf16")
    ctx.error =
        "arithmetic bf16: expected weights packed as bf16, found " + std::string(ctx.attrs.s("packed", ""));
  else if (ctx.attrs.i("trans_a", 0) != 0)
    ctx.error = "packed " + std::string(ctx.attrs.s("packed", "")) + ": rows cannot be transposed";
  return ctx.error.empty();
}

InferStatus inferMatmul(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 1) || !checkEpilogue(ctx))
    return InferStatus::Error;
  TensorInfo &result = ctx.out[0];
  result.type = ctx.in[0].type;
  if (!isMatmulType(result.type) || ctx.in[1].type != result.type)
    return ctx.fail("expected two operands of one float or integer type, found " + ctx.in[0].str() + " and " +
                    ctx.in[1].str());
  bool isInBits = PackedFormat::named(ctx.attrs.s("packed", "")).has_value();
  if (isInBits ? !checkInBits(ctx, 1) : !checkPacked(ctx, {"", "panel16"}))
    return InferStatus::Error;
  Dim columns;
  if (!productDims(ctx, 0, 1, ctx.attrs.i("trans_a", 0) != 0, ctx.attrs.i("trans_b", 0) != 0, result,
                   columns))
    return InferStatus::Error;
  if (ctx.attrs.i("gated", 0) != 0) {
    if (!isInBits || ctx.has(2) || ctx.has(3) || (columns.isConst() && columns.value() % 2 != 0))
      return ctx.fail("gated: expected packed weights of few bits with an even number of columns, no bias "
                      "and no residual");
    if (result.hasRank)
      result.dims.back() = floorDiv(columns, Dim(2));
    return InferStatus::Ok;
  }
  return checkBiasAndResidual(ctx, 2, result, columns) ? InferStatus::Ok : InferStatus::Error;
}

constexpr size_t kMostProducts = 8;

// A, then a B of few bits and a bias? for each result.
InferStatus inferMultiMatmul(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 1 + 2 * kMostProducts, 2, kMostProducts) || !checkEpilogue(ctx))
    return InferStatus::Error;
  if (ctx.in.size() != 1 + 2 * ctx.out.size() || ctx.attrs.i("gated", 0) != 0 ||
      !PackedFormat::named(ctx.attrs.s("packed", "")))
    return ctx.fail("expected A, and packed weights of few bits and a bias or none for each of " +
                    std::to_string(ctx.out.size()) + " results, found " + std::to_string(ctx.in.size()) +
                    " operands, packed \"" + std::string(ctx.attrs.s("packed", "")) + "\"");
  for (size_t i = 0; i < ctx.out.size(); ++i) {
    size_t b = 1 + 2 * i;
    TensorInfo &result = ctx.out[i];
    result.type = ctx.in[0].type;
    if (ctx.in[b].type != result.type)
      return ctx.fail("expected operands of one type, found " + ctx.in[0].str() + " and " + ctx.in[b].str());
    Dim columns;
    if (!checkInBits(ctx, b) ||
        !productDims(ctx, 0, b, false, ctx.attrs.i("trans_b", 0) != 0, result, columns) ||
        !checkBias(ctx, b + 1, result, columns))
      return InferStatus::Error;
  }
  return InferStatus::Ok;
}

// Operand i is a scalar, one number, or one per `length`: a scale or a zero point.
bool checkScalarOrVector(InferContext &ctx, size_t i, DType type, Dim length, const char *what) {
  if (!ctx.has(i))
    return true;
  const TensorInfo &operand = ctx.in[i];
  bool fits = operand.type == type &&
              (!operand.hasRank || operand.rank() == 0 ||
               (operand.rank() == 1 && (operand.dims[0].is(1) || mergeDims(operand.dims[0], length))));
  if (!fits)
    ctx.error = std::string(what) + ": expected " + std::string(dtypeName(type)) + " scalar or [" +
                length.str() + "], found " + operand.str();
  return fits;
}

// Operands a, b (int8 or uint8, [K, N]), scale, zero_point?, bias?, residual?.
InferStatus inferMatmulDequant(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 6, 1, 1) || !checkEpilogue(ctx))
    return InferStatus::Error;
  TensorInfo &result = ctx.out[0];
  result.type = DType::F32;
  const TensorInfo &b = ctx.in[1];
  if (!checkType(ctx, 0, DType::F32))
    return InferStatus::Error;
  if (b.type != DType::I8 && b.type != DType::U8)
    return ctx.fail("weights: expected i8 or u8, found " + b.str());
  if (b.hasRank && b.rank() != 2)
    return ctx.fail("weights: expected rank 2, found " + b.str());
  if (!checkPacked(ctx, {"", "panel16"}))
    return InferStatus::Error;
  Dim columns;
  bool fits = productDims(ctx, 0, 1, false, ctx.attrs.i("trans_b", 0) != 0, result, columns) &&
              checkScalarOrVector(ctx, 2, DType::F32, columns, "scale") &&
              checkScalarOrVector(ctx, 3, b.type, columns, "zero point") &&
              checkBiasAndResidual(ctx, 4, result, columns);
  return fits ? InferStatus::Ok : InferStatus::Error;
}

bool isByte(DType type) { return type == DType::I8 || type == DType::U8; }

// A zero point of operand `of`: a scalar, one per row or column, or ONNX's per-batch forms of the operand's
// rank.
bool checkZeroPoint(InferContext &ctx, size_t i, size_t of, bool perRow, bool isTransposed = false) {
  if (!ctx.has(i))
    return true;
  const TensorInfo &zero = ctx.in[i], &operand = ctx.in[of];
  bool fits = zero.type == operand.type;
  if (fits && zero.hasRank && zero.rank() > 0 && operand.hasRank && operand.rank() > 0) {
    int rows = operand.rank() >= 2 ? operand.rank() - 2 : 0;
    int axis = perRow || (isTransposed && operand.rank() >= 2) ? rows : operand.rank() - 1;
    if (zero.rank() == 1) {
      fits = zero.dims[0].is(1) || mergeDims(zero.dims[0], operand.dims[axis]).has_value();
    } else {
      fits = zero.rank() == operand.rank();
      for (int d = 0; fits && d < zero.rank(); ++d)
        fits = zero.dims[d].is(1) || zero.dims[d].isUnknown() ||
               ((d == axis || d < rows) && mergeDims(zero.dims[d], operand.dims[d]).has_value());
    }
  }
  if (!fits)
    ctx.error = "zero point: expected a scalar or one per " + std::string(perRow ? "row" : "column") +
                " of " + operand.str() + ", found " + zero.str();
  return fits;
}

// panel16k4 is made of single matrices.
bool checkQuads(InferContext &ctx, size_t b) {
  if (!checkPacked(ctx, {"", "panel16k4"}))
    return false;
  if (ctx.attrs.s("packed", "").empty() || !ctx.in[b].hasRank || ctx.in[b].rank() == 2)
    return true;
  ctx.error = "packed panel16k4: expected weights of rank 2, found " + ctx.in[b].str();
  return false;
}

InferStatus inferMatmulInteger(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 1))
    return InferStatus::Error;
  if (!isByte(ctx.in[0].type) || !isByte(ctx.in[1].type))
    return ctx.fail("expected two operands of i8 or u8, found " + ctx.in[0].str() + " and " +
                    ctx.in[1].str());
  if (!checkQuads(ctx, 1))
    return InferStatus::Error;
  ctx.out[0].type = DType::I32;
  Dim columns;
  bool fits = productDims(ctx, 0, 1, false, false, ctx.out[0], columns) && checkZeroPoint(ctx, 2, 0, true) &&
              checkZeroPoint(ctx, 3, 1, false);
  return fits ? InferStatus::Ok : InferStatus::Error;
}

// a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale?, y_zero_point?, bias?. Without y_scale the
// result is f32. The bias is i32 in units of a_scale * b_scale, or f32.
InferStatus inferQlinearMatmul(InferContext &ctx) {
  if (!checkCounts(ctx, 6, 10, 1, 1) || !checkQuantizedResult(ctx, 6))
    return InferStatus::Error;
  for (size_t i : {0, 3})
    if (!isByte(ctx.in[i].type))
      return ctx.fail("operand " + std::to_string(i) + ": expected i8 or u8, found " + ctx.in[i].str());
  for (size_t i : {1, 4, 6}) {
    DType type = ctx.has(i) ? ctx.in[i].type : DType::F32;
    if (type != DType::F32 && type != DType::F16 && type != DType::BF16)
      return ctx.fail("operand " + std::to_string(i) + ": expected a scale of f32, f16 or bf16, found " +
                      ctx.in[i].str());
  }
  if (!checkQuads(ctx, 3))
    return InferStatus::Error;
  for (size_t i : {6, 7})
    if (ctx.has(i) && ctx.in[i].hasRank && !ctx.in[i].elements().isUnknown() &&
        !mergeDims(ctx.in[i].elements(), Dim(1)))
      return ctx.fail("operand " + std::to_string(i) + ": expected one element, found " + ctx.in[i].str());
  auto scaleFits = [&](size_t scale, size_t zero) {
    const TensorInfo &s = ctx.in[scale], &z = ctx.in[zero];
    if (!s.hasRank || !z.hasRank || !s.elements().isConst() || !z.elements().isConst())
      return true;
    return s.elements().provablyEqual(z.elements()) || z.elements().is(1);
  };
  if (!scaleFits(1, 2) || !scaleFits(4, 5))
    return ctx.fail("expected as many scales as zero points");
  Dim columns;
  bool isTransposed = ctx.attrs.i("trans_b", 0) != 0;
  bool fits = productDims(ctx, 0, 3, false, isTransposed, ctx.out[0], columns) &&
              checkZeroPoint(ctx, 2, 0, true) && checkZeroPoint(ctx, 5, 3, false, isTransposed);
  if (fits && ctx.has(8)) {
    const TensorInfo &bias = ctx.in[8];
    bool isBias = (bias.type == DType::I32 || bias.type == DType::F32) &&
                  (!bias.hasRank || (bias.rank() == 1 && mergeDims(bias.dims[0], columns)));
    if (!isBias)
      return ctx.fail("bias: expected i32 or f32 of [" + columns.str() + "], found " + bias.str());
  }
  return fits && checkResidual(ctx, 9, ctx.out[0]) ? InferStatus::Ok : InferStatus::Error;
}

// Indices i32 or i64 [T...] and weights [N, K] of few bits give f32 [T..., K]. Negative indices count from
// the end; others outside the weights read zeros.
InferStatus inferPackedRows(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1))
    return InferStatus::Error;
  const TensorInfo &indices = ctx.in[0], &weights = ctx.in[1];
  if (indices.type != DType::I32 && indices.type != DType::I64)
    return ctx.fail("indices: expected i32 or i64, found " + indices.str());
  if (weights.type != DType::F32 && weights.type != DType::F16 && weights.type != DType::BF16)
    return ctx.fail("weights: expected f32, f16 or bf16, found " + weights.str());
  if (!PackedFormat::named(ctx.attrs.s("packed", "")))
    return ctx.fail("packed: expected a layout of few bits, found \"" +
                    std::string(ctx.attrs.s("packed", "")) + "\"");
  if (weights.hasRank && weights.rank() != 2)
    return ctx.fail("weights: expected rank 2, found " + weights.str());
  TensorInfo &y = ctx.out[0];
  y.type = DType::F32;
  if (!indices.hasRank)
    return InferStatus::Ok;
  if (!checkRank(ctx, indices.dims.size() + 1))
    return InferStatus::Error;
  y.hasRank = true;
  y.dims = indices.dims;
  y.dims.push_back(weights.hasRank ? weights.dims[1] : Dim());
  return InferStatus::Ok;
}

constexpr int64_t kMostExperts = 4096; // each costs work even without rows

// Rows f32 [T, 1 or S, K], weights [E, N, K] of few bits or 16, and experts i32 or i64 [T, S] give f32
// [T, S, N], or with `gated` N / 2. What names no expert gives zeros.
InferStatus inferPackedExperts(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1) || !checkEpilogue(ctx))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &weights = ctx.in[1], &experts = ctx.in[2];
  if (x.type != DType::F32 || weights.type != DType::F32)
    return ctx.fail("expected rows and weights of f32, found " + x.str() + " and " + weights.str());
  if (experts.type != DType::I32 && experts.type != DType::I64)
    return ctx.fail("experts: expected i32 or i64, found " + experts.str());
  if (!PackedFormat::named(ctx.attrs.s("packed", "")))
    return ctx.fail("packed: expected a layout of few bits, found \"" +
                    std::string(ctx.attrs.s("packed", "")) + "\"");
  if (!x.hasRank || x.rank() != 3 || !weights.hasRank || weights.rank() != 3 || !experts.hasRank ||
      experts.rank() != 2)
    return ctx.fail("expected ranks 3, 3 and 2, found " + x.str() + ", " + weights.str() + " and " +
                    experts.str());
  std::optional<Dim> rows = mergeDims(x.dims[0], experts.dims[0]);
  bool fits = rows && mergeDims(x.dims[2], weights.dims[2]) &&
              (x.dims[1].is(1) || mergeDims(x.dims[1], experts.dims[1]));
  Dim columns = weights.dims[1];
  bool isGated = ctx.attrs.i("gated", 0) != 0;
  if (!fits || (isGated && columns.isConst() && columns.value() % 2 != 0))
    return ctx.fail(
        "expected rows [T, 1 or S, K], weights [E, N, K], of an even N if gated, and experts [T, S], "
        "found " +
        x.str() + ", " + weights.str() + " and " + experts.str());
  if (weights.dims[0].isConst() && weights.dims[0].value() > kMostExperts)
    return ctx.fail("expected at most " + std::to_string(kMostExperts) + " experts, found " + weights.str());
  TensorInfo &y = ctx.out[0];
  y.type = DType::F32;
  y.hasRank = true;
  y.dims = {*rows, experts.dims[1], isGated ? floorDiv(columns, Dim(2)) : columns};
  return InferStatus::Ok;
}

InferStatus inferEinsum(InferContext &ctx) {
  if (!checkCounts(ctx, 1, kMaxEinsumOperands, 1, 1))
    return InferStatus::Error;
  int ranks[kMaxEinsumOperands];
  TensorInfo &result = ctx.out[0];
  result.type = ctx.in[0].type;
  if (!isMatmulType(result.type))
    return ctx.fail("expected float or integer operands, found " + ctx.in[0].str());
  for (size_t i = 0; i < ctx.in.size(); ++i) {
    if (ctx.in[i].type != result.type)
      return ctx.fail("expected operands of one type, found " + ctx.in[0].str() + " and " + ctx.in[i].str());
    if (!ctx.in[i].hasRank)
      return InferStatus::Ok;
    if (!checkRank(ctx, ctx.in[i].dims.size()))
      return InferStatus::Error;
    ranks[i] = ctx.in[i].rank();
  }
  Einsum sum;
  if (const char *error = sum.parse(ctx.attrs.s("equation", ""), {ranks, ctx.in.size()}))
    return ctx.fail(error);
  std::vector<Dim> sizes(sum.labels);
  std::vector<bool> isSet(sum.labels, false);
  for (size_t i = 0; i < ctx.in.size(); ++i)
    for (int d = 0; d < ranks[i]; ++d) {
      int label = sum.operand[i][d];
      Dim dim = ctx.in[i].dims[d];
      // Every subscript may broadcast a dim of 1.
      std::optional<Dim> both = isSet[label] && !dim.isUnknown() && !sizes[label].isUnknown()
                                    ? broadcast(sizes[label], dim)
                                    : std::optional<Dim>(isSet[label] ? Dim() : dim);
      if (!both)
        return ctx.fail("a subscript stands for dims " + sizes[label].str() + " and " + dim.str());
      sizes[label] = *both;
      isSet[label] = true;
    }
  result.hasRank = true;
  for (int d = 0; d < sum.resultRank; ++d)
    result.dims.push_back(sizes[sum.result[d]]);
  return InferStatus::Ok;
}

constexpr OpEntry kOps[] = {
    {"matmul", inferMatmul},
    {"multi_matmul", inferMultiMatmul},
    {"matmul_dequant", inferMatmulDequant},
    {"matmul_integer", inferMatmulInteger},
    {"qlinear_matmul", inferQlinearMatmul},
    {"packed_rows", inferPackedRows},
    {"packed_experts", inferPackedExperts},
    {"einsum", inferEinsum},
};

} // namespace

std::span<const OpEntry> matmulOps() { return kOps; }

} // namespace dspark

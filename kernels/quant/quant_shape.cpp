// Shape functions of the quantisers. Operands and attributes are ONNX's.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"

namespace dspark {
namespace {

bool isQuantized(DType type) {
  return (isInteger(type) && dtypeBits(type) <= 16) ||
         (isFloat(type) && dtypeBits(type) <= 8 && type != DType::F8E8M0);
}
bool isDequantizable(DType type) { return isQuantized(type) || type == DType::I32; }
bool isShort(DType type) { return type == DType::F32 || type == DType::F16 || type == DType::BF16; }
bool isQuantizable(DType type) { return isShort(type) || type == DType::I32; }
bool isScale(DType type) { return isQuantizable(type) || type == DType::F8E8M0; }

/// An attribute that holds an element type; Undefined if absent or 0, and with ctx.error set if not allowed.
DType typeAttr(InferContext &ctx, const char *name, bool (*allowed)(DType)) {
  int64_t code = ctx.attrs.i(name, 0);
  if (code > 0 && code < kDTypeCount && allowed(DType(code)))
    return DType(code);
  if (code != 0)
    ctx.error =
        "attribute " + std::string(name) + " is no element type that fits here: " + std::to_string(code);
  return DType::Undefined;
}

/// Blocked: the scale has x's rank, and x's dims but for ceil(dim / block) along the axis.
bool expectBlocks(InferContext &ctx, int axis, int64_t block) {
  const TensorInfo &x = ctx.in[0];
  if (!expectRank(ctx, 1, x.rank()))
    return false;
  for (int i = 0; i < x.rank() && ctx.in[1].hasRank; ++i) {
    Dim expected = i == axis ? ceilDiv(x.dims[size_t(i)], Dim(block)) : x.dims[size_t(i)];
    if (!expectDim(ctx, 1, i, expected))
      return false;
  }
  return true;
}

bool mayHaveOneElement(const TensorInfo &tensor) {
  Dim elements = tensor.elements();
  return !elements.isConst() || elements.is(1);
}

/// The zero point has the scale's shape; models also mix [] and [1], which a symbol may turn out to be.
bool expectZeroPoint(InferContext &ctx) {
  const TensorInfo &scale = ctx.in[1];
  if (!ctx.has(2) || !scale.hasRank || !ctx.in[2].hasRank ||
      (scale.elements().is(1) && ctx.in[2].elements().is(1)))
    return true;
  if (scale.rank() != ctx.in[2].rank() && mayHaveOneElement(scale) && mayHaveOneElement(ctx.in[2]))
    return true;
  if (!expectRank(ctx, 2, scale.rank()))
    return false;
  for (int i = 0; i < scale.rank(); ++i) {
    Dim dim = scale.dims[size_t(i)];
    if (!expectDim(ctx, 2, i, dim))
      return false;
  }
  return true;
}

/// Scale (operand 1) and zero point (operand 2) fit x by one of the three granularities.
bool expectScale(InferContext &ctx) {
  const TensorInfo &x = ctx.in[0], &scale = ctx.in[1];
  if (!expectZeroPoint(ctx))
    return false;
  std::optional<int64_t> block = attrInRange(ctx, "block_size", 0, 0, INT64_MAX);
  if (!block || !x.hasRank || !scale.hasRank)
    return block.has_value();
  if (*block == 0 && (scale.rank() == 0 || (scale.rank() == 1 && scale.dims[0].is(1))))
    return true;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 1), x.rank());
  if (!axis)
    return false;
  if (*block > 0)
    return expectBlocks(ctx, *axis, *block);
  Dim length = x.dims[size_t(*axis)];
  return expectRank(ctx, 1, 1) && expectDim(ctx, 1, 0, length);
}

void sameDims(InferContext &ctx, DType type) {
  ctx.out[0].type = type;
  ctx.out[0].hasRank = ctx.in[0].hasRank;
  ctx.out[0].dims = ctx.in[0].dims;
}

InferStatus inferQuantize(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 3, 1, 1) || !expectType(ctx, 0, isQuantizable, "an f32, f16, bf16 or i32") ||
      !expectType(ctx, 1, isScale, "an f32, f16, bf16, i32 or f8e8m0") ||
      !expectType(ctx, 2, isQuantized, "a quantised") || !expectScale(ctx))
    return InferStatus::Error;
  DType type = typeAttr(ctx, "output_dtype", isQuantized);
  if (ctx.error.empty())
    typeAttr(ctx, "precision", isShort);
  if (!ctx.error.empty() || (ctx.has(2) && type != DType::Undefined && !checkType(ctx, 2, type)))
    return InferStatus::Error;
  sameDims(ctx, ctx.has(2) ? ctx.in[2].type : type == DType::Undefined ? DType::U8 : type);
  return InferStatus::Ok;
}

InferStatus inferDequantize(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 3, 1, 1) || !expectType(ctx, 0, isDequantizable, "a quantised") ||
      !expectType(
          ctx, 1, [](DType type) { return isShort(type) || type == DType::F8E8M0; },
          "an f32, f16, bf16 or f8e8m0") ||
      !expectSameType(ctx, 0, 2) || !expectScale(ctx))
    return InferStatus::Error;
  DType type = typeAttr(ctx, "output_dtype", isShort);
  if (!ctx.error.empty())
    return InferStatus::Error;
  if (type == DType::Undefined)
    type = ctx.in[1].type;
  if (!isShort(type))
    return ctx.fail("attribute output_dtype must be given where the scale is " + ctx.in[1].str());
  sameDims(ctx, type);
  return InferStatus::Ok;
}

InferStatus inferDynamicQuantize(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 3, 3) || !checkType(ctx, 0, DType::F32))
    return InferStatus::Error;
  sameDims(ctx, DType::U8);
  ctx.out[1] = TensorInfo::make(DType::F32, {});
  ctx.out[2] = TensorInfo::make(DType::U8, {});
  return InferStatus::Ok;
}

bool isByte(DType type) { return type == DType::U8 || type == DType::I8; }

/// Operands i (f32 scale) and i + 1 (zero point of `type`) of one element each.
bool expectByteScale(InferContext &ctx, size_t i, DType type) {
  return checkType(ctx, i, DType::F32) && checkType(ctx, i + 1, type) && expectScalar(ctx, i) &&
         expectScalar(ctx, i + 1);
}

/// x, table of 256 bytes; the table of a signed x begins at -128.
InferStatus inferLookup(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !expectType(ctx, 0, isByte, "an i8 or u8") ||
      !expectType(ctx, 1, isByte, "an i8 or u8") || !expectRank(ctx, 1, 1) || !expectSize(ctx, 1, 0, 256))
    return InferStatus::Error;
  sameDims(ctx, ctx.in[1].type);
  return InferStatus::Ok;
}

/// a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point
InferStatus inferQlinearBinary(InferContext &ctx) {
  if (!checkCounts(ctx, 8, 8, 1, 1) || !expectType(ctx, 0, isByte, "an i8 or u8") ||
      !expectType(ctx, 3, isByte, "an i8 or u8") || !expectType(ctx, 7, isByte, "an i8 or u8") ||
      !expectByteScale(ctx, 1, ctx.in[0].type) || !expectByteScale(ctx, 4, ctx.in[3].type) ||
      !expectByteScale(ctx, 6, ctx.in[7].type))
    return InferStatus::Error;
  std::string_view kind = ctx.attrs.s("kind", "");
  if (kind != "add" && kind != "sub" && kind != "mul")
    return ctx.fail("kind: expected add, sub or mul, found " + std::string(kind));
  const TensorInfo operands[] = {ctx.in[0], ctx.in[3]};
  if (!broadcastDims(ctx, operands, ctx.out[0]))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[7].type;
  return InferStatus::Ok;
}

} // namespace

std::span<const OpEntry> quantOps() {
  static const OpEntry entries[] = {
      {.name = "quantize_linear", .infer = inferQuantize},
      {.name = "dequantize_linear", .infer = inferDequantize},
      {.name = "dynamic_quantize_linear", .infer = inferDynamicQuantize},
      {.name = "lookup", .infer = inferLookup, .inPlace = 1},
      {.name = "qlinear_binary", .infer = inferQlinearBinary, .inPlace = 1 | 1 << 3},
  };
  return entries;
}

} // namespace dspark

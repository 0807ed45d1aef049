#include "kernels/common/infer.h"
#include "kernels/matmul/epilogue.h"
#include <algorithm>
#include <limits>

namespace dspark {

bool Epilogue::read(const Attrs &attrs, std::string_view prefix) {
  auto name = [&](std::string_view own) { return std::string(prefix).append(own); };
  const auto *it = std::ranges::find(kActivationNames, attrs.s(name("activation"), ""));
  if (it == std::end(kActivationNames))
    return false;
  activation = Activation(it - std::begin(kActivationNames));
  double defaultAlpha = 0, defaultBeta = 0;
  switch (activation) {
  case Activation::Clip:
    defaultAlpha = -std::numeric_limits<double>::infinity();
    defaultBeta = std::numeric_limits<double>::infinity();
    break;
  case Activation::HardSwish:
    defaultAlpha = 1.0 / 6;
    defaultBeta = 0.5;
    break;
  case Activation::HardSigmoid:
    defaultAlpha = 0.2;
    defaultBeta = 0.5;
    break;
  case Activation::LeakyRelu:
    defaultAlpha = 0.01;
    break;
  default:
    break;
  }
  alpha = float(attrs.f(name("act_alpha"), defaultAlpha));
  beta = float(attrs.f(name("act_beta"), defaultBeta));
  return true;
}

bool checkEpilogue(InferContext &ctx, std::string_view prefix) {
  if (Epilogue().read(ctx.attrs, prefix))
    return true;
  std::string name = std::string(prefix) + "activation";
  ctx.error = name + ": expected a known name, found " + std::string(ctx.attrs.s(name, ""));
  return false;
}

bool checkQuantizedResult(InferContext &ctx, size_t yScale) {
  if (!checkEpilogue(ctx))
    return false;
  Epilogue epilogue;
  epilogue.read(ctx.attrs);
  if (ctx.has(yScale) != ctx.has(yScale + 1)) {
    ctx.error = "expected a scale and a zero point of the result, or none of both";
    return false;
  }
  if (!ctx.has(yScale)) {
    ctx.out[0].type = DType::F32;
    return true;
  }
  bool isPlain = epilogue.activation == Activation::None;
  bool isBound = epilogue.activation == Activation::Relu || epilogue.activation == Activation::Clip;
  if (!isPlain && !isBound) {
    ctx.error = "activation: expected relu or clip of an 8-bit result, found " +
                std::string(ctx.attrs.s("activation", ""));
    return false;
  }
  if (ctx.has(yScale + 3)) {
    ctx.error = "residual: expected none beside an 8-bit result";
    return false;
  }
  ctx.out[0].type = ctx.in[yScale + 1].type;
  if (ctx.out[0].type == DType::I8 || ctx.out[0].type == DType::U8)
    return true;
  ctx.error =
      "operand " + std::to_string(yScale + 1) + ": expected i8 or u8, found " + ctx.in[yScale + 1].str();
  return false;
}

bool checkPacked(InferContext &ctx, std::initializer_list<std::string_view> layouts) {
  std::string_view packed = ctx.attrs.s("packed", "");
  if (std::ranges::find(layouts, packed) != layouts.end())
    return true;
  ctx.error = "packed: expected another layout than " + std::string(packed);
  return false;
}

bool checkResidual(InferContext &ctx, size_t i, TensorInfo &result) {
  if (!ctx.has(i))
    return true;
  const TensorInfo &residual = ctx.in[i];
  bool fits = residual.type == result.type;
  if (fits && residual.hasRank && result.hasRank) {
    fits = residual.rank() == result.rank();
    for (int d = 0; fits && d < result.rank(); ++d) {
      std::optional<Dim> both = mergeDims(result.dims[d], residual.dims[d]);
      fits = both.has_value();
      if (fits)
        result.dims[d] = *both;
    }
  }
  if (!fits)
    ctx.error = "residual: expected " + result.str() + ", found " + residual.str();
  return fits;
}

} // namespace dspark

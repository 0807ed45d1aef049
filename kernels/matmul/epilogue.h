// What contractions do to a result before they store it: bias, residual, activation. The attributes, and the
// checks that shape functions share.
#pragma once
#include "kernels/common/shape.h"
#include "kernels/matmul/activation.h"
#include <initializer_list>

namespace dspark {

struct Epilogue : SumEpilogue {
  /// Reads activation, act_alpha and act_beta, with `prefix` before their names; ONNX's defaults of the
  /// activation where a parameter is absent. False if the activation has no known name.
  bool read(const Attrs &attrs, std::string_view prefix = "");
};

/// The activation attribute is one of kActivationNames.
bool checkEpilogue(InferContext &ctx, std::string_view prefix = "");
/// For operators whose result is of 8 bits, or f32 where its scale (operand yScale) and zero point behind it
/// are absent: both are or none is, and 8-bit results may have relu and clip as activations and no residual
/// (operand yScale + 3). Sets the result's type.
bool checkQuantizedResult(InferContext &ctx, size_t yScale);
/// The `packed` attribute is one of `layouts`.
bool checkPacked(InferContext &ctx, std::initializer_list<std::string_view> layouts);
/// Operand i is absent or has the result's type and dims; what it knows more of the dims is taken over.
bool checkResidual(InferContext &ctx, size_t i, TensorInfo &result);

} // namespace dspark

// Scale and zero point of floats that become unsigned bytes, as ONNX's DynamicQuantizeLinear has them.
#pragma once
#include <cmath>
#include <cstdint>

namespace dspark {

struct ByteScale {
  float scale;
  uint8_t zero;

  /// Of elements in [low, high], a range that holds 0.
  static ByteScale of(float low, float high) {
    float scale = high == low ? 1.0f : (high - low) / 255.0f, shift = 0.0f - low / scale;
    float zero = shift > 255 ? 255.0f : shift > 0 ? std::nearbyint(shift) : 0.0f; // NaN gives 0
    return {scale, uint8_t(zero)};
  }
};

} // namespace dspark

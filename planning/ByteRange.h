// The range of a value that becomes bytes: from what calibration sees of it, the ends for which rounding and
// clipping together lose least (least mean squared error over a grid of clipped ranges).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace dspark {

/// An unsigned byte q stands for (q - zero) * scale.
struct ByteRange {
  float scale = 1;
  uint8_t zero = 0;
};

/// What is known of a value: extremes first, then how its elements lie between them.
class ByteObservation {
public:
  /// First pass over the data. Elements that are not finite make the value unusable.
  void addExtremes(std::span<const float> elements);
  /// Second pass over the same data.
  void addElements(std::span<const float> elements);

  /// Whether bytes can stand for the value at all.
  bool isUsable() const { return count > 0 && isFinite; }
  /// With the extremes as ends.
  ByteRange widest() const;
  /// With the least squared error; the widest where the second pass is missing.
  ByteRange best() const;

private:
  double squaredError(float low, float high) const;

  float low = 0, high = 0; // zero is always representable: padding and relu need it exact
  bool isFinite = true;
  uint64_t count = 0;
  std::vector<uint64_t> bins; // between low and high
};

} // namespace dspark

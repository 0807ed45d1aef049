#include "kernels/conv/conv_phases.h"
#include <algorithm>

namespace dspark {
namespace {

// Tiles of at least 64 KiB.
uint32_t copyTiles(int64_t floats) { return uint32_t(std::clamp<int64_t>(floats / (16 * 1024), 1, 16)); }

} // namespace

void ConvPhases::plan(const KernelCall &call, const ConvPlan &conv, bool depthwise, uint32_t tiles,
                      KernelWork &work) {
  isDepthwise = depthwise;
  at = {};
  at.plan(conv, call.has(3), !call.attrs.s("packed", "").empty(), packedWeightFloats(conv, depthwise));
  bool arranges = at.x >= 0 || at.w >= 0 || at.residual >= 0;
  product = arranges ? 1 : 0;
  result = at.y >= 0 ? int8_t(product + 1) : int8_t(-1);
  work.phases = 1 + arranges + (at.y >= 0);
  if (arranges)
    work.tiles[0] = copyTiles(at.floats);
  work.tiles[product] = tiles;
  if (result >= 0)
    work.tiles[result] = copyTiles(call.out[0].elements());
  work.scratchShared = size_t(at.floats) * sizeof(float);
  work.flops = conv.flops();
  work.bytes = 4.0 * (double(call.in[0].elements()) + double(call.in[1].elements()) +
                      double(call.out[0].elements()) * (call.has(3) ? 2 : 1));
}

bool ConvPhases::runArrangement(const KernelCall &call, const ConvPlan &conv, const KernelWork &work,
                                const KernelPart &part) const {
  if (part.phase == product)
    return false;
  float *shared = reinterpret_cast<float *>(part.shared);
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    if (part.phase == result)
      arrangeResult(call, conv, at, shared, tile, work.tiles[part.phase]);
    else
      arrangeOperands(call, conv, at, isDepthwise, shared, tile, work.tiles[part.phase]);
  return true;
}

} // namespace dspark

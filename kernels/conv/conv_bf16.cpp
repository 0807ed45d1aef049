// Phase 0 rounds the input into shared scratch, channels of each group in pairs; phase 1 multiplies pairs as
// conv_product.h does floats.
#include "kernels/conv/conv_bf16.h"
#include "kernels/common/bf16_speed.h"
#include "kernels/common/shares.h"
#include "kernels/common/tiles.h"
#include "kernels/conv/conv_product.h"
#include "kernels/matmul/gemm_bf16.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  ConvProduct product; // of pairs
  int64_t runs, width; // of input channels of one pixel and group: how many, and floats of each
};
static_assert(sizeof(State) <= 512);

void prepare(const KernelCall &call, KernelWork &work, bool hasTiles) {
  State &state = work.make<State>();
  ConvPlan &conv = state.product.conv;
  conv.read(call, 1, false);
  work.flops = conv.flops();
  work.bytes =
      4.0 * (double(call.in[0].elements()) + double(call.out[0].elements()) * (call.has(3) ? 2 : 1)) +
      2.0 * double(call.in[1].elements());
  state.width = conv.inPerGroup;
  state.runs = conv.batch * conv.inPixels() * conv.group;
  conv.inPerGroup = ceilOf(conv.inPerGroup, 2);
  conv.inChannels = conv.inPerGroup * conv.group;
  constexpr int64_t kRoundedFloats = 16 * 1024; // of a tile
  work.phases = 2;
  work.tiles[0] = uint32_t(std::clamp<int64_t>(state.runs * state.width / kRoundedFloats, 1, 16));
  work.tiles[1] = state.product.plan(call, hasTiles, work);
  work.scratchShared = size_t(state.runs * conv.inPerGroup) * 4;
}

void run(const Bf16GemmOps &ops, const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  auto *rounded = reinterpret_cast<uint16_t *>(part.shared);
  if (part.phase == 0) {
    int64_t begin = shareOf(state.runs, part.begin, work.tiles[0]),
            end = shareOf(state.runs, part.end, work.tiles[0]);
    return ops.round(call.in[0].as<const float>() + begin * state.width, end - begin, state.width,
                     rounded + begin * ceilOf(state.width, 2) * 2);
  }
  state.product.run(ops.tile,
                    {reinterpret_cast<const float *>(rounded), call.in[1].as<const float>(),
                     call.has(2) ? call.in[2].as<const float>() : nullptr,
                     call.has(3) ? call.in[3].as<const float>() : nullptr, call.out[0].as<float>()},
                    part);
}

} // namespace

bool acceptsConvBf16(const KernelCall &call) { return call.attrs.s("packed", "") == "bf16"; }
bool acceptsConvBf16Dots(const KernelCall &call) { return acceptsConvBf16(call) && multipliesBf16(); }
void prepareConvBf16(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareConvBf16Tiles(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa> void runConvBf16(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  TileScope tiles(isa);
  run(bf16GemmOps(isa), call, work, part);
}
template void runConvBf16<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvBf16<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvBf16<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvBf16<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);

void runConvBf16Dots(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  run(bf16GemmOpsAvx512Bf16, call, work, part);
}

} // namespace dspark

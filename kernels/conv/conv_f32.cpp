#include "kernels/conv/conv_f32.h"
#include "kernels/common/tiles.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/conv/conv_product.h"

namespace dspark {
namespace {

struct State {
  ConvProduct product;
  ConvPhases phases;
};
static_assert(sizeof(State) <= 512);

void prepare(const KernelCall &call, KernelWork &work, bool isTransposed, bool hasTiles = false) {
  State &state = work.make<State>();
  state.product.conv.read(call, 1, isTransposed);
  uint32_t tiles = state.product.plan(call, hasTiles, work);
  state.phases.plan(call, state.product.conv, false, tiles, work);
}

} // namespace

bool acceptsConvF32(const KernelCall &call) {
  std::string_view packed = call.attrs.s("packed", "");
  return call.in[0].type == DType::F32 && (packed.empty() || packed == "panel16");
}

bool acceptsConvTiles(const KernelCall &call) {
  if (!acceptsConvF32(call) || acceptsConvWinograd(call) || acceptsConvLine(call))
    return false;
  constexpr int64_t kFewestPixels = 64, kFewestTerms = 64, kFewestColumns = 32;
  ConvPlan conv;
  conv.read(call, 1, false);
  return conv.outPixels() >= kFewestPixels && conv.depth() >= kFewestTerms &&
         conv.outPerGroup >= kFewestColumns;
}

void prepareConvTiles(const KernelCall &call, KernelWork &work) { prepare(call, work, false, true); }
void prepareConvF32(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareConvTransposeF32(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa> void runConvF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  if (state.phases.runArrangement(call, state.product.conv, work, part))
    return;
  TileScope tiles(isa);
  state.product.run(gemmOps(isa).tile,
                    {state.phases.x(call, part), state.phases.w(call, part),
                     call.has(2) ? call.in[2].as<float>() : nullptr, state.phases.residual(call, part),
                     state.phases.y(call, part)},
                    part);
}
template void runConvF32<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvF32<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvF32<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvF32<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark

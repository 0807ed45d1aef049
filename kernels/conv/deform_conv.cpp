// Deformable convolution (Dai et al. 2017, with the masks of v2) by its definition: every tap reads the input
// at an offset of its own, bilinearly; what lies outside counts as zero.
#include "kernels/common/element.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/conv_reference.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  ConvPlan conv;
  int64_t offsetGroups;
};

template <typename T> struct Sampler {
  const T *plane;
  int64_t height, width;

  Accumulator<T> at(int64_t y, int64_t x) const {
    return y >= 0 && y < height && x >= 0 && x < width ? Accumulator<T>(plane[y * width + x])
                                                       : Accumulator<T>(0);
  }
  Accumulator<T> bilinear(Accumulator<T> y, Accumulator<T> x) const {
    // Also keeps NaN and huge offsets away from the conversion to integers.
    if (!(y > -1 && y < Accumulator<T>(height) && x > -1 && x < Accumulator<T>(width)))
      return 0;
    Accumulator<T> y0 = std::floor(y), x0 = std::floor(x), fy = y - y0, fx = x - x0;
    int64_t iy = int64_t(y0), ix = int64_t(x0);
    return (1 - fy) * ((1 - fx) * at(iy, ix) + fx * at(iy, ix + 1)) +
           fy * ((1 - fx) * at(iy + 1, ix) + fx * at(iy + 1, ix + 1));
  }
};

// x, w, offset, bias?, mask?
template <typename T> T outputAt(const KernelCall &call, const State &state, int64_t index) {
  const ConvPlan &c = state.conv;
  int64_t pixels = c.out[1] * c.out[2], pixel = index % pixels, o = index / pixels % c.outChannels;
  int64_t n = index / (pixels * c.outChannels), oy = pixel / c.out[2], ox = pixel % c.out[2];
  const T *offsets = call.in[2].as<T>(), *w = call.in[1].as<T>();
  Accumulator<T> sum = call.has(3) ? Accumulator<T>(call.in[3].as<T>()[o]) : Accumulator<T>(0);
  for (int64_t i = 0; i < c.inPerGroup; ++i) {
    int64_t channel = o / c.outPerGroup * c.inPerGroup + i;
    int64_t offsetGroup = n * state.offsetGroups + channel / (c.inChannels / state.offsetGroups);
    Sampler<T> sampler = {call.in[0].as<T>() + (n * c.inChannels + channel) * c.inPixels(), c.in[1], c.in[2]};
    for (int64_t tap = 0; tap < c.taps; ++tap) {
      int64_t ky = tap / c.kernel[2], kx = tap % c.kernel[2], at = offsetGroup * c.taps + tap;
      Accumulator<T> dy = offsets[(2 * at) * pixels + pixel], dx = offsets[(2 * at + 1) * pixels + pixel];
      Accumulator<T> value =
          sampler.bilinear(Accumulator<T>(oy * c.stride[1] - c.pad[1] + ky * c.dilation[1]) + dy,
                           Accumulator<T>(ox * c.stride[2] - c.pad[2] + kx * c.dilation[2]) + dx);
      if (call.has(4))
        value *= Accumulator<T>(call.in[4].as<T>()[at * pixels + pixel]);
      sum += value * Accumulator<T>(w[(o * c.inPerGroup + i) * c.taps + tap]);
    }
  }
  return T(sum);
}

} // namespace

void prepareDeformConv(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  state.conv.read(call, 1, false);
  state.offsetGroups = call.attrs.i("offset_group", 1);
  work.flops = 5 * state.conv.flops();
  work.tiles[0] = uint32_t(std::clamp<int64_t>(call.out[0].elements() / 16, 1, 64));
}

void runDeformConv(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  int64_t elements = call.out[0].elements(), tiles = work.tiles[0];
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    dispatchFloat(call.in[0].type, [&]<typename T>() {
      for (int64_t i = elements * tile / tiles; i < elements * (tile + 1) / tiles; ++i)
        call.out[0].as<T>()[i] = outputAt<T>(call, work.get<State>(), i);
    });
}

} // namespace dspark

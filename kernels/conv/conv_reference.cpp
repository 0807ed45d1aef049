// conv and conv_transpose by their definition, one output at a time, for every float type.
#include "kernels/conv/conv_reference.h"
#include "kernels/common/element.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/matmul/scalar_activation.h"

namespace dspark {
namespace {

struct State {
  ConvPlan conv;
  Epilogue epilogue;
};

// The input coordinate that tap k of one axis reads for output o; -1 if none.
int64_t inputOf(const ConvPlan &conv, int axis, int64_t o, int64_t k) {
  int64_t at;
  if (conv.isTransposed) {
    int64_t distance = o + conv.pad[axis] - k * conv.dilation[axis];
    if (distance % conv.stride[axis] != 0)
      return -1;
    at = distance / conv.stride[axis];
  } else {
    at = o * conv.stride[axis] - conv.pad[axis] + k * conv.dilation[axis];
  }
  return at < conv.in[axis] ? at : -1;
}

template <typename T> struct Operands {
  const ConvPlan &conv;
  const T *x, *w;

  // Sum over one group's input channels at input pixel `pixel` with tap `tap`, for output channel o.
  Accumulator<T> channels(int64_t n, int64_t pixel, int64_t tap, int64_t o) const {
    int64_t g = o / conv.outPerGroup, pixels = conv.inPixels();
    Accumulator<T> sum = 0;
    for (int64_t i = 0; i < conv.inPerGroup; ++i) {
      int64_t channel = g * conv.inPerGroup + i;
      int64_t at = conv.isChannelsLast ? (n * pixels + pixel) * conv.inChannels + channel
                                       : (n * conv.inChannels + channel) * pixels + pixel;
      int64_t weight = conv.isTransposed
                           ? (channel * conv.outPerGroup + o % conv.outPerGroup) * conv.taps + tap
                           : (o * conv.inPerGroup + i) * conv.taps + tap;
      sum += Accumulator<T>(x[at]) * Accumulator<T>(w[weight]);
    }
    return sum;
  }

  Accumulator<T> taps(int64_t n, const int64_t (&at)[3], int64_t o) const {
    Accumulator<T> sum = 0;
    for (int64_t k0 = 0, tap = 0; k0 < conv.kernel[0]; ++k0)
      for (int64_t k1 = 0; k1 < conv.kernel[1]; ++k1)
        for (int64_t k2 = 0; k2 < conv.kernel[2]; ++k2, ++tap) {
          int64_t i0 = inputOf(conv, 0, at[0], k0), i1 = inputOf(conv, 1, at[1], k1),
                  i2 = inputOf(conv, 2, at[2], k2);
          if (i0 >= 0 && i1 >= 0 && i2 >= 0)
            sum += channels(n, (i0 * conv.in[1] + i1) * conv.in[2] + i2, tap, o);
        }
    return sum;
  }
};

template <typename T> void outputs(const KernelCall &call, const State &state, int64_t begin, int64_t end) {
  const ConvPlan &conv = state.conv;
  Operands<T> operands = {conv, call.in[0].as<T>(), call.in[1].as<T>()};
  for (int64_t index = begin; index < end; ++index) {
    int64_t pixels = conv.outPixels(), n = index / (pixels * conv.outChannels);
    int64_t o = conv.isChannelsLast ? index % conv.outChannels : index / pixels % conv.outChannels;
    int64_t pixel = conv.isChannelsLast ? index / conv.outChannels % pixels : index % pixels;
    int64_t at[3] = {pixel / (conv.out[1] * conv.out[2]), pixel / conv.out[2] % conv.out[1],
                     pixel % conv.out[2]};
    Accumulator<T> sum = operands.taps(n, at, o);
    if (call.has(2))
      sum += Accumulator<T>(call.in[2].as<T>()[o]);
    if (call.has(3))
      sum += Accumulator<T>(call.in[3].as<T>()[index]);
    call.out[0].as<T>()[index] = T(activateScalar<Accumulator<T>>(state.epilogue.activation, sum,
                                                                  state.epilogue.alpha, state.epilogue.beta));
  }
}

void prepare(const KernelCall &call, KernelWork &work, bool isTransposed) {
  State &state = work.make<State>();
  state.conv.read(call, 1, isTransposed);
  state.epilogue.read(call.attrs);
  work.flops = state.conv.flops();
  work.tiles[0] = uint32_t(std::clamp<int64_t>(call.out[0].elements() / 16, 1, 64));
}

} // namespace

bool acceptsRowMajorWeights(const KernelCall &call) { return call.attrs.s("packed", "").empty(); }

void prepareConvReference(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareConvTransposeReference(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

void runConvReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  int64_t elements = call.out[0].elements(), tiles = work.tiles[0];
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    dispatchFloat(call.in[0].type, [&]<typename T>() {
      outputs<T>(call, work.get<State>(), elements * tile / tiles, elements * (tile + 1) / tiles);
    });
}

} // namespace dspark

// causal_conv_with_state: a depthwise convolution over time whose left border is the state, kept as the last
// k-1 values. swiglu: swish(a) * b. Tiles: (batch, channel); blocks of elements.
#include "kernels/attention/attention_kernel.h"
#include "kernels/common/element.h"
#include <algorithm>

namespace dspark {
namespace {

struct CausalConvState {
  int64_t batch, channels, length, taps;
  bool silu;
};

struct SwigluState {
  int64_t count;
  double alpha;
};
constexpr int64_t kSwigluBlock = 8192;

template <typename A> A swish(A x, A alpha) { return x / (1 + std::exp(-alpha * x)); }

// Element i of the state followed by the input; a missing state is zeros.
template <typename T> T padded(const T *past, const T *x, int64_t stateSize, int64_t i) {
  return i >= stateSize ? x[i - stateSize] : past ? past[i] : T(0);
}

} // namespace

void prepareCausalConv(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  auto &s = work.make<CausalConvState>();
  s = {x.dim(0), x.dim(1), x.dim(2), call.in[1].dim(2), call.attrs.s("activation", "none") != "none"};
  work.tiles[0] = uint32_t(s.batch * s.channels);
  work.flops = 2.0 * double(s.batch * s.channels * s.length * s.taps);
}

void runCausalConv(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<CausalConvState>();
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    using A = Accumulator<T>;
    int64_t state = s.taps - 1;
    for (int64_t tile = part.begin; tile < part.end; ++tile) {
      int64_t channel = tile % s.channels;
      const T *x = call.in[0].as<const T>() + tile * s.length,
              *w = call.in[1].as<const T>() + channel * s.taps;
      const T *past = call.has(3) ? call.in[3].as<const T>() + tile * state : nullptr;
      A bias = call.has(2) ? A(call.in[2].as<const T>()[channel]) : A(0);
      for (int64_t t = 0; t < s.length; ++t) {
        A sum = bias;
        for (int64_t i = 0; i < s.taps; ++i)
          sum += A(w[i]) * A(padded(past, x, state, t + i));
        call.out[0].as<T>()[tile * s.length + t] = T(s.silu ? swish(sum, A(1)) : sum);
      }
      if (call.out.size() > 1 && call.out[1].present())
        for (int64_t i = 0; i < state; ++i)
          call.out[1].as<T>()[tile * state + i] = padded(past, x, state, s.length + i);
    }
  });
}

void prepareSwiglu(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<SwigluState>();
  s = {call.in[0].elements(), call.attrs.f("alpha", 1)};
  work.tiles[0] = uint32_t((s.count + kSwigluBlock - 1) / kSwigluBlock);
  work.bytes = 3.0 * double(dtypeBytes(call.in[0].type, s.count));
}

void runSwiglu(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<SwigluState>();
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    using A = Accumulator<T>;
    const T *a = call.in[0].as<const T>(), *b = call.in[1].as<const T>();
    int64_t end = std::min(s.count, int64_t(part.end) * kSwigluBlock);
    for (int64_t i = part.begin * kSwigluBlock; i < end; ++i)
      call.out[0].as<T>()[i] = T(swish(A(a[i]), A(s.alpha)) * A(b[i]));
  });
}

} // namespace dspark

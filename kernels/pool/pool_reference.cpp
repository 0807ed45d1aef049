// pool for every type, kind and layout, one output at a time; max_unpool.
#include "kernels/common/element.h"
#include "kernels/pool/pool.h"
#include "kernels/pool/pool_plan.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dspark {
namespace {

// What one output is made of. Sums are formed in f64, so that they round once.
template <typename T> struct Window {
  const PoolPlan &plan;
  double sum = 0;
  T best = 0;
  int64_t count = 0, bestPixel = 0;

  void add(T value, int64_t pixel) {
    ++count;
    if (plan.kind == PoolKind::Average)
      sum += double(value);
    else if (plan.kind == PoolKind::Lp)
      sum += std::pow(std::fabs(double(value)), plan.p);
    else if (count == 1 || value > best || (value != value && best == best)) {
      best = value;
      bestPixel = pixel;
    }
  }
  T result(const int64_t (&at)[3]) const {
    if (plan.kind == PoolKind::Average)
      return fromReal<T>(sum / double(plan.divisor(at, count)));
    if (plan.kind == PoolKind::Lp)
      return fromReal<T>(std::pow(sum, 1.0 / plan.p));
    if (count > 0)
      return best;
    if constexpr (std::is_integral_v<T>)
      return std::numeric_limits<T>::min();
    else
      return T(-std::numeric_limits<float>::infinity());
  }
};

// The offset of a pixel within its plane as ONNX reports it: row-major, or with the axes reversed.
int64_t reportedPixel(const PoolPlan &plan, int64_t pixel) {
  if (!plan.isColumnMajor)
    return pixel;
  int64_t i2 = pixel % plan.in[2], i1 = pixel / plan.in[2] % plan.in[1],
          i0 = pixel / (plan.in[2] * plan.in[1]);
  return (i2 * plan.in[1] + i1) * plan.in[0] + i0;
}

template <typename T> void poolAt(const KernelCall &call, const PoolPlan &plan, int64_t index) {
  int64_t pixels = plan.outPixels();
  int64_t channel = plan.isChannelsLast ? index % plan.channels : index / pixels % plan.channels;
  int64_t pixel = plan.isChannelsLast ? index / plan.channels % pixels : index % pixels;
  int64_t n = index / (pixels * plan.channels), step = plan.isChannelsLast ? plan.channels : 1;
  const T *x = call.in[0].as<T>() + n * plan.channels * plan.inPixels() +
               channel * (plan.isChannelsLast ? 1 : plan.inPixels());
  int64_t at[3] = {pixel / (plan.out[2] * plan.out[1]), pixel / plan.out[2] % plan.out[1],
                   pixel % plan.out[2]};
  PoolSpan spans[3] = {{plan, 0, at[0]}, {plan, 1, at[1]}, {plan, 2, at[2]}};
  Window<T> window{plan};
  for (int64_t k0 = spans[0].begin; k0 < spans[0].end; ++k0)
    for (int64_t k1 = spans[1].begin; k1 < spans[1].end; ++k1)
      for (int64_t k2 = spans[2].begin; k2 < spans[2].end; ++k2) {
        int64_t from =
            ((spans[0].first + k0 * plan.dilation[0]) * plan.in[1] + spans[1].first + k1 * plan.dilation[1]) *
                plan.in[2] +
            spans[2].first + k2 * plan.dilation[2];
        window.add(x[from * step], from);
      }
  call.out[0].as<T>()[index] = window.result(at);
  if (call.out.size() > 1 && call.out[1].present())
    call.out[1].as<int64_t>()[index] =
        (n * plan.channels + channel) * plan.inPixels() + reportedPixel(plan, window.bestPixel);
}

} // namespace

void preparePoolReference(const KernelCall &call, KernelWork &work) {
  PoolPlan &plan = work.make<PoolPlan>();
  plan.read(call);
  double taps = double(plan.kernel[0]) * double(plan.kernel[1]) * double(plan.kernel[2]);
  double outputs = double(call.out[0].elements());
  work.bytes = double(dtypeBytes(call.in[0].type, call.in[0].elements() + call.out[0].elements()));
  work.tiles[0] = uint32_t(std::clamp(outputs * std::min(taps, double(plan.inPixels())) / (8 * 1024), 1.0,
                                      std::clamp(outputs, 1.0, 64.0)));
}

void runPoolReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  int64_t elements = call.out[0].elements(), tiles = work.tiles[0];
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    dispatchNumber(call.in[0].type, [&]<typename T>() {
      for (int64_t i = elements * tile / tiles; i < elements * (tile + 1) / tiles; ++i)
        poolAt<T>(call, work.get<PoolPlan>(), i);
    });
}

// One tile: two inputs may name the same output, and the later one wins.
void prepareMaxUnpool(const KernelCall &call, KernelWork &work) {
  work.bytes = double(dtypeBytes(call.out[0].type, call.in[0].elements() + call.out[0].elements()));
}

void runMaxUnpool(const KernelCall &call, const KernelWork &, const KernelPart &) {
  const TensorView &x = call.in[0], &y = call.out[0];
  int64_t elements = y.elements();
  if (elements > 0)
    std::memset(y.data, 0, size_t(dtypeBytes(y.type, elements)));
  // With an output_shape, indices still count within the size that the window gives, and only spatial dims
  // differ.
  int64_t natural[kMaxRank], size = 1;
  for (int d = 0; d < x.rank; ++d) {
    natural[d] = x.dim(d);
    if (d >= 2 && call.has(2)) {
      auto entry = [&](const char *name, size_t i, int64_t otherwise) {
        std::span<const int64_t> list = call.attrs.ints(name);
        return i < list.size() ? list[i] : otherwise;
      };
      size_t axis = size_t(d - 2), spatial = size_t(x.rank - 2);
      natural[d] = (x.dim(d) - 1) * entry("strides", axis, 1) + entry("kernel_shape", axis, 1) -
                   entry("pads", axis, 0) - entry("pads", spatial + axis, 0);
    } else if (d >= 2) {
      natural[d] = y.dim(d);
    }
    if (natural[d] <= 0)
      return;
    size *= natural[d];
  }
  dispatchNumber(x.type, [&]<typename T>() {
    for (int64_t i = 0; i < x.elements(); ++i) {
      int64_t index = call.in[1].as<int64_t>()[i], at = 0, step = 1;
      if (index < 0 || index >= size)
        continue; // names no element
      bool isInside = true;
      for (int d = x.rank - 1; d >= 0; --d) {
        int64_t coordinate = index % natural[d];
        index /= natural[d];
        isInside = isInside && coordinate < y.dim(d);
        at += coordinate * step;
        step *= y.dim(d);
      }
      if (isInside)
        y.as<T>()[at] = x.as<T>()[i];
    }
  });
}

} // namespace dspark

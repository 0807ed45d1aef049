// Kernels of "cast" and "clip".
#include "kernels/elementwise/half.h"
#include "kernels/elementwise/rows.h"
#include "kernels/elementwise/scalar.h"
#include <cmath>

namespace dspark {
namespace {

// --- cast ---

struct CastState {
  void (*toFloat)(const uint16_t *, float *, int64_t); // f16, bf16 to f32
  void (*fromFloat)(const float *, uint16_t *, int64_t);
  void (*plain)(const void *x, void *y, int64_t n);
  NarrowOptions options;
};

template <typename S, typename D> void castLoop(const void *x, void *y, int64_t n) {
  auto *in = static_cast<const S *>(x);
  auto *out = static_cast<D *>(y);
  for (int64_t i = 0; i < n; ++i) {
    // A caller's booleans may be other bytes than 0 and 1, which C++ must not read as bool.
    if constexpr (std::is_same_v<S, bool>)
      out[i] = D(static_cast<const uint8_t *>(x)[i] != 0);
    else if constexpr (std::is_same_v<D, bool>)
      out[i] = in[i] != 0;
    else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>)
      out[i] = truncateTo<D>(double(in[i]));
    else
      out[i] = D(in[i]);
  }
}

/// f<T>() with the C++ type of f32, f64, bool and integers of whole bytes; false for other types.
template <typename F> bool dispatchPlain(DType type, F f) {
  if (type == DType::Bool) {
    f.template operator()<bool>();
    return true;
  }
  bool found = false;
  dispatchNumber(type, [&]<typename T>() {
    if constexpr (std::is_arithmetic_v<T>) {
      f.template operator()<T>();
      found = true;
    }
  });
  return found;
}

bool isPlain(DType type) {
  return dispatchPlain(type, []<typename>() {});
}
bool acceptsPlain(const KernelCall &call) { return isPlain(call.in[0].type) && isPlain(call.out[0].type); }
void preparePlain(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<CastState>();
  dispatchPlain(call.in[0].type, [&]<typename S>() {
    dispatchPlain(call.out[0].type, [&]<typename D>() { state.plain = castLoop<S, D>; });
  });
  prepareElementwise(call, work, 0);
}
void runPlain(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0], &y = call.out[0];
  int64_t xBytes = dtypeBits(x.type) / 8, yBytes = dtypeBits(y.type) / 8;
  forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t i, int64_t n) {
    work.get<CastState>().plain(x.as<std::byte>() + i * xBytes, y.as<std::byte>() + i * yBytes, n);
  });
}

bool acceptsHalf(const KernelCall &call) {
  DType from = call.in[0].type, to = call.out[0].type;
  return (isHalf(from) && to == DType::F32) || (from == DType::F32 && isHalf(to));
}
template <Isa isa> void prepareHalf(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<CastState>();
  bool widens = isHalf(call.in[0].type);
  HalfConversion half(floatLoops(isa), (widens ? call.in : call.out)[0].type);
  state.toFloat = widens ? half.toFloat : nullptr;
  state.fromFloat = half.fromFloat;
  prepareElementwise(call, work, 0);
}
void runHalf(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<CastState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t i, int64_t n) {
    if (state.toFloat)
      state.toFloat(x.as<uint16_t>() + i, y.as<float>() + i, n);
    else
      state.fromFloat(x.as<float>() + i, y.as<uint16_t>() + i, n);
  });
}

// f64 holds every element exactly but 64-bit integers, of which packed integers need the low bits only.
bool acceptsReference(const KernelCall &call) {
  return !acceptsPlain(call) && call.in[0].type != DType::String && call.out[0].type != DType::String;
}
void prepareReference(const KernelCall &call, KernelWork &work) {
  auto &options = work.make<CastState>().options;
  options.saturate = call.attrs.i("saturate", 1) != 0;
  std::string_view round = call.attrs.s("round_mode", "up");
  options.round = round == "down" ? E8m0Round::Down : round == "nearest" ? E8m0Round::Nearest : E8m0Round::Up;
  prepareElementwise(call, work, 0);
}
void runReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0], &y = call.out[0];
  bool lowBits = isInteger(x.type) && dtypeBits(x.type) == 64 && isInteger(y.type);
  forElements(call.out[0].elements(), part, kGatherBlock, [&](int64_t i, int64_t n) {
    double block[kGatherBlock];
    if (lowBits)
      for (int64_t k = 0; k < n; ++k)
        block[k] = int8_t(x.as<int64_t>()[i + k]);
    else
      loadAsF64(x.type, x.data, i, n, block);
    storeFromF64(y.type, y.data, i, n, block, work.get<CastState>().options);
  });
}

// --- clip: the bounds are known only at run time ---

struct ClipState {
  ClipLoop loop;
};

template <Isa isa> void prepareClip(const KernelCall &call, KernelWork &work) {
  work.make<ClipState>().loop = floatLoops(isa).clip;
  prepareElementwise(call, work, 2);
}
bool acceptsClipF32(const KernelCall &call) { return call.in[0].type == DType::F32; }
void runClipF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  float low = call.has(1) ? *call.in[1].as<float>() : -HUGE_VALF;
  float high = call.has(2) ? *call.in[2].as<float>() : HUGE_VALF;
  forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t i, int64_t n) {
    work.get<ClipState>().loop(call.in[0].as<float>() + i, call.out[0].as<float>() + i, n, low, high);
  });
}
void runClip(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t i, int64_t n) {
      const T *x = call.in[0].as<T>() + i;
      T *y = call.out[0].as<T>() + i;
      for (int64_t k = 0; k < n; ++k) {
        T value = x[k];
        if (call.has(1) && value < *call.in[1].as<T>())
          value = *call.in[1].as<T>();
        if (call.has(2) && value > *call.in[2].as<T>())
          value = *call.in[2].as<T>();
        y[k] = value;
      }
    });
  });
}

} // namespace

std::span<const Kernel> castRows() {
  static const Kernel rows[] = {
      {"cast", "cast_half_avx512", Isa::Avx512, acceptsHalf, prepareHalf<Isa::Avx512>, runHalf},
      {"cast", "cast_half_avx2", Isa::Avx2, acceptsHalf, prepareHalf<Isa::Avx2>, runHalf},
      {"cast", "cast_half", Isa::Baseline, acceptsHalf, prepareHalf<Isa::Baseline>, runHalf},
      {"cast", "cast_plain", Isa::Baseline, acceptsPlain, preparePlain, runPlain},
      {"cast", "cast_reference", Isa::Baseline, acceptsReference, prepareReference, runReference},
  };
  return rows;
}

std::span<const Kernel> clipRows() {
  static const Kernel rows[] = {
      {"clip", "clip_f32_avx512", Isa::Avx512, acceptsClipF32, prepareClip<Isa::Avx512>, runClipF32},
      {"clip", "clip_f32_avx2", Isa::Avx2, acceptsClipF32, prepareClip<Isa::Avx2>, runClipF32},
      {"clip", "clip_f32", Isa::Baseline, acceptsClipF32, prepareClip<Isa::Baseline>, runClipF32},
      {"clip", "clip_reference", Isa::Baseline, nullptr, prepareClip<Isa::Baseline>, runClip},
  };
  return rows;
}

} // namespace dspark

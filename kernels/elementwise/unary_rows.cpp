// Kernels of "unary": f32 by the SIMD loops, f16 and bf16 through f32, and a reference for every type.
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/half.h"
#include "kernels/elementwise/rows.h"
#include "kernels/elementwise/scalar.h"

namespace dspark {
namespace {

struct UnaryState {
  UnaryKind kind;
  UnaryParams params;
  UnaryLoop loop;      // f32 rows
  HalfConversion half; // f16 and bf16 rows
};

UnaryKind kindOf(const KernelCall &call) { return unaryKind(call.attrs.s("kind", "")); }

template <Isa isa> void prepareUnary(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<UnaryState>();
  state.kind = kindOf(call);
  state.params = unaryParams(call.attrs, state.kind);
  state.loop = floatLoops(isa).unary[int(state.kind)];
  state.half = HalfConversion(floatLoops(isa), call.in[0].type);
  prepareElementwise(call, work, 1);
}

bool acceptsF32(const KernelCall &call) {
  return call.in[0].type == DType::F32 && !isPredicate(kindOf(call));
}
void runF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<UnaryState>();
  const float *x = call.in[0].as<float>();
  float *y = call.out[0].as<float>();
  forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t i, int64_t n) {
    state.loop(x + i, y + i, n, float(state.params.alpha), float(state.params.beta));
  });
}

bool acceptsHalf(const KernelCall &call) { return isHalf(call.in[0].type) && !isPredicate(kindOf(call)); }
void runHalf(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<UnaryState>();
  const uint16_t *x = call.in[0].as<uint16_t>();
  uint16_t *y = call.out[0].as<uint16_t>();
  forElements(call.out[0].elements(), part, kGatherBlock, [&](int64_t i, int64_t n) {
    alignas(64) float block[kGatherBlock];
    state.half.toFloat(x + i, block, n);
    state.loop(block, block, n, float(state.params.alpha), float(state.params.beta));
    state.half.fromFloat(block, y + i, n);
  });
}

void runReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<UnaryState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  auto [alpha, beta] = state.params;
  if (isFloat(x.type)) {
    forElements(call.out[0].elements(), part, kGatherBlock, [&](int64_t i, int64_t n) {
      double block[kGatherBlock];
      loadAsF64(x.type, x.data, i, n, block);
      for (int64_t k = 0; k < n; ++k)
        block[k] = unaryValue(state.kind, block[k], alpha, beta);
      storeFromF64(y.type, y.data, i, n, block);
    });
    return;
  }
  dispatchNumber(x.type, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>)
      forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t i, int64_t n) {
        for (int64_t k = i; k < i + n; ++k)
          y.as<T>()[k] = unaryInteger<T>(state.kind, x.as<T>()[k], alpha, beta);
      });
  });
}

} // namespace

std::span<const Kernel> unaryRows() {
  static const Kernel rows[] = {
      {"unary", "unary_f32_avx512", Isa::Avx512, acceptsF32, prepareUnary<Isa::Avx512>, runF32},
      {"unary", "unary_half_avx512", Isa::Avx512, acceptsHalf, prepareUnary<Isa::Avx512>, runHalf},
      {"unary", "unary_f32_avx2", Isa::Avx2, acceptsF32, prepareUnary<Isa::Avx2>, runF32},
      {"unary", "unary_half_avx2", Isa::Avx2, acceptsHalf, prepareUnary<Isa::Avx2>, runHalf},
      {"unary", "unary_f32", Isa::Baseline, acceptsF32, prepareUnary<Isa::Baseline>, runF32},
      {"unary", "unary_half", Isa::Baseline, acceptsHalf, prepareUnary<Isa::Baseline>, runHalf},
      {"unary", "unary_reference", Isa::Baseline, nullptr, prepareUnary<Isa::Baseline>, runReference},
  };
  return rows;
}

} // namespace dspark

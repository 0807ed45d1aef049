// Kernels of "binary": f32 by the SIMD loops, f16 and bf16 through f32, integers by loops the compiler
// vectorises, and a reference for every type.
#include "kernels/elementwise/half.h"
#include "kernels/elementwise/rows.h"
#include "kernels/elementwise/scalar.h"

namespace dspark {
namespace {

struct BinaryState {
  BroadcastLoops<2> loops;
  BinaryKind kind;
  const BinaryLoop *forms; // f32 rows: one loop per OperandForm
  HalfConversion half;
};

BinaryKind kindOf(const KernelCall &call) { return binaryKind(call.attrs.s("kind", "")); }
bool haveType(const KernelCall &call, bool (*allowed)(DType)) {
  return allowed(call.in[0].type) && call.in[1].type == call.in[0].type;
}

template <Isa isa> void prepareBinary(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<BinaryState>();
  state.kind = kindOf(call);
  state.forms = floatLoops(isa).binary[int(state.kind)];
  state.half = HalfConversion(floatLoops(isa), call.in[0].type);
  collapseLoops(call.out[0], call.in, state.loops);
  prepareElementwise(call, work, 1);
}

/// Runs the loop that fits the blocks' forms. Two scalars make one result, which is repeated.
void runForms(const BinaryLoop *forms, const float *a, bool aScalar, const float *b, bool bScalar, float *y,
              int64_t n) {
  if (aScalar && bScalar) {
    float value;
    forms[kBothBlocks](a, b, &value, 1);
    std::fill_n(y, n, value);
    return;
  }
  forms[aScalar ? kScalarA : bScalar ? kScalarB : kBothBlocks](a, b, y, n);
}

bool acceptsF32(const KernelCall &call) {
  return haveType(call, [](DType type) { return type == DType::F32; });
}
void runF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<BinaryState>();
  float *y = call.out[0].as<float>();
  forBlocks(state.loops, call.in, part, INT64_MAX, [&](const BlockOperand *x, int64_t i, int64_t n) {
    runForms(state.forms, static_cast<const float *>(x[0].data), x[0].isScalar,
             static_cast<const float *>(x[1].data), x[1].isScalar, y + i, n);
  });
}

bool acceptsHalf(const KernelCall &call) { return haveType(call, isHalf); }
void runHalf(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<BinaryState>();
  uint16_t *y = call.out[0].as<uint16_t>();
  forBlocks(state.loops, call.in, part, kGatherBlock, [&](const BlockOperand *x, int64_t i, int64_t n) {
    alignas(64) float a[kGatherBlock], b[kGatherBlock];
    runForms(state.forms, state.half.read(x[0], n, a), x[0].isScalar, state.half.read(x[1], n, b),
             x[1].isScalar, a, n);
    state.half.fromFloat(a, y + i, n);
  });
}

// --- integers: one loop per type and kind ---

template <typename T>
using IntegerLoop = void (*)(const T *a, bool aScalar, const T *b, bool bScalar, T *y, int64_t n);

template <typename T, BinaryKind kind>
void integerLoop(const T *a, bool aScalar, const T *b, bool bScalar, T *y, int64_t n) {
  if (!aScalar && !bScalar) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = binaryInteger<T>(kind, a[i], b[i]);
  } else if (bScalar) {
    T fixed = *b;
    for (int64_t i = 0; i < n; ++i)
      y[i] = binaryInteger<T>(kind, a[aScalar ? 0 : i], fixed);
  } else {
    T fixed = *a;
    for (int64_t i = 0; i < n; ++i)
      y[i] = binaryInteger<T>(kind, fixed, b[i]);
  }
}
template <typename T>
constexpr IntegerLoop<T> kIntegerLoops[] = {
#define DSPARK_BINARY(name) integerLoop<T, BinaryKind::k_##name>,
#include "kernels/elementwise/kinds.def"
};

bool isPlainInteger(DType type) { return isPlainNumber(type) && !isFloat(type); }
bool acceptsInteger(const KernelCall &call) { return haveType(call, isPlainInteger); }
void runInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<BinaryState>();
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      T *y = call.out[0].as<T>();
      forBlocks(state.loops, call.in, part, INT64_MAX, [&](const BlockOperand *x, int64_t i, int64_t n) {
        kIntegerLoops<T>[int(state.kind)](static_cast<const T *>(x[0].data), x[0].isScalar,
                                          static_cast<const T *>(x[1].data), x[1].isScalar, y + i, n);
      });
    }
  });
}

// --- reference: floats, and powers of mixed types ---

bool acceptsReference(const KernelCall &call) { return !acceptsInteger(call); }
void runReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<BinaryState>();
  const TensorView &y = call.out[0];
  DType aType = call.in[0].type, bType = call.in[1].type;
  forBlocks(state.loops, call.in, part, kGatherBlock, [&](const BlockOperand *x, int64_t i, int64_t n) {
    double a[kGatherBlock], b[kGatherBlock];
    loadAsF64(bType, x[1].data, 0, x[1].isScalar ? 1 : n, b);
    if (!isFloat(aType)) { // only pow: its exponent has another type
      dispatchNumber(aType, [&]<typename T>() {
        if constexpr (std::is_integral_v<T>)
          for (int64_t k = 0; k < n; ++k)
            y.as<T>()[i + k] = T(powInteger(int64_t(static_cast<const T *>(x[0].data)[x[0].isScalar ? 0 : k]),
                                            b[x[1].isScalar ? 0 : k]));
      });
      return;
    }
    loadAsF64(aType, x[0].data, 0, x[0].isScalar ? 1 : n, a);
    double results[kGatherBlock];
    for (int64_t k = 0; k < n; ++k)
      results[k] = binaryValue(state.kind, a[x[0].isScalar ? 0 : k], b[x[1].isScalar ? 0 : k]);
    storeFromF64(y.type, y.data, i, n, results);
  });
}

} // namespace

std::span<const Kernel> binaryRows() {
  static const Kernel rows[] = {
      {"binary", "binary_f32_avx512", Isa::Avx512, acceptsF32, prepareBinary<Isa::Avx512>, runF32},
      {"binary", "binary_half_avx512", Isa::Avx512, acceptsHalf, prepareBinary<Isa::Avx512>, runHalf},
      {"binary", "binary_f32_avx2", Isa::Avx2, acceptsF32, prepareBinary<Isa::Avx2>, runF32},
      {"binary", "binary_half_avx2", Isa::Avx2, acceptsHalf, prepareBinary<Isa::Avx2>, runHalf},
      {"binary", "binary_f32", Isa::Baseline, acceptsF32, prepareBinary<Isa::Baseline>, runF32},
      {"binary", "binary_half", Isa::Baseline, acceptsHalf, prepareBinary<Isa::Baseline>, runHalf},
      {"binary", "binary_integer", Isa::Baseline, acceptsInteger, prepareBinary<Isa::Baseline>, runInteger},
      {"binary", "binary_reference", Isa::Baseline, acceptsReference, prepareBinary<Isa::Baseline>,
       runReference},
  };
  return rows;
}

} // namespace dspark

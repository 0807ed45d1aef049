// Reduce for every type. f32 folds with the SIMD loops of an ISA level, other types with scalar loops; sums
// of parts are taken in f64 (integers: modulo 2^64), and each result is rounded once.
//
// Results do not depend on tiles: a result is folded by one tile, or in slices whose length follows from the
// shape alone and which are joined in order.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/element.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_loops.h"
#include "kernels/reduce/reduce_plan.h"
#include "kernels/reduce/rows.h"
#include <cmath>

namespace dspark::reduce_ops {
namespace {

constexpr int64_t kTileElements = 16384; // folded by one tile, about

struct ReduceState {
  ReduceKind kind;
  Fold fold;
  bool hasPlan;
  ReducePlan plan;
};

ReduceKind kindOf(const KernelCall &call) {
  std::string_view name = call.attrs.s("kind", "");
  return ReduceKind(std::find(std::begin(kReduceKinds), std::end(kReduceKinds), name) -
                    std::begin(kReduceKinds));
}

Fold foldOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Max:
  case ReduceKind::LogSumExp: // first the maximum, which is then subtracted
    return Fold::Max;
  case ReduceKind::Min:
    return Fold::Min;
  case ReduceKind::Prod:
    return Fold::Prod;
  case ReduceKind::L1:
    return Fold::Abs;
  case ReduceKind::L2:
  case ReduceKind::SumSquare:
    return Fold::Square;
  default:
    return Fold::Sum;
  }
}

/// Calls f(offset, run) for the runs of the reduced indices [begin, end): `run` steps of the last reduced
/// axis.
template <typename F> void forRuns(const ReducePlan &p, int64_t begin, int64_t end, F f) {
  int64_t size = p.reducedSize[p.reduced - 1];
  while (begin < end) {
    int64_t run = p.reduced == 1 ? end - begin : std::min(end - begin, size - begin % size);
    f(p.reducedOffset(begin), run);
    begin += run;
  }
}

/// Parts of results [first, first + width) of one stripe over the reduced indices [begin, end). In lanes the
/// results are neighbours in x; in rows there is one.
template <typename T, typename Loops>
void foldPart(const ReducePlan &p, const Loops &loops, ReduceKind kind, const T *x, int64_t width,
              int64_t begin, int64_t end, typename Loops::P *acc) {
  using P = typename Loops::P;
  int64_t stride = p.reducedStride[p.reduced - 1];
  forRuns(p, begin, end, [&](int64_t at, int64_t run) {
    if (p.isRows)
      acc[0] = loops.row(x + at, run, acc[0]);
    else
      loops.lanes(x + at, run, stride, width, acc);
  });
  if (kind != ReduceKind::LogSumExp)
    return;
  // acc holds maxima; an infinite one cannot be subtracted, and need not be.
  P shift[kStripe];
  for (int64_t j = 0; j < width; ++j) {
    shift[j] = std::isfinite(double(acc[j])) ? acc[j] : P(0);
    acc[j] = 0;
  }
  forRuns(p, begin, end, [&](int64_t at, int64_t run) {
    if (p.isRows)
      acc[0] = loops.expRow(x + at, run, shift[0], acc[0]);
    else
      loops.expLanes(x + at, run, stride, width, shift, acc);
  });
  for (int64_t j = 0; j < width; ++j)
    acc[j] = P(std::log(double(acc[j])) + double(shift[j]));
}

/// Rounds `width` finished folds into results.
template <typename T, typename P>
void finish(ReduceKind kind, const P *acc, T *y, int64_t width, int64_t folded) {
  auto write = [&](auto map) {
    for (int64_t j = 0; j < width; ++j)
      y[j] = map(acc[j]);
  };
  auto real = [](double value) {
    if constexpr (std::is_integral_v<T>)
      return saturate<T>(value);
    else
      return fromReal<T>(value);
  };
  switch (kind) {
  case ReduceKind::Mean:
    if constexpr (std::is_integral_v<T>)
      return write([&](P a) { return folded == 0 ? T(0) : T(a / P(folded)); });
    else
      return write([&](P a) { return real(a / double(folded)); });
  case ReduceKind::L2:
    return write([&](P a) { return real(std::sqrt(double(a))); });
  case ReduceKind::LogSum:
    return write([&](P a) { return real(std::log(double(a))); });
  default:
    if constexpr (std::is_integral_v<T>)
      return write([](P a) { return T(a); });
    else
      return write(real);
  }
}

/// Results are computed in stripes: one of them where rows are folded, up to kStripe neighbours in lanes.
int64_t stripesPerRow(const ReducePlan &p) {
  return p.isRows ? 1 : (p.keptSize[p.kept - 1] + kStripe - 1) / kStripe;
}
int64_t stripesOf(const ReducePlan &p) {
  return p.isRows ? p.outputs : p.outputs / std::max<int64_t>(p.keptSize[p.kept - 1], 1) * stripesPerRow(p);
}

/// Calls f(first result, width, offset) for the stripes [begin, end).
template <typename F> void forStripes(const ReducePlan &p, int64_t begin, int64_t end, F f) {
  int64_t row = p.isRows ? 1 : p.keptSize[p.kept - 1], perRow = stripesPerRow(p);
  for (int64_t stripe = begin; stripe < end; ++stripe) {
    int64_t at = stripe % perRow * kStripe, first = stripe / perRow * row + at;
    f(first, std::min(kStripe, row - at), p.keptOffset(first));
  }
}

template <typename T, typename Loops>
void reduceRange(const KernelCall &call, const ReduceState &s, const ReducePlan &p, const Loops &loops,
                 const KernelPart &part, uint32_t tiles) {
  using P = typename Loops::P;
  const T *x = call.in[0].as<const T>();
  T *y = call.out[0].as<T>();
  P *parts = reinterpret_cast<P *>(part.shared); // [slices, outputs]
  P start = identity<P>(s.fold, call.in[0].type);
  if (part.phase == 1) {
    RowRange range(p.outputs, tiles, part);
    for (int64_t o = range.begin; o < range.end; ++o) {
      P acc = parts[o];
      withFold(s.fold, [&](auto fold) {
        for (int64_t slice = 1; slice < p.slices; ++slice)
          acc = join<fold.value>(acc, parts[slice * p.outputs + o]);
      });
      finish(s.kind, &acc, y + o, 1, p.folded);
    }
    return;
  }
  // With slices each tile is one slice of all results, else a range of stripes.
  RowRange range(p.slices > 1 ? p.slices : stripesOf(p), tiles, part);
  for (int64_t slice = p.slices > 1 ? range.begin : 0, last = p.slices > 1 ? range.end : 1; slice < last;
       ++slice) {
    int64_t begin = slice * p.sliceLength, end = std::min(p.folded, begin + p.sliceLength);
    forStripes(p, p.slices > 1 ? 0 : range.begin, p.slices > 1 ? stripesOf(p) : range.end,
               [&](int64_t first, int64_t width, int64_t offset) {
                 P acc[kStripe];
                 std::fill(acc, acc + width, start);
                 // Without elements x may be null.
                 foldPart(p, loops, s.kind, p.folded > 0 ? x + offset : x, width, begin, end, acc);
                 if (p.slices > 1)
                   std::copy(acc, acc + width, parts + slice * p.outputs + first);
                 else
                   finish(s.kind, acc, y + first, width, p.folded);
               });
  }
}

/// Folds of few f32 elements each are made where they are stored, without parts in f64: their chains are as
/// short as those of longer folds' parts.
bool isShort(const ReducePlan &p, ReduceKind kind) {
  return p.reduced == 1 && p.slices == 1 && p.folded > 0 && p.folded <= kShortRow &&
         kind != ReduceKind::LogSumExp;
}

void reduceShort(const KernelCall &call, const ReduceState &s, const ReducePlan &p, const FloatReduce &simd,
                 const KernelPart &part, uint32_t tiles) {
  const float *x = call.in[0].as<const float>();
  float *y = call.out[0].as<float>();
  RowRange range(stripesOf(p), tiles, part);
  auto finishAt = [&](int64_t first, int64_t count) {
    float *results = y + first;
    if (s.kind == ReduceKind::Mean)
      for (int64_t j = 0; j < count; ++j)
        results[j] /= float(p.folded);
    else if (s.kind == ReduceKind::L2)
      for (int64_t j = 0; j < count; ++j)
        results[j] = std::sqrt(results[j]);
    else if (s.kind == ReduceKind::LogSum)
      for (int64_t j = 0; j < count; ++j)
        results[j] = float(std::log(double(results[j])));
  };
  if (p.isRows) {
    simd.shortRows[int(s.fold)](x + range.begin * p.folded, range.end - range.begin, p.folded,
                                y + range.begin);
    return finishAt(range.begin, range.end - range.begin);
  }
  forStripes(p, range.begin, range.end, [&](int64_t first, int64_t width, int64_t offset) {
    std::fill_n(y + first, width, float(identity<double>(s.fold, DType::F32)));
    simd.lanes[int(s.fold)](x + offset, p.folded, p.reducedStride[0], width, y + first);
    finishAt(first, width);
  });
}

bool acceptsAny(const KernelCall &call) {
  // An integer has no place for the exponentials.
  bool fits = isPlainFloat(call.in[0].type) || kindOf(call) != ReduceKind::LogSumExp;
  return fits && isPlainNumber(call.in[0].type) && call.in[0].type == call.out[0].type;
}
bool acceptsF32(const KernelCall &call) {
  return call.in[0].type == DType::F32 && call.out[0].type == DType::F32;
}

void prepare(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  ReduceState &s = work.make<ReduceState>();
  s.kind = kindOf(call);
  s.fold = foldOf(s.kind);
  s.hasPlan = axesAreAttributes(call);
  int64_t total = x.elements(), outputs = call.out[0].elements();
  work.bytes = double(dtypeBytes(x.type, total + outputs));
  work.flops = double(total);
  // Where the axes are not known yet, the least number of stripes there can be.
  int64_t stripes = (outputs + kStripe - 1) / kStripe;
  if (s.hasPlan) {
    s.plan = planReduce(x, reducedAxes(call));
    stripes = stripesOf(s.plan);
  }
  work.tiles[0] = uint32_t(std::clamp<int64_t>(std::min(total / kTileElements, stripes), 1, 65536));
  // Too few results to keep threads busy: cut the fold itself, into at most 256 slices.
  if (!s.hasPlan || outputs == 0 || stripes >= 16 || total < 4 * kTileElements ||
      s.kind == ReduceKind::LogSumExp)
    return;
  ReducePlan &p = s.plan;
  p.sliceLength = std::max({kTileElements / outputs, p.folded / 256, int64_t(1)});
  p.slices = (p.folded + p.sliceLength - 1) / p.sliceLength;
  if (p.slices < 2)
    return;
  work.phases = 2;
  work.tiles[0] = uint32_t(p.slices);
  work.tiles[1] = 1;
  work.scratchShared = size_t(p.slices * outputs) * sizeof(int64_t);
}

template <typename F> void withPlan(const KernelCall &call, const ReduceState &s, F f) {
  if (s.hasPlan)
    f(s.plan);
  else
    f(planReduce(call.in[0], reducedAxes(call)));
}

void runAny(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ReduceState &s = work.get<ReduceState>();
  withPlan(call, s, [&](const ReducePlan &p) {
    dispatchNumber(call.in[0].type, [&]<typename T>() {
      reduceRange<T>(call, s, p, ScalarLoops<T>{s.fold}, part, work.tiles[part.phase]);
    });
  });
}

template <const FloatReduce &kSimd>
void runF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ReduceState &s = work.get<ReduceState>();
  withPlan(call, s, [&](const ReducePlan &p) {
    if (isShort(p, s.kind))
      return reduceShort(call, s, p, kSimd, part, work.tiles[part.phase]);
    reduceRange<float>(call, s, p, FloatLoops{s.fold, kSimd}, part, work.tiles[part.phase]);
  });
}

constexpr Kernel kRows[] = {
    {"reduce", "reduce_f32_avx512", Isa::Avx512, acceptsF32, prepare, runF32<kFloatReduceAvx512>},
    {"reduce", "reduce_f32_avx2", Isa::Avx2, acceptsF32, prepare, runF32<kFloatReduceAvx2>},
    {"reduce", "reduce_f32", Isa::Baseline, acceptsF32, prepare, runF32<kFloatReduceBaseline>},
    {"reduce", "reduce_any", Isa::Baseline, acceptsAny, prepare, runAny},
};

} // namespace

std::span<const Kernel> reduceKernelRows() { return kRows; }

} // namespace dspark::reduce_ops

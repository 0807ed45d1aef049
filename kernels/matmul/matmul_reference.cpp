#include "kernels/matmul/matmul_reference.h"
#include "kernels/common/element.h"
#include "kernels/matmul/matmul_plan.h"
#include "kernels/matmul/scalar_activation.h"

namespace dspark {
namespace {

// Integers wrap, as numpy's do; their sums are formed in u64 so that overflow is defined.
template <typename T> using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>;

template <typename T>
void rowOfProduct(const KernelCall &call, const MatmulPlan &plan, int64_t batch, int64_t row) {
  int64_t aOffset, bOffset;
  plan.offsets(batch, aOffset, bOffset);
  const T *a = past(call.in[0].as<T>(), aOffset + row * plan.aRow), *b = past(call.in[1].as<T>(), bOffset);
  int64_t first = (batch * plan.m + row) * plan.n;
  T *y = call.out[0].as<T>() + first;
  for (int64_t n = 0; n < plan.n; ++n) {
    Sum<T> sum = 0;
    // A packed panel holds columns 16 at a time.
    const T *column = past(b, plan.isPacked ? n / 16 * 16 * plan.k + n % 16 : n * plan.bColumn);
    int64_t step = plan.isPacked ? 16 : plan.bTerm;
    for (int64_t k = 0; k < plan.k; ++k)
      sum += Sum<T>(a[k * plan.aTerm]) * Sum<T>(column[k * step]);
    if (call.has(2))
      sum += Sum<T>(call.in[2].as<T>()[n]);
    if (call.has(3))
      sum += Sum<T>(call.in[3].as<T>()[first + n]);
    if constexpr (!std::is_integral_v<T>)
      sum = activateScalar<Sum<T>>(plan.epilogue.activation, sum, plan.epilogue.alpha, plan.epilogue.beta);
    y[n] = T(sum);
  }
}

} // namespace

void prepareMatmulReference(const KernelCall &call, KernelWork &work) {
  MatmulPlan &plan = work.make<MatmulPlan>();
  plan.read(call.in[0], call.in[1], call.out[0], call.attrs.i("trans_a", 0) != 0,
            call.attrs.i("trans_b", 0) != 0, !call.attrs.s("packed", "").empty());
  plan.epilogue.read(call.attrs);
  work.tiles[0] = uint32_t(std::clamp<int64_t>(plan.batches * plan.m, 1, 64));
  work.flops = 2.0 * double(plan.batches) * double(plan.m) * double(plan.n) * double(plan.k);
}

void runMatmulReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const MatmulPlan &plan = work.get<MatmulPlan>();
  int64_t rows = plan.batches * plan.m, tiles = work.tiles[0];
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    for (int64_t row = rows * tile / tiles; row < rows * (tile + 1) / tiles; ++row)
      dispatchNumber(call.in[0].type,
                     [&]<typename T>() { rowOfProduct<T>(call, plan, row / plan.m, row % plan.m); });
}

} // namespace dspark

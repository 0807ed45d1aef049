// einsum by its definition: for each element of the result, the sum over all subscripts that it lacks.
#include "kernels/matmul/einsum.h"
#include "kernels/common/element.h"
#include "kernels/matmul/matmul_reference.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int kMaxLabels = kMaxEinsumOperands * kMaxEinsumRank;

// The subscripts with their sizes, and each operand's stride along each of them (0 where it has none or
// broadcasts).
struct LoopNest {
  Einsum sum;
  int64_t size[kMaxLabels];
  int64_t stride[kMaxEinsumOperands][kMaxLabels];
  int operands;

  explicit LoopNest(const KernelCall &call) : operands(int(call.in.size())) {
    int ranks[kMaxEinsumOperands];
    for (int i = 0; i < operands; ++i)
      ranks[i] = call.in[size_t(i)].rank;
    sum.parse(call.attrs.s("equation", ""), {ranks, size_t(operands)});
    std::fill(size, size + sum.labels, 1);
    for (int i = 0; i < operands; ++i) {
      const TensorView &operand = call.in[size_t(i)];
      std::fill(stride[i], stride[i] + sum.labels, 0);
      int64_t step = 1;
      for (int d = operand.rank - 1; d >= 0; --d) {
        int label = sum.operand[i][d];
        // A subscript that an operand repeats walks its diagonal.
        if (operand.dim(d) != 1) {
          stride[i][label] += step;
          size[label] = operand.dim(d);
        }
        step *= operand.dim(d);
      }
    }
  }
  int64_t terms() const { return product(sum.resultRank, sum.labels); }
  int64_t product(int from, int to) const {
    int64_t n = 1;
    for (int label = from; label < to; ++label)
      n *= size[label];
    return n;
  }
};

template <typename T>
T elementOf(const KernelCall &call, const LoopNest &nest, int64_t index, int64_t terms) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>;
  int64_t at[kMaxEinsumOperands] = {};
  for (int label = nest.sum.resultRank - 1; label >= 0; --label) {
    for (int i = 0; i < nest.operands; ++i)
      at[i] += index % nest.size[label] * nest.stride[i][label];
    index /= nest.size[label];
  }
  int64_t count[kMaxLabels] = {};
  Sum total = 0;
  for (int64_t term = 0; term < terms; ++term) {
    Sum factor = 1;
    for (int i = 0; i < nest.operands; ++i)
      factor *= Sum(call.in[size_t(i)].as<T>()[at[i]]);
    total += factor;
    // The next term: the last subscript runs fastest.
    for (int label = nest.sum.labels - 1; label >= nest.sum.resultRank; --label) {
      bool isDone = ++count[label] == nest.size[label];
      for (int i = 0; i < nest.operands; ++i)
        at[i] += isDone ? -(nest.size[label] - 1) * nest.stride[i][label] : nest.stride[i][label];
      if (!isDone)
        break;
      count[label] = 0;
    }
  }
  return T(total);
}

} // namespace

void prepareEinsum(const KernelCall &call, KernelWork &work) {
  LoopNest nest(call);
  int64_t elements = call.out[0].elements();
  work.flops = 2.0 * double(elements) * double(nest.terms());
  work.tiles[0] =
      uint32_t(std::clamp<int64_t>(int64_t(work.flops / 100e3), 1, std::clamp<int64_t>(elements, 1, 64)));
}

void runEinsum(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  LoopNest nest(call);
  int64_t elements = call.out[0].elements(), tiles = work.tiles[0], terms = nest.terms();
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    dispatchNumber(call.in[0].type, [&]<typename T>() {
      for (int64_t i = elements * tile / tiles; i < elements * (tile + 1) / tiles; ++i)
        call.out[0].as<T>()[i] = elementOf<T>(call, nest, i, terms);
    });
}

} // namespace dspark

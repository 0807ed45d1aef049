// The distinct elements of a tensor, or distinct slices along an axis: entries are sorted by value and
// position, and equal neighbours form a group. One tile: sorting is rarely where a model spends its time.
#include "kernels/common/element.h"
#include "kernels/index/order.h"
#include "kernels/index/rows.h"
#include <algorithm>

namespace dspark::index_ops {
namespace {

// Entries are [outer, count, inner]; entry e is the slice [:, e, :].
struct UniqueState {
  int64_t outer, count, inner;
  int32_t axis; // -1: elements of the flattened tensor
};

bool accepts(const KernelCall &call) {
  return isPlainNumber(call.in[0].type) || call.in[0].type == DType::String;
}

void prepare(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  UniqueState &s = work.make<UniqueState>();
  s = {1, x.elements(), 1, -1};
  if (call.attrs.has("axis")) {
    int64_t axis = call.attrs.i("axis", 0);
    axis += axis < 0 ? x.rank : 0;
    s = {x.elements(0, int(axis)), x.dims[axis], x.elements(int(axis) + 1, x.rank), int32_t(axis)};
  }
  work.scratchShared = size_t(s.count) * 3 * sizeof(int64_t);
  work.bytes = double(dtypeBytes(x.type, x.elements()));
}

// -1, 0 or 1 as entry a comes before, equals or comes behind entry b.
template <typename T> int compare(const T *x, const UniqueState &s, int64_t a, int64_t b) {
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      T u = x[(o * s.count + a) * s.inner + i], v = x[(o * s.count + b) * s.inner + i];
      if (isLess(u, v))
        return -1;
      if (isLess(v, u))
        return 1;
    }
  return 0;
}

int64_t *result(const KernelCall &call, size_t i) {
  return i < call.out.size() && call.out[i].present() ? call.out[i].as<int64_t>() : nullptr;
}

template <typename T> void findUnique(const KernelCall &call, const UniqueState &s, int64_t *scratch) {
  const T *x = call.in[0].as<const T>();
  int64_t *order = scratch, *first = scratch + s.count, *rank = scratch + 2 * s.count;
  for (int64_t e = 0; e < s.count; ++e)
    order[e] = e;
  std::sort(order, order + s.count, [&](int64_t a, int64_t b) {
    int sign = compare(x, s, a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  // first[g]: the first entry of group g, in order of value.
  int64_t groups = 0;
  for (int64_t k = 0; k < s.count; ++k)
    if (k == 0 || compare(x, s, order[k - 1], order[k]) != 0)
      first[groups++] = order[k];
  // Where the groups go: by value, or by first appearance.
  bool byValue = call.attrs.i("sorted", 1) != 0;
  int64_t *inverse = result(call, 2), *counts = result(call, 3);
  if (counts)
    std::fill(counts, counts + groups, 0);
  if (!byValue)
    std::sort(first, first + groups);
  for (int64_t k = 0, group = -1, head = 0; k < s.count; ++k) {
    if (k == 0 || compare(x, s, order[k - 1], order[k]) != 0) {
      head = order[k];
      group = byValue ? group + 1 : std::lower_bound(first, first + groups, head) - first;
    }
    rank[order[k]] = group;
  }
  for (int64_t e = 0; e < s.count; ++e) {
    if (inverse)
      inverse[e] = rank[e];
    if (counts)
      ++counts[rank[e]];
  }
  if (int64_t *indices = result(call, 1))
    std::copy(first, first + groups, indices);
  T *y = call.out[0].as<T>();
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < s.inner; ++i)
        y[(o * groups + g) * s.inner + i] = x[(o * s.count + first[g]) * s.inner + i];
  if (!call.outDims)
    return;
  for (int i = 0; i < call.out[0].rank; ++i)
    call.outDims[0][i] = call.out[0].dims[i];
  call.outDims[0][std::max(s.axis, 0)] = groups;
  for (size_t i = 1; i < call.out.size(); ++i)
    if (result(call, i))
      call.outDims[i][0] = i == 2 ? s.count : groups;
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  if (call.in[0].type == DType::String)
    return findUnique<StringElement>(call, work.get<UniqueState>(), reinterpret_cast<int64_t *>(part.shared));
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    findUnique<T>(call, work.get<UniqueState>(), reinterpret_cast<int64_t *>(part.shared));
  });
}

constexpr Kernel kRows[] = {{"unique", "unique_any", Isa::Baseline, accepts, prepare, run}};

} // namespace

std::span<const Kernel> uniqueKernels() { return kRows; }

} // namespace dspark::index_ops

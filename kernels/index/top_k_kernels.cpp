// The k largest (or smallest) elements of each line along an axis, best first, ties to the lower index. A
// short list is kept sorted while the line is scanned, which costs one comparison for most elements; longer
// ones select first and sort then.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/element.h"
#include "kernels/index/order.h"
#include "kernels/index/rows.h"

namespace dspark::index_ops {
namespace {

constexpr int64_t kShortList = 32;

struct TopKState {
  int64_t outer, size, inner, k;
  bool largest;
};

template <typename T> struct Entry {
  T value;
  int64_t index;
};

bool accepts(const KernelCall &call) { return isPlainNumber(call.in[0].type); }

void prepare(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  int64_t axis = call.attrs.i("axis", -1);
  axis += axis < 0 ? x.rank : 0;
  TopKState &s = work.make<TopKState>();
  s = {x.elements(0, int(axis)), x.dims[axis], x.elements(int(axis) + 1, x.rank), call.out[0].dims[axis],
       call.attrs.i("largest", 1) != 0};
  int64_t bytes = dtypeBytes(x.type, x.elements());
  work.tiles[0] = uint32_t(std::clamp<int64_t>(s.outer * s.inner, 1, tilesForBytes(bytes)));
  work.scratchPerThread = size_t(s.k <= kShortList ? kShortList : s.size) * sizeof(Entry<uint64_t>);
  work.bytes = double(bytes);
}

// Writes the best k of n elements at x, stride apart, to list.
template <typename T, typename Better>
void select(const T *x, int64_t stride, int64_t n, int64_t k, Entry<T> *list, Better better) {
  if (k > kShortList) {
    for (int64_t i = 0; i < n; ++i)
      list[i] = {x[i * stride], i};
    if (k < n)
      std::nth_element(list, list + k, list + n, better);
    std::sort(list, list + k, better);
    return;
  }
  int64_t held = 0;
  for (int64_t i = 0; i < n; ++i) {
    Entry<T> entry = {x[i * stride], i};
    if (held == k && (k == 0 || !better(entry, list[k - 1])))
      continue;
    int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && better(entry, list[at - 1]); --at)
      list[at] = list[at - 1];
    list[at] = entry;
  }
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TopKState &s = work.get<TopKState>();
  RowRange lines(s.outer * s.inner, work.tiles[0], part);
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    auto larger = [](const Entry<T> &a, const Entry<T> &b) {
      return isLess(b.value, a.value) || (!isLess(a.value, b.value) && a.index < b.index);
    };
    auto smaller = [](const Entry<T> &a, const Entry<T> &b) {
      return isLess(a.value, b.value) || (!isLess(b.value, a.value) && a.index < b.index);
    };
    Entry<T> *list = reinterpret_cast<Entry<T> *>(part.scratch);
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      int64_t o = line / s.inner, i = line % s.inner;
      const T *x = call.in[0].as<const T>() + o * s.size * s.inner + i;
      if (s.largest)
        select(x, s.inner, s.size, s.k, list, larger);
      else
        select(x, s.inner, s.size, s.k, list, smaller);
      for (int64_t j = 0; j < s.k; ++j) {
        int64_t to = (o * s.k + j) * s.inner + i;
        call.out[0].as<T>()[to] = list[j].value;
        if (call.out.size() > 1 && call.out[1].present())
          call.out[1].as<int64_t>()[to] = list[j].index;
      }
    }
  });
}

constexpr Kernel kRows[] = {{"top_k", "top_k_any", Isa::Baseline, accepts, prepare, run}};

} // namespace

std::span<const Kernel> topKKernels() { return kRows; }

} // namespace dspark::index_ops

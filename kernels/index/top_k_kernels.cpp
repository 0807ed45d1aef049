// The k largest (or smallest) elements of each line along an axis, best first, ties to the lower index. A
// list of candidates is kept while the line is scanned; once it has its bound, whole blocks without a better
// element are passed over.
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

// Entries that a list for the best k of n holds.
int64_t listRoom(int64_t n, int64_t k) {
  return k <= kShortList ? kShortList : std::min(n, std::max<int64_t>(2 * k, 1024));
}

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
  work.scratchPerThread = size_t(listRoom(s.size, s.k)) * sizeof(Entry<uint64_t>);
  work.bytes = double(bytes);
}

// Whether one of n elements may have a place among the best, of which `bound` is the last; NaN always may.
template <typename T> bool anyBetter(const T *x, int64_t n, T bound, bool largest) {
  int found = 0;
  if (largest)
    for (int64_t i = 0; i < n; ++i)
      found |= !(x[i] <= bound);
  else
    for (int64_t i = 0; i < n; ++i)
      found |= !(x[i] >= bound);
  return found != 0;
}

// Calls visit(entry) for the elements that may be among the best k, in order. bound() is the entry that a
// later one has to beat, or null while all are wanted; equal values do not, since theirs is the higher index.
template <typename T, typename Bound, typename Visit>
void forCandidates(const T *x, int64_t stride, int64_t n, bool largest, Bound bound, Visit visit) {
  constexpr int64_t kBlock = 64;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int64_t end = std::min(begin + kBlock, n);
    const Entry<T> *least = bound();
    if (stride == 1 && least && !anyBetter(x + begin, end - begin, least->value, largest))
      continue;
    for (int64_t i = begin; i < end; ++i)
      visit(Entry<T>{x[i * stride], i});
  }
}

// Keeps the best k in order, which costs nothing for most elements.
template <typename T, typename Better>
void selectFew(const T *x, int64_t stride, int64_t n, int64_t k, bool largest, Entry<T> *list,
               Better better) {
  int64_t held = 0;
  auto bound = [&]() -> const Entry<T> * { return held == k ? list + k - 1 : nullptr; };
  forCandidates(x, stride, n, largest, bound, [&](const Entry<T> &entry) {
    if (held == k && !better(entry, list[k - 1]))
      return;
    int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && better(entry, list[at - 1]); --at)
      list[at] = list[at - 1];
    list[at] = entry;
  });
}

// Keeps the best k and whatever came since; when the list is full, the best k are selected anew.
template <typename T, typename Better>
void selectMany(const T *x, int64_t stride, int64_t n, int64_t k, bool largest, Entry<T> *list,
                Better better) {
  int64_t room = listRoom(n, k), held = 0;
  bool hasBound = false; // list[k - 1] is the worst of the best k so far
  auto prune = [&] {
    if (held > k)
      std::nth_element(list, list + k - 1, list + held, better);
    hasBound = held > k;
    held = std::min(held, k);
  };
  auto bound = [&]() -> const Entry<T> * { return hasBound ? list + k - 1 : nullptr; };
  forCandidates(x, stride, n, largest, bound, [&](const Entry<T> &entry) {
    if (hasBound && !better(entry, list[k - 1]))
      return;
    if (held == room)
      prune();
    list[held++] = entry;
  });
  prune();
  std::sort(list, list + k, better);
}

// Writes the best k of n elements at x, stride apart, to list.
template <typename T, typename Better>
void select(const T *x, int64_t stride, int64_t n, int64_t k, bool largest, Entry<T> *list, Better better) {
  if (k == 0)
    return;
  if (k <= kShortList)
    selectFew(x, stride, n, k, largest, list, better);
  else
    selectMany(x, stride, n, k, largest, list, better);
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
        select(x, s.inner, s.size, s.k, true, list, larger);
      else
        select(x, s.inner, s.size, s.k, false, list, smaller);
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

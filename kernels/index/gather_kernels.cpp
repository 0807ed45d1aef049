// Gathers move bytes: one kernel per operator serves every type. Kernels cannot fail, so an index outside the
// tensor is defined to read zeros.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/index/rows.h"
#include "kernels/movement/strided_copy.h"

namespace dspark::index_ops {
namespace {

using movement::copyRun;
using movement::dispatchBytes;

int64_t axisOf(const KernelCall &call, int64_t otherwise) {
  int64_t axis = call.attrs.i("axis", otherwise);
  return axis < 0 ? axis + call.in[0].rank : axis;
}

// --- gather: the result is rows of `rowBytes`, one for each outer index and each entry of the indices ---

struct GatherState {
  int64_t dim, count; // of x along the axis; entries of the indices
  ByteTiles rows;
};

bool acceptsGather(const KernelCall &call) {
  const TensorView &x = call.in[0];
  int64_t bits = x.elements(int(axisOf(call, 0)) + 1, x.rank) * dtypeBits(x.type);
  return isIndexType(call.in[1].type) && dtypeBits(x.type) > 0 && bits % 8 == 0;
}

void prepareGather(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  int axis = int(axisOf(call, 0));
  GatherState &s = work.make<GatherState>();
  s.dim = x.dims[axis];
  s.count = call.in[1].elements();
  s.rows = ByteTiles(x.elements(0, axis) * s.count, dtypeBytes(x.type, x.elements(axis + 1, x.rank)));
  work.tiles[0] = s.rows.tiles();
  work.bytes = double(s.rows.total) * 2;
}

// Rows of one element: the places of a block of entries serve all outer indices of the part. -1 is outside.
template <typename T>
void gatherElements(const KernelCall &call, const GatherState &s, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 512;
  int64_t places[kBlock];
  const T *x = call.in[0].as<const T>();
  T *y = call.out[0].as<T>();
  for (int64_t first = 0; first < s.count; first += kBlock) {
    int64_t n = std::min(kBlock, s.count - first);
    for (int64_t j = 0; j < n; ++j) {
      int64_t index = intAt(call.in[1], first + j);
      index += index < 0 ? s.dim : 0;
      places[j] = index >= 0 && index < s.dim ? index : -1;
    }
    for (int64_t outer = begin / s.count; outer * s.count < end; ++outer) {
      const T *from = x + outer * s.dim;
      T *to = y + outer * s.count + first;
      int64_t stop = std::min(n, end - outer * s.count - first);
      for (int64_t j = std::max<int64_t>(0, begin - outer * s.count - first); j < stop; ++j)
        to[j] = places[j] < 0 ? T() : from[places[j]];
    }
  }
}

void runGather(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const GatherState &s = work.get<GatherState>();
  int64_t bytes = s.rows.rowBytes;
  if (bytes <= 16 && (bytes & (bytes - 1)) == 0)
    return dispatchBytes(int(bytes), [&]<typename T>() {
      gatherElements<T>(call, s, s.rows.begin(part) / bytes, s.rows.end(part) / bytes);
    });
  const char *x = call.in[0].as<const char>();
  char *y = call.out[0].as<char>();
  s.rows.forRows(part, [&](int64_t row, int64_t at, int64_t bytes) {
    int64_t index = intAt(call.in[1], row % s.count);
    index += index < 0 ? s.dim : 0;
    char *to = y + row * s.rows.rowBytes + at;
    if (index < 0 || index >= s.dim)
      __builtin_memset(to, 0, size_t(bytes));
    else
      copyRun(to, x + (row / s.count * s.dim + index) * s.rows.rowBytes + at, bytes);
  });
}

// --- gather_elements: y has the indices' dims ---

bool acceptsElements(const KernelCall &call) {
  return isIndexType(call.in[1].type) && dtypeBits(call.in[0].type) >= 8;
}

void prepareElements(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.out[0].type, call.out[0].elements());
  work.tiles[0] = tilesForBytes(bytes);
  work.bytes = double(bytes) * 2;
}

template <typename T>
void gatherRow(const TensorView &x, const TensorView &indices, int axis, int64_t row, T *y) {
  int last = x.rank - 1;
  int64_t n = indices.dims[last], base = 0, stride = 1, axisStride = 1, rest = row;
  for (int i = last; i >= 0; --i) {
    int64_t at = i == last || i == axis ? 0 : rest % indices.dims[i];
    rest = i == last ? rest : rest / indices.dims[i];
    base += at * stride;
    axisStride = i == axis ? stride : axisStride;
    stride *= x.dims[i];
  }
  const T *from = x.as<const T>() + base;
  for (int64_t j = 0; j < n; ++j) {
    int64_t index = intAt(indices, row * n + j);
    index += index < 0 ? x.dims[axis] : 0;
    bool isInside = index >= 0 && index < x.dims[axis];
    y[row * n + j] = isInside ? from[index * axisStride + (axis == last ? 0 : j)] : T();
  }
}

void runElements(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0], &indices = call.in[1];
  int64_t count = indices.elements();
  if (count == 0)
    return;
  RowRange range(count / indices.dims[indices.rank - 1], work.tiles[0], part);
  int axis = int(axisOf(call, 0));
  dispatchBytes(dtypeBits(x.type) / 8, [&]<typename T>() {
    for (int64_t row = range.begin; row < range.end; ++row)
      gatherRow(x, indices, axis, row, call.out[0].as<T>());
  });
}

// --- gather_nd: the last dim of the indices holds coordinates of a slice of x ---

struct GatherNdState {
  int64_t batch, depth, perBatch; // batch dims, coordinates per index, indices per batch
  int64_t batchElements;          // of x
  ByteTiles rows;
};

bool acceptsNd(const KernelCall &call) {
  const TensorView &x = call.in[0], &indices = call.in[1];
  int first = int(call.attrs.i("batch_dims", 0) + indices.dims[indices.rank - 1]);
  return isIndexType(indices.type) && dtypeBits(x.type) > 0 &&
         x.elements(first, x.rank) * dtypeBits(x.type) % 8 == 0;
}

void prepareNd(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0], &indices = call.in[1];
  GatherNdState &s = work.make<GatherNdState>();
  s.batch = call.attrs.i("batch_dims", 0);
  s.depth = indices.dims[indices.rank - 1];
  int64_t count = indices.elements(0, indices.rank - 1);
  s.perBatch = std::max<int64_t>(indices.elements(int(s.batch), indices.rank - 1), 1);
  s.batchElements = x.elements(int(s.batch), x.rank);
  s.rows = ByteTiles(count, dtypeBytes(x.type, x.elements(int(s.batch + s.depth), x.rank)));
  work.tiles[0] = s.rows.tiles();
  work.bytes = double(s.rows.total) * 2;
}

void runNd(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const GatherNdState &s = work.get<GatherNdState>();
  const TensorView &x = call.in[0];
  s.rows.forRows(part, [&](int64_t row, int64_t at, int64_t bytes) {
    int64_t slice = 0;
    bool isInside = true;
    for (int64_t k = 0; k < s.depth; ++k) {
      int64_t dim = x.dims[s.batch + k], index = intAt(call.in[1], row * s.depth + k);
      index += index < 0 ? dim : 0;
      isInside &= index >= 0 && index < dim;
      slice = slice * dim + (isInside ? index : 0);
    }
    char *to = call.out[0].as<char>() + row * s.rows.rowBytes + at;
    int64_t batchBytes = dtypeBytes(x.type, s.batchElements);
    if (isInside)
      copyRun(to, x.as<const char>() + row / s.perBatch * batchBytes + slice * s.rows.rowBytes + at, bytes);
    else
      __builtin_memset(to, 0, size_t(bytes));
  });
}

constexpr Kernel kRows[] = {
    {"gather", "gather_bytes", Isa::Baseline, acceptsGather, prepareGather, runGather},
    {"gather_elements", "gather_elements_bytes", Isa::Baseline, acceptsElements, prepareElements,
     runElements},
    {"gather_nd", "gather_nd_bytes", Isa::Baseline, acceptsNd, prepareNd, runNd},
};

} // namespace

std::span<const Kernel> gatherKernels() { return kRows; }

} // namespace dspark::index_ops

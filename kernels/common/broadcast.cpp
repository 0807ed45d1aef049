#include "kernels/common/broadcast.h"
#include <cstring>

namespace dspark {
namespace {

/// Row-major strides of an operand along the result's dims, 0 where it is broadcast.
void broadcastStrides(const TensorView &out, const TensorView &operand, int64_t *strides) {
  int64_t stride = 1;
  int offset = out.rank - operand.rank;
  for (int i = out.rank; i-- > 0;) {
    bool has = i >= offset && operand.dim(i - offset) != 1;
    strides[i] = has ? stride : 0;
    stride *= i >= offset ? operand.dim(i - offset) : 1;
  }
}

template <typename T>
void gatherRows(const T *base, const int64_t *dims, const int64_t *strides, int rank, int64_t begin,
                int64_t n, T *out) {
  int64_t index[kMaxRank], offset = 0, rest = begin;
  for (int i = rank; i-- > 0; rest /= dims[i]) {
    index[i] = rest % dims[i];
    offset += index[i] * strides[i];
  }
  int last = rank - 1;
  while (n > 0) {
    int64_t length = std::min(n, dims[last] - index[last]);
    const T *row = base + offset;
    if (strides[last] == 0)
      std::fill_n(out, length, *row);
    else
      for (int64_t k = 0; k < length; ++k)
        out[k] = row[k];
    out += length;
    n -= length;
    // To the start of the next row: finish this dim, then carry outwards.
    offset -= index[last] * strides[last];
    index[last] = 0;
    for (int i = last - 1; i >= 0; --i) {
      offset += strides[i];
      if (++index[i] < dims[i])
        break;
      offset -= dims[i] * strides[i];
      index[i] = 0;
    }
  }
}

struct Bytes16 {
  uint64_t low, high;
};

} // namespace

int collapseLoops(const TensorView &out, std::span<const TensorView> operands, int64_t *dims,
                  int64_t (*strides)[kMaxRank]) {
  for (size_t k = 0; k < operands.size(); ++k)
    broadcastStrides(out, operands[k], strides[k]);
  // dims[0, rank) are the collapsed loops so far; a dim that continues the last one in every operand joins
  // it.
  int rank = 0;
  for (int i = 0; i < out.rank; ++i) {
    int64_t size = out.dim(i);
    if (size == 1)
      continue;
    bool joins = rank > 0;
    for (size_t k = 0; k < operands.size() && joins; ++k)
      joins = strides[k][rank - 1] == strides[k][i] * size;
    if (!joins)
      ++rank;
    dims[rank - 1] = joins ? dims[rank - 1] * size : size;
    for (size_t k = 0; k < operands.size(); ++k)
      strides[k][rank - 1] = strides[k][i];
  }
  if (rank > 0)
    return rank;
  dims[0] = 1;
  for (size_t k = 0; k < operands.size(); ++k)
    strides[k][0] = 0;
  return 1;
}

BlockReader::BlockReader(const void *base, size_t elementBytes, const int64_t *dims, const int64_t *strides,
                         int rank, void *buffer)
    : base(static_cast<const std::byte *>(base)), elementBytes(elementBytes), dims(dims), strides(strides),
      rank(rank), buffer(buffer), run(dims[rank - 1]), repeatsRow(strides[rank - 1] == 1), held(0) {
  for (int i = rank - 2; i >= 0 && strides[i] == strides[i + 1] * dims[i + 1]; --i)
    run *= dims[i];
  for (int i = 0; i + 1 < rank; ++i)
    repeatsRow = repeatsRow && strides[i] == 0;
}

BlockOperand BlockReader::read(int64_t begin, int64_t n) {
  int64_t inner = dims[rank - 1], first = begin % inner;
  if (repeatsRow && first == 0 && n <= held)
    return {buffer, false};
  if (begin % run + n <= run) {
    int64_t offset = first * strides[rank - 1], rest = begin / inner;
    for (int i = rank - 1; i-- > 0; rest /= dims[i])
      offset += rest % dims[i] * strides[i];
    return {base + size_t(offset) * elementBytes, strides[rank - 1] == 0};
  }
  held = repeatsRow && first == 0 ? n : 0;
  return gather(begin, n);
}

BlockOperand BlockReader::gather(int64_t begin, int64_t n) {
  auto as = [&]<typename T>() {
    gatherRows(reinterpret_cast<const T *>(base), dims, strides, rank, begin, n, static_cast<T *>(buffer));
  };
  switch (elementBytes) {
  case 1:
    as.template operator()<uint8_t>();
    break;
  case 2:
    as.template operator()<uint16_t>();
    break;
  case 4:
    as.template operator()<uint32_t>();
    break;
  case 8:
    as.template operator()<uint64_t>();
    break;
  default:
    as.template operator()<Bytes16>();
    break;
  }
  return {buffer, false};
}

void prepareElementwise(const KernelCall &call, KernelWork &work, double flopsPerElement) {
  int64_t total = call.out[0].elements();
  work.tiles[0] = uint32_t(std::max<int64_t>(1, (total + kElementwiseTile - 1) / kElementwiseTile));
  work.flops = flopsPerElement * double(total);
  for (const TensorView &view : call.in)
    work.bytes += view.present() ? double(dtypeBytes(view.type, view.elements())) : 0;
  for (const TensorView &view : call.out)
    work.bytes += view.present() ? double(dtypeBytes(view.type, view.elements())) : 0;
}

} // namespace dspark

#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {

void StridedCopy::add(int64_t axisSize, int64_t fromStride, int64_t toStride) {
  isEmpty |= axisSize == 0;
  if (axisSize == 1)
    return;
  int last = rank - 1;
  if (rank > 0 && from[last] == axisSize * fromStride && to[last] == axisSize * toStride) {
    size[last] *= axisSize;
    from[last] = fromStride;
    to[last] = toStride;
    return;
  }
  fits = fits && rank < kMaxCopyAxes;
  if (!fits)
    return;
  size[rank] = axisSize;
  from[rank] = fromStride;
  to[rank] = toStride;
  ++rank;
}

CopyLoop::CopyLoop(const StridedCopy &given, int bytes) : copy(given), elementBytes(bytes) {
  if (copy.rank == 0 || copy.isEmpty) {
    copy.rank = 1;
    copy.size[0] = copy.isEmpty ? 0 : 1;
    copy.from[0] = copy.to[0] = 1;
  }
  int last = copy.rank - 1;
  source = -1;
  chunksSource = 1;
  kind = copy.to[last] != 1     ? Kind::Strided
         : copy.from[last] == 1 ? Kind::Run
         : copy.from[last] == 0 ? Kind::Fill
                                : Kind::Strided;
  chunk = std::max<int64_t>(kPieceBytes / bytes, 1);
  if (kind == Kind::Strided && copy.to[last] == 1)
    for (int axis = 0; axis < last; ++axis)
      if (copy.from[axis] == 1 && copy.size[axis] > 2) {
        kind = Kind::Transpose;
        source = int8_t(axis);
        chunksSource = (copy.size[axis] + kTransposeBlock - 1) / kTransposeBlock;
        // A narrow source axis is compensated by a longer block along the other.
        int64_t width = std::min(copy.size[axis], kTransposeBlock);
        chunk = (kPieceBytes / 2 / bytes / width + kTransposeBlock - 1) / kTransposeBlock * kTransposeBlock;
      }
  chunk = std::min(chunk, std::max<int64_t>(copy.size[last], 1));
  chunks = (copy.size[last] + chunk - 1) / chunk;
  units = chunks * chunksSource;
  for (int axis = 0; axis < last; ++axis)
    if (axis != source)
      units *= copy.size[axis];
}

int64_t CopyLoop::unitsPerTile() const {
  int64_t elements = chunk * (source < 0 ? 1 : std::min(copy.size[source], kTransposeBlock));
  int64_t perTile = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, elements * elementBytes));
  // Tile numbers have 32 bits.
  return std::max(perTile, units / (int64_t(1) << 30));
}

uint32_t CopyLoop::tiles() const {
  int64_t perTile = unitsPerTile();
  return uint32_t((units + perTile - 1) / perTile);
}

void CopyLoop::run(const void *src, void *dst, uint32_t tileBegin, uint32_t tileEnd) const {
  int64_t perTile = unitsPerTile();
  int64_t begin = tileBegin * perTile, end = std::min(units, tileEnd * perTile);
  const char *from = static_cast<const char *>(src);
  char *to = static_cast<char *>(dst);
  if (chunks == 1 && kind != Kind::Transpose)
    runRows(from, to, begin, end);
  else
    runPieces(from, to, begin, end);
}

namespace {

// n elements from one strided line to a line of stride `to`.
template <typename T> void copyLine(const T *src, T *dst, int64_t n, int64_t from, int64_t to) {
  if (from == 0 && to == 1) {
    T value = *src;
    for (int64_t i = 0; i < n; ++i)
      dst[i] = value;
  } else if (to == 1) {
    for (int64_t i = 0; i < n; ++i)
      dst[i] = src[i * from];
  } else {
    for (int64_t i = 0; i < n; ++i)
      dst[i * to] = src[i * from];
  }
}

template <typename T> struct Lanes {
  typedef T vector __attribute__((ext_vector_type(16 / sizeof(T))));
  typedef T unaligned __attribute__((ext_vector_type(16 / sizeof(T)), aligned(1)));
};

// dst[j * to + i] = src[i * from + j] for N x N elements of N * sizeof(T) = 16 bytes a row. log2(N) rounds of
// interleaving row i with row i + N/2 transpose the block.
template <typename T> inline void transposeBlock(const T *src, int64_t from, T *dst, int64_t to) {
  constexpr int N = 16 / sizeof(T);
  using V = typename Lanes<T>::vector;
  using U = typename Lanes<T>::unaligned;
  V rows[N], next[N];
  for (int i = 0; i < N; ++i)
    rows[i] = *reinterpret_cast<const U *>(src + i * from);
  for (int round = 1; round < N; round *= 2) {
    for (int i = 0; i < N / 2; ++i) {
      V a = rows[i], b = rows[i + N / 2];
      if constexpr (N == 16) {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        next[2 * i + 1] =
            __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      } else if constexpr (N == 8) {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      } else if constexpr (N == 4) {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      } else {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 2);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 1, 3);
      }
    }
    for (int i = 0; i < N; ++i)
      rows[i] = next[i];
  }
  for (int j = 0; j < N; ++j)
    *reinterpret_cast<U *>(dst + j * to) = rows[j];
}

// A few long rows become short ones (colour planes become pixels).
template <int kRows, typename T>
void interleave(const T *src, int64_t from, T *dst, int64_t to, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j)
    for (int i = 0; i < kRows; ++i)
      dst[j * to + i] = src[i * from + j];
}

// dst[j * to + i] = src[i * from + j] for i < rows, j < columns.
template <typename T>
void transposePiece(const T *src, int64_t from, T *dst, int64_t to, int64_t rows, int64_t columns) {
  if (rows == 3)
    return to == 3 ? interleave<3>(src, from, dst, 3, columns) : interleave<3>(src, from, dst, to, columns);
  if constexpr (sizeof(T) <= 8) {
    constexpr int64_t N = 16 / sizeof(T);
    int64_t wholeRows = columns >= N ? rows / N * N : 0, wholeColumns = columns / N * N;
    // Squares of a cache line each way, so that lines are used whole while they are near.
    constexpr int64_t kSquare = 64 / sizeof(T);
    for (int64_t i0 = 0; i0 < wholeRows; i0 += kSquare)
      for (int64_t j0 = 0; j0 < wholeColumns; j0 += kSquare)
        for (int64_t i = i0; i < std::min(i0 + kSquare, wholeRows); i += N)
          for (int64_t j = j0; j < std::min(j0 + kSquare, wholeColumns); j += N)
            transposeBlock(src + i * from + j, from, dst + j * to + i, to);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = j < wholeColumns ? wholeRows : 0; i < rows; ++i)
        dst[j * to + i] = src[i * from + j];
  } else {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i)
        dst[j * to + i] = src[i * from + j];
  }
}

// `count` runs of a fixed number of bytes.
template <int64_t kBytes> void copyRuns(const char *src, char *dst, int64_t count, int64_t from, int64_t to) {
  for (int64_t i = 0; i < count; ++i)
    __builtin_memcpy(dst + i * to, src + i * from, kBytes);
}

} // namespace

void copyRuns(const char *src, char *dst, int64_t count, int64_t from, int64_t to, int64_t bytes) {
  switch (bytes) {
  case 1:
    return copyRuns<1>(src, dst, count, from, to);
  case 2:
    return copyRuns<2>(src, dst, count, from, to);
  case 4:
    return copyRuns<4>(src, dst, count, from, to);
  case 8:
    return copyRuns<8>(src, dst, count, from, to);
  case 16:
    return copyRuns<16>(src, dst, count, from, to);
  case 32:
    return copyRuns<32>(src, dst, count, from, to);
  case 64:
    return copyRuns<64>(src, dst, count, from, to);
  case 128:
    return copyRuns<128>(src, dst, count, from, to);
  default:
    for (int64_t i = 0; i < count; ++i)
      __builtin_memcpy(dst + i * to, src + i * from, size_t(bytes));
  }
}

// Rows of the last axis, one unit each; the axis before it is a tight loop.
void CopyLoop::runRows(const char *src, char *dst, int64_t begin, int64_t end) const {
  int last = copy.rank - 1, outer = last - 1;
  int64_t index[kMaxCopyAxes] = {}, rest = begin;
  for (int axis = outer; axis >= 0; --axis) {
    index[axis] = rest % copy.size[axis];
    rest /= copy.size[axis];
  }
  int64_t n = copy.size[last], from = copy.from[last], to = copy.to[last];
  while (begin < end) {
    int64_t at = 0, target = 0;
    for (int axis = 0; axis <= outer; ++axis) {
      at += index[axis] * copy.from[axis];
      target += index[axis] * copy.to[axis];
    }
    int64_t count = outer < 0 ? 1 : std::min(copy.size[outer] - index[outer], end - begin);
    int64_t stepFrom = outer < 0 ? 0 : copy.from[outer], stepTo = outer < 0 ? 0 : copy.to[outer];
    if (kind == Kind::Run)
      copyRuns(src + at * elementBytes, dst + target * elementBytes, count, stepFrom * elementBytes,
               stepTo * elementBytes, n * elementBytes);
    else
      dispatchBytes(elementBytes, [&]<typename T>() {
        for (int64_t i = 0; i < count; ++i)
          copyLine(reinterpret_cast<const T *>(src) + at + i * stepFrom,
                   reinterpret_cast<T *>(dst) + target + i * stepTo, n, from, to);
      });
    begin += count;
    if (outer < 0)
      break;
    index[outer] += count;
    for (int axis = outer; axis > 0 && index[axis] == copy.size[axis]; --axis) {
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
}

// Pieces of long rows, and blocks of transposes: units are big enough to be located one by one.
void CopyLoop::runPieces(const char *src, char *dst, int64_t begin, int64_t end) const {
  int last = copy.rank - 1;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t start = unit % chunks * chunk, rest = unit / chunks;
    int64_t startSource = rest % chunksSource * kTransposeBlock;
    rest /= chunksSource;
    int64_t at = start * copy.from[last], target = start * copy.to[last];
    for (int axis = last - 1; axis >= 0; --axis) {
      int64_t index = axis == source ? startSource : rest % copy.size[axis];
      rest = axis == source ? rest : rest / copy.size[axis];
      at += index * copy.from[axis];
      target += index * copy.to[axis];
    }
    int64_t n = std::min(chunk, copy.size[last] - start);
    if (kind == Kind::Run) {
      __builtin_memcpy(dst + target * elementBytes, src + at * elementBytes, size_t(n * elementBytes));
      continue;
    }
    dispatchBytes(elementBytes, [&]<typename T>() {
      const T *s = reinterpret_cast<const T *>(src) + at;
      T *d = reinterpret_cast<T *>(dst) + target;
      if (kind == Kind::Transpose)
        transposePiece(s, copy.from[last], d, copy.to[source], n,
                       std::min(kTransposeBlock, copy.size[source] - startSource));
      else
        copyLine(s, d, n, copy.from[last], copy.to[last]);
    });
  }
}

void copyPacked(const StridedCopy &copy, int bits, const void *src, int64_t srcOffset, void *dst,
                int64_t dstOffset) {
  if (copy.isEmpty)
    return;
  int perByte = 8 / bits;
  uint8_t mask = uint8_t((1 << bits) - 1);
  const uint8_t *from = static_cast<const uint8_t *>(src);
  uint8_t *to = static_cast<uint8_t *>(dst);
  int64_t index[kMaxCopyAxes] = {};
  while (true) {
    int64_t at = srcOffset, target = dstOffset;
    for (int axis = 0; axis < copy.rank; ++axis) {
      at += index[axis] * copy.from[axis];
      target += index[axis] * copy.to[axis];
    }
    int shift = int(target % perByte) * bits;
    uint8_t value = from[at / perByte] >> (at % perByte * bits) & mask;
    uint8_t &cell = to[target / perByte];
    cell = uint8_t((cell & ~(mask << shift)) | (value << shift));
    int axis = copy.rank - 1;
    while (axis >= 0 && ++index[axis] == copy.size[axis])
      index[axis--] = 0;
    if (axis < 0)
      return;
  }
}

} // namespace dspark::movement

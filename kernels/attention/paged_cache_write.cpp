// paged_cache_write: the new rows of a batch's tokens go to their places in a paged cache, rounded to its
// type; i8 caches keep one scale per row, its largest magnitude / 127. Operands: paged_shape.cpp; layout:
// paged.h.
//
// Where the result is another buffer than the cache, a first phase copies the cache. A tile of the phase that
// writes is a key head, which takes the rows in order, so that of rows with one place the last remains.
#include "kernels/attention/attention_kernel.h"
#include "kernels/attention/paged.h"
#include "kernels/common/byte_tiles.h"
#include "kernels/common/element.h"
#include <cmath>
#include <cstring>

namespace dspark {
namespace {

struct WriteState {
  ByteTiles cache, scales;
  bool copies;
};

void copyTiles(const TensorView &from, const TensorView &to, const ByteTiles &tiles, const KernelPart &part) {
  if (from.data != to.data && tiles.end(part) > tiles.begin(part))
    std::memcpy(to.as<char>() + tiles.begin(part), from.as<const char>() + tiles.begin(part),
                size_t(tiles.end(part) - tiles.begin(part)));
}

template <typename T>
void writeRow(const T *row, int64_t width, const TensorView &cache, int64_t at, float *scales) {
  if (cache.type != DType::I8) {
    dispatchFloat(cache.type, [&]<typename C>() {
      for (int64_t c = 0; c < width; ++c)
        cache.as<C>()[at * width + c] = C(float(row[c]));
    });
    return;
  }
  float largest = 0;
  for (int64_t c = 0; c < width; ++c)
    largest = std::max(largest, std::fabs(float(row[c]))); // passes over NaN, which becomes 0
  largest = std::min(largest, std::numeric_limits<float>::max());
  scales[at] = largest / 127;
  float inverse = largest > 0 ? 127 / largest : 0;
  for (int64_t c = 0; c < width; ++c)
    cache.as<int8_t>()[at * width + c] = saturate<int8_t>(std::nearbyint(float(row[c]) * inverse));
}

} // namespace

void preparePagedCacheWrite(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<WriteState>();
  const TensorView &cache = call.in[0];
  s.cache = ByteTiles(1, dtypeBytes(cache.type, cache.elements()));
  s.scales = ByteTiles(1, call.has(5) ? dtypeBytes(DType::F32, call.in[5].elements()) : 0);
  s.copies = call.in[0].data != call.out[0].data || (call.has(5) && call.in[5].data != call.out[1].data);
  work.phases = s.copies ? 2 : 1;
  work.tiles[0] = s.cache.tiles() + s.scales.tiles();
  work.tiles[work.phases - 1] = uint32_t(cache.dim(1));
  work.bytes = 2 * double(dtypeBytes(cache.type, call.in[1].elements()));
}

void runPagedCacheWrite(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<WriteState>();
  const TensorView &rows = call.in[1], &cache = call.out[0];
  if (s.copies && part.phase == 0) {
    uint32_t split = s.cache.tiles();
    KernelPart first = part, second = part;
    first.begin = std::min(part.begin, split), first.end = std::min(part.end, split);
    second.begin = std::max(part.begin, split) - split, second.end = std::max(part.end, split) - split;
    copyTiles(call.in[0], cache, s.cache, first);
    if (call.has(5))
      copyTiles(call.in[5], call.out[1], s.scales, second);
    return;
  }
  BatchLayout layout(call, 2, cache, rows.dim(0));
  float *scales = call.has(5) ? call.out[1].as<float>() : nullptr;
  int64_t heads = rows.dim(1), width = rows.dim(2);
  layout.forSequences([&](const BatchLayout::Sequence &sequence) {
    for (int64_t t = sequence.begin; t < sequence.end; ++t) {
      int64_t place = sequence.position(t);
      if (place < 0)
        continue;
      int64_t page = layout.page(sequence.index, place) * heads, slot = place % layout.pageSize;
      dispatchFloat(rows.type, [&]<typename T>() {
        for (int64_t h = part.begin; h < part.end; ++h)
          writeRow(rows.as<const T>() + (t * heads + h) * width, width, cache,
                   (page + h) * layout.pageSize + slot, scales);
      });
    }
  });
}

} // namespace dspark

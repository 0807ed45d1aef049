// non_max_suppression: per (batch, class), boxes in order of falling score, dropping those that overlap a
// kept one by more than iou_threshold. Equal scores keep the lower index first.
//
// Phase 0: tile (batch, class) selects into its own slots of shared scratch; phase 1 compacts them in order
// and writes the true count.
#include "kernels/common/element.h"
#include "kernels/image/image.h"
#include <algorithm>

namespace dspark {
namespace {

struct NmsState {
  int64_t batch, classes, boxes, slots; // slots: the most boxes kept per class
  bool isCentre;
};

// Corners in order, whatever diagonal or centre form they came in.
struct Box {
  float x0, y0, x1, y1;

  Box(const float *v, bool isCentre) {
    if (isCentre)
      x0 = v[0] - v[2] / 2, x1 = v[0] + v[2] / 2, y0 = v[1] - v[3] / 2, y1 = v[1] + v[3] / 2;
    else
      x0 = std::min(v[1], v[3]), x1 = std::max(v[1], v[3]), y0 = std::min(v[0], v[2]),
      y1 = std::max(v[0], v[2]);
  }
  float area() const { return (x1 - x0) * (y1 - y0); }
};

bool overlaps(const Box &a, const Box &b, float threshold) {
  float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0),
        height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(width > 0) || !(height > 0))
    return false;
  float common = width * height, all = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && all > 0 && common / all > threshold;
}

float scalar(const KernelCall &call, size_t i, float otherwise) {
  return call.has(i) && call.in[i].elements() > 0 ? call.in[i].as<const float>()[0] : otherwise;
}

// Fills kept[0 .. result) with box numbers; `order` has room for all boxes.
int64_t select(const KernelCall &call, const NmsState &s, int64_t tile, int64_t limit, int64_t *kept,
               int32_t *order) {
  const float *scores = call.in[1].as<const float>() + tile * s.boxes;
  const float *boxes = call.in[0].as<const float>() + tile / s.classes * s.boxes * 4;
  float iouThreshold = scalar(call, 3, 0),
        scoreThreshold = scalar(call, 4, -std::numeric_limits<float>::infinity());
  bool hasThreshold = call.has(4);
  int64_t candidates = 0;
  for (int64_t i = 0; i < s.boxes; ++i)
    if (hasThreshold ? scores[i] > scoreThreshold : !std::isnan(scores[i]))
      order[candidates++] = int32_t(i);
  std::sort(order, order + candidates,
            [&](int32_t a, int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  int64_t count = 0;
  for (int64_t c = 0; c < candidates && count < limit; ++c) {
    Box box(boxes + order[c] * 4, s.isCentre);
    bool isFree = std::none_of(kept, kept + count, [&](int64_t other) {
      return overlaps(box, Box(boxes + other * 4, s.isCentre), iouThreshold);
    });
    if (isFree)
      kept[count++] = order[c];
  }
  return count;
}

} // namespace

void prepareNonMaxSuppression(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<NmsState>();
  s.batch = call.in[0].dim(0), s.boxes = call.in[0].dim(1), s.classes = call.in[1].dim(1);
  int64_t groups = s.batch * s.classes;
  s.slots = groups ? call.out[0].dim(0) / groups : 0;
  s.isCentre = call.attrs.i("center_point_box", 0) != 0;
  work.phases = 2;
  work.tiles[0] = uint32_t(groups);
  work.tiles[1] = 1;
  work.scratchPerThread = size_t(s.boxes) * sizeof(int32_t);
  work.scratchShared = size_t(groups * (s.slots + 1)) * sizeof(int64_t);
}

void runNonMaxSuppression(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<NmsState>();
  // Per group: the count, then the kept boxes.
  auto *shared = reinterpret_cast<int64_t *>(part.shared);
  if (part.phase == 0) {
    int64_t wanted = call.has(2) && call.in[2].elements() > 0 ? call.in[2].as<const int64_t>()[0] : 0;
    int64_t limit = std::clamp<int64_t>(wanted, 0, s.slots);
    for (int64_t tile = part.begin; tile < part.end; ++tile) {
      int64_t *group = shared + tile * (s.slots + 1);
      group[0] = select(call, s, tile, limit, group + 1, reinterpret_cast<int32_t *>(part.scratch));
    }
    return;
  }
  int64_t *out = call.out[0].as<int64_t>(), count = 0;
  for (int64_t tile = 0; tile < s.batch * s.classes; ++tile) {
    const int64_t *group = shared + tile * (s.slots + 1);
    for (int64_t i = 0; i < group[0]; ++i, ++count) {
      *out++ = tile / s.classes;
      *out++ = tile % s.classes;
      *out++ = group[1 + i];
    }
  }
  call.outDims[0][0] = count;
  call.outDims[0][1] = 3;
}

} // namespace dspark

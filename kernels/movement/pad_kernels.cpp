// Pad and centre crop or pad, row by row. An element here is a whole run of trailing dims that are not padded
// (the channels of NHWC), so that the innermost padded axis is where rows begin and end.
//
//   y row:  | before: fill or mapped elements | a run of x | after: fill or mapped elements |
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/movement/rows.h"
#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {
namespace {

enum class Mode : uint8_t { Constant, Reflect, Edge, Wrap };

// One axis of the result: `kept` elements of x from `crop` on, `before` of the result's in front of them.
struct PadAxis {
  int64_t size, x, before, kept, crop;

  // The element of x for coordinate o, -1 for the fill value.
  int64_t source(int64_t o, Mode mode) const {
    int64_t i = o - before;
    if (i >= 0 && i < kept)
      return i + crop;
    if (mode == Mode::Constant || kept == 0)
      return -1;
    if (mode == Mode::Edge)
      return crop + (i < 0 ? 0 : kept - 1);
    int64_t period = mode == Mode::Wrap ? kept : std::max<int64_t>(2 * (kept - 1), 1);
    int64_t at = (i % period + period) % period;
    return crop + (at < kept ? at : period - at);
  }
};

struct PadPlan {
  int rank = 0; // axes that make rows and elements; the last one lies within rows
  PadAxis axes[kMaxRank];
  int64_t elementBytes, rows;
  Mode mode = Mode::Constant;
};

// `before` and `after` per axis of x. The result's dims are x's plus these, as the shape function saw them; a
// plan that does not fit them is cut down to what does.
PadPlan plan(const KernelCall &call, const int64_t *before, const int64_t *after) {
  const TensorView &x = call.in[0], &y = call.out[0];
  PadPlan p;
  int inner = x.rank;
  while (inner > 0 && before[inner - 1] == 0 && after[inner - 1] == 0)
    --inner;
  p.elementBytes = y.elements(inner, y.rank) * (dtypeBits(x.type) / 8);
  p.rows = inner == 0 ? 1 : y.elements(0, inner - 1);
  p.rank = std::max(inner, 1);
  p.axes[0] = {1, 1, 0, 1, 0};
  for (int i = 0; i < inner; ++i) {
    int64_t crop = std::clamp<int64_t>(-std::min<int64_t>(before[i], 0), 0, x.dims[i]);
    int64_t cropEnd = std::clamp<int64_t>(-std::min<int64_t>(after[i], 0), 0, x.dims[i] - crop);
    PadAxis &axis =
        p.axes[i] = {y.dims[i], x.dims[i], std::max<int64_t>(before[i], 0), x.dims[i] - crop - cropEnd, crop};
    axis.before = std::min(axis.before, axis.size);
    axis.kept = std::min(axis.kept, axis.size - axis.before);
  }
  return p;
}

void fill(char *to, int64_t elements, const PadPlan &p, const char *value, int64_t valueBytes) {
  int64_t bytes = elements * p.elementBytes;
  if (valueBytes == 4) {
    uint32_t word;
    __builtin_memcpy(&word, value, 4);
    for (int64_t i = 0; i < bytes; i += 4)
      __builtin_memcpy(to + i, &word, 4);
    return;
  }
  for (int64_t i = 0; i < bytes; i += valueBytes)
    copyRun(to + i, value, valueBytes);
}

// Row `row` of the result; `value` is the fill value's bytes.
void padRow(const KernelCall &call, const PadPlan &p, int64_t row, const char *value, int64_t valueBytes) {
  const PadAxis &last = p.axes[p.rank - 1];
  char *to = call.out[0].as<char>() + row * last.size * p.elementBytes;
  int64_t source = 0, stride = 1;
  for (int i = p.rank - 2; i >= 0; --i) {
    int64_t at = p.axes[i].source(row % p.axes[i].size, p.mode);
    if (at < 0)
      return fill(to, last.size, p, value, valueBytes);
    source += at * stride;
    row /= p.axes[i].size;
    stride *= p.axes[i].x;
  }
  const char *from = call.in[0].as<const char>() + source * last.x * p.elementBytes;
  auto edge = [&](int64_t begin, int64_t end) {
    if (p.mode == Mode::Constant || last.kept == 0)
      return fill(to + begin * p.elementBytes, end - begin, p, value, valueBytes);
    for (int64_t o = begin; o < end; ++o)
      copyRun(to + o * p.elementBytes, from + last.source(o, p.mode) * p.elementBytes, p.elementBytes);
  };
  edge(0, last.before);
  if (last.kept > 0)
    copyRun(to + last.before * p.elementBytes, from + last.crop * p.elementBytes, last.kept * p.elementBytes);
  edge(last.before + last.kept, last.size);
}

void runRows(const KernelCall &call, const PadPlan &p, const KernelWork &work, const KernelPart &part,
             const char *value) {
  static constexpr char kZero[16] = {};
  if (call.out[0].elements() == 0)
    return;
  int64_t valueBytes = dtypeBits(call.in[0].type) / 8;
  RowRange range(p.rows, work.tiles[0], part);
  for (int64_t row = range.begin; row < range.end; ++row)
    padRow(call, p, row, value ? value : kZero, valueBytes);
}

// Rows are not known before run(), so tiles count bytes and each takes its share of the rows.
void prepare(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.out[0].type, call.out[0].elements());
  work.tiles[0] = tilesForBytes(bytes);
  work.bytes = double(bytes) * 2;
}

bool acceptsPad(const KernelCall &call) {
  return dtypeBits(call.in[0].type) >= 8 && isIndexType(call.in[1].type) &&
         (!call.has(3) || isIndexType(call.in[3].type));
}

void runPad(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0], &pads = call.in[1];
  int64_t before[kMaxRank] = {}, after[kMaxRank] = {}, count = pads.elements() / 2;
  for (int64_t k = 0; k < count; ++k) {
    int64_t axis = call.has(3) ? intAt(call.in[3], k) : k;
    axis = std::clamp<int64_t>(axis < 0 ? axis + x.rank : axis, 0, x.rank - 1);
    before[axis] = intAt(pads, k);
    after[axis] = intAt(pads, k + count);
  }
  PadPlan p = plan(call, before, after);
  std::string_view mode = call.attrs.s("mode", "constant");
  p.mode = mode == "reflect" ? Mode::Reflect
           : mode == "edge"  ? Mode::Edge
           : mode == "wrap"  ? Mode::Wrap
                             : Mode::Constant;
  runRows(call, p, work, part, call.has(2) ? call.in[2].as<const char>() : nullptr);
}

bool acceptsCenter(const KernelCall &call) { return dtypeBits(call.in[0].type) >= 8; }

void runCenter(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  int64_t before[kMaxRank] = {}, after[kMaxRank] = {};
  for (int i = 0; i < call.in[0].rank; ++i) {
    // The odd element goes behind, both where padding adds it and where cropping drops it.
    int64_t change = call.out[0].dims[i] - call.in[0].dims[i];
    before[i] = change / 2;
    after[i] = change - before[i];
  }
  runRows(call, plan(call, before, after), work, part, nullptr);
}

constexpr Kernel kRows[] = {
    {"pad", "pad_bytes", Isa::Baseline, acceptsPad, prepare, runPad},
    {"center_crop_pad", "center_crop_pad_bytes", Isa::Baseline, acceptsCenter, prepare, runCenter},
};

} // namespace

std::span<const Kernel> padKernels() { return kRows; }

} // namespace dspark::movement

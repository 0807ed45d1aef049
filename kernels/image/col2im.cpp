// col2im: every pixel is the sum of the block elements that cover it. Written as a gather, so that tiles
// (batch, channel, outermost row) never share an output.
#include "kernels/common/element.h"
#include "kernels/image/image.h"

namespace dspark {
namespace {

constexpr int kMaxAxes = kMaxRank - 2;

struct Col2ImState {
  int64_t channels, blockSize, columns; // columns: L
  int64_t image[kMaxAxes], stride[kMaxAxes], dilation[kMaxAxes], before[kMaxAxes], reach[kMaxAxes];
  int64_t rowPixels;
  int axes;
};

int64_t entry(std::span<const int64_t> list, int i, int64_t otherwise) {
  return list.empty() ? otherwise : list[size_t(i)];
}

// Sums over the block elements along `axis` and further in. `element` and `column` number block element and
// block position in row-major order so far.
template <typename T, typename A>
A gather(const Col2ImState &s, const int64_t *block, const T *data, const int64_t *pixel, int axis,
         int64_t element, int64_t column) {
  if (axis == s.axes)
    return A(data[element * s.columns + column]);
  A sum = 0;
  int64_t count = s.reach[axis] - s.dilation[axis] * (block[axis] - 1) - 1;
  int64_t positions = count / s.stride[axis] + 1;
  for (int64_t k = 0; k < block[axis]; ++k) {
    int64_t from = pixel[axis] + s.before[axis] - k * s.dilation[axis];
    if (from < 0)
      break;
    if (from % s.stride[axis] == 0 && from / s.stride[axis] < positions)
      sum += gather<T, A>(s, block, data, pixel, axis + 1, element * block[axis] + k,
                          column * positions + from / s.stride[axis]);
  }
  return sum;
}

template <typename T> using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>;

} // namespace

void prepareCol2Im(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<Col2ImState>();
  const TensorView &y = call.out[0];
  s.axes = y.rank - 2;
  s.channels = y.dim(1);
  s.blockSize = s.channels ? call.in[0].dim(1) / s.channels : 0;
  s.columns = call.in[0].dim(2);
  std::span<const int64_t> strides = call.attrs.ints("strides"), pads = call.attrs.ints("pads"),
                           dilations = call.attrs.ints("dilations");
  for (int i = 0; i < s.axes; ++i) {
    s.image[i] = y.dim(i + 2);
    s.stride[i] = entry(strides, i, 1), s.dilation[i] = entry(dilations, i, 1),
    s.before[i] = entry(pads, i, 0);
    s.reach[i] = s.image[i] + s.before[i] + entry(pads, s.axes + i, 0);
  }
  s.rowPixels = y.elements(3, y.rank);
  work.tiles[0] = uint32_t(y.dim(0) * y.dim(1) * y.dim(2));
  work.bytes = double(dtypeBytes(y.type, y.elements() + call.in[0].elements()));
}

void runCol2Im(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<Col2ImState>();
  const auto *block = call.in[2].as<const int64_t>();
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    for (int64_t tile = part.begin; tile < part.end; ++tile) {
      const T *data = call.in[0].as<const T>() + tile / s.image[0] * s.blockSize * s.columns;
      T *out = call.out[0].as<T>() + tile * s.rowPixels;
      int64_t pixel[kMaxAxes] = {tile % s.image[0]};
      for (int64_t p = 0; p < s.rowPixels; ++p) {
        int64_t rest = p;
        for (int axis = s.axes - 1; axis > 0; rest /= s.image[axis], --axis)
          pixel[axis] = rest % s.image[axis];
        out[p] = T(gather<T, Sum<T>>(s, block, data, pixel, 0, 0, 0));
      }
    }
  });
}

} // namespace dspark

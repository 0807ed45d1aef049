// The oracle of paged_attention: one (token, head) at a time, all in double, with the scores recomputed
// instead of stored (a first pass finds their maximum). A tile is a token.
#include "kernels/attention/attention_kernel.h"
#include "kernels/attention/paged.h"
#include "kernels/common/numeric.h"
#include <cmath>

namespace dspark {
namespace {

class PagedRow {
public:
  PagedRow(const KernelCall &call, double *out)
      : call(call), layout(call, 3, call.in[1], call.in[0].dim(0)), qHeads(call.in[0].dim(1)),
        kvHeads(call.in[1].dim(1)), size(call.in[0].dim(2)), width(call.out[0].dim(2)), out(out) {
    scale = call.attrs.f("scale", 1 / std::sqrt(double(std::max<int64_t>(size, 1))));
    softcap = call.attrs.f("softcap", 0);
    left = call.attrs.i("left_window_size", -1);
  }

  void run(int64_t token, int64_t h) {
    std::fill_n(out, width, 0.0);
    BatchLayout::Sequence s = layout.owner(token);
    int64_t position = s.position(token), low = left < 0 ? 0 : std::max<int64_t>(position - left, 0);
    int64_t high = call.attrs.i("is_causal", 1) ? std::clamp<int64_t>(position + 1, 0, s.length) : s.length;
    double sink = call.has(8) ? realAt(call.in[8], h) : -INFINITY, top = sink;
    if (s.index < 0)
      low = high = 0;
    for (int64_t j = low; j < high; ++j)
      top = std::max(top, score(token, h, s.index, position, j));
    double sum = std::isinf(sink) ? 0 : std::exp(sink - top);
    for (int64_t j = low; j < high; ++j) {
      double weight = std::exp(score(token, h, s.index, position, j) - top);
      sum += weight;
      for (int64_t c = 0; c < width; ++c)
        out[c] += weight * cached(2, 7, s.index, j, h, c);
    }
    for (int64_t c = 0; c < width; ++c)
      out[c] = sum == 0 ? 0 : out[c] / sum;
    storeFromF64(call.out[0].type,
                 call.out[0].as<char>() + (token * qHeads + h) * width * (dtypeBits(call.out[0].type) / 8), 0,
                 width, out);
  }

private:
  double score(int64_t token, int64_t h, int64_t sequence, int64_t position, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < size; ++d)
      sum += realAt(call.in[0], (token * qHeads + h) * size + d) * cached(1, 6, sequence, j, h, d);
    sum *= scale;
    double slope = call.has(9) ? realAt(call.in[9], h) : 0;
    return (softcap > 0 ? softcap * std::tanh(sum / softcap) : sum) + slope * double(j - position);
  }
  double cached(size_t cache, size_t scales, int64_t sequence, int64_t j, int64_t h, int64_t c) const {
    int64_t row = call.in[cache].dim(3), head = h / (qHeads / kvHeads);
    int64_t at = (layout.page(sequence, j) * kvHeads + head) * layout.pageSize + j % layout.pageSize;
    if (call.in[cache].type == DType::I8)
      return call.in[cache].as<const int8_t>()[at * row + c] * double(call.in[scales].as<const float>()[at]);
    return realAt(call.in[cache], at * row + c);
  }

  const KernelCall &call;
  BatchLayout layout;
  int64_t qHeads, kvHeads, size, width, left;
  double scale, softcap;
  double *out;
};

} // namespace

void preparePagedReference(const KernelCall &call, KernelWork &work) {
  work.tiles[0] = uint32_t(call.in[0].dim(0));
  work.scratchPerThread = size_t(call.out[0].dim(2)) * sizeof(double);
}

void runPagedReference(const KernelCall &call, const KernelWork &, const KernelPart &part) {
  PagedRow row(call, reinterpret_cast<double *>(part.scratch));
  for (int64_t t = part.begin; t < part.end; ++t)
    for (int64_t h = 0; h < call.in[0].dim(1); ++h)
      row.run(t, h);
}

} // namespace dspark

// negative_log_likelihood_loss and softmax_cross_entropy_loss. The latter is the former on
// log_softmax(scores).
//
// Phase 0: blocks of samples compute their losses and, for sum and mean, one partial sum of losses and of
// weights per block. Phase 1 adds the blocks in order, so that the result does not depend on threads.
#include "kernels/common/element.h"
#include "kernels/loss/loss.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kBlock = 256;

enum class Reduction : uint8_t { None, Sum, Mean };

struct LossState {
  int64_t samples, classes, inner; // sample = (n, position), scores [n][class][inner]
  int64_t ignored;
  Reduction reduction;
  bool hasIgnored, isWeighted;
};

struct Partial {
  double loss, weight;
};

int64_t labelAt(const TensorView &labels, int64_t i) {
  return labels.type == DType::I32 ? labels.as<const int32_t>()[i] : labels.as<const int64_t>()[i];
}

void prepare(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<LossState>();
  const TensorView &scores = call.in[0];
  s.classes = scores.dim(1), s.inner = scores.elements(2, scores.rank), s.samples = scores.dim(0) * s.inner;
  s.hasIgnored = call.attrs.has("ignore_index");
  s.ignored = call.attrs.i("ignore_index", 0);
  s.isWeighted = call.has(2);
  std::string_view reduction = call.attrs.s("reduction", "mean");
  s.reduction = reduction == "none" ? Reduction::None : reduction == "sum" ? Reduction::Sum : Reduction::Mean;
  int64_t blocks = (s.samples + kBlock - 1) / kBlock;
  work.tiles[0] = uint32_t(blocks);
  work.scratchPerThread = size_t(s.classes) * sizeof(double);
  if (s.reduction != Reduction::None) {
    work.phases = 2;
    work.tiles[1] = 1;
    work.scratchShared = size_t(blocks) * sizeof(Partial);
  }
  work.bytes = double(dtypeBytes(scores.type, scores.elements()));
}

// Log-probabilities of the classes of one sample.
template <typename T> void logSoftmax(const LossState &s, const T *x, double *result) {
  double top = -std::numeric_limits<double>::infinity(), total = 0;
  for (int64_t c = 0; c < s.classes; ++c)
    top = std::max(top, double(x[c * s.inner]));
  for (int64_t c = 0; c < s.classes; ++c)
    total += std::exp(double(x[c * s.inner]) - top);
  double shift = top + std::log(total);
  for (int64_t c = 0; c < s.classes; ++c)
    result[c] = double(x[c * s.inner]) - shift;
}

template <typename T, bool kSoftmax>
Partial sampleLoss(const KernelCall &call, const LossState &s, int64_t sample, double *scratch) {
  int64_t at =
      sample / std::max<int64_t>(s.inner, 1) * s.classes * s.inner + sample % std::max<int64_t>(s.inner, 1);
  const T *x = call.in[0].as<const T>() + at;
  if (kSoftmax) {
    logSoftmax(s, x, scratch);
    if (call.out.size() > 1 && call.out[1].present())
      for (int64_t c = 0; c < s.classes; ++c)
        call.out[1].as<T>()[at + c * s.inner] = fromReal<T>(scratch[c]);
  }
  int64_t label = labelAt(call.in[1], sample);
  // A label outside the classes that is not ignore_index has no loss to take.
  bool counts = !(s.hasIgnored && label == s.ignored) && label >= 0 && label < s.classes;
  if (!counts)
    return {0, 0};
  double weight = s.isWeighted ? double(call.in[2].as<const T>()[label]) : 1;
  return {-(kSoftmax ? scratch[label] : double(x[label * s.inner])) * weight, weight};
}

template <bool kSoftmax> void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<LossState>();
  auto *partials = reinterpret_cast<Partial *>(part.shared);
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    if (part.phase == 1) {
      Partial all = {0, 0};
      for (uint32_t i = 0; i < work.tiles[0]; ++i)
        all = {all.loss + partials[i].loss, all.weight + partials[i].weight};
      *call.out[0].as<T>() = fromReal<T>(s.reduction == Reduction::Sum ? all.loss : all.loss / all.weight);
      return;
    }
    for (int64_t block = part.begin; block < part.end; ++block) {
      Partial sum = {0, 0};
      for (int64_t i = block * kBlock, end = std::min(s.samples, i + kBlock); i < end; ++i) {
        Partial one = sampleLoss<T, kSoftmax>(call, s, i, reinterpret_cast<double *>(part.scratch));
        if (s.reduction == Reduction::None)
          call.out[0].as<T>()[i] = fromReal<T>(one.loss);
        sum = {sum.loss + one.loss, sum.weight + one.weight};
      }
      if (s.reduction != Reduction::None)
        partials[block] = sum;
    }
  });
}

} // namespace

void prepareNegativeLogLikelihood(const KernelCall &call, KernelWork &work) { prepare(call, work); }
void runNegativeLogLikelihood(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  run<false>(call, work, part);
}
void prepareSoftmaxCrossEntropy(const KernelCall &call, KernelWork &work) { prepare(call, work); }
void runSoftmaxCrossEntropy(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  run<true>(call, work, part);
}

} // namespace dspark

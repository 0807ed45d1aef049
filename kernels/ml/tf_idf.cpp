// tf_idf_vectorizer: counts of the pool's n-grams in each row, with up to max_skip_count items skipped
// between neighbours. Unigrams are counted once, longer ones for every skip distance. Tiles: rows. An n-gram
// is found by search through the pool of its length, last first, since the last of equal entries counts.
#include "kernels/common/element.h"
#include "kernels/common/strings.h"
#include "kernels/ml/ml.h"
#include <algorithm>

namespace dspark {
namespace {

struct TfIdfState {
  int64_t rows, items, width;
  int64_t minLength, maxLength, maxSkip;
  bool isBinary, isWeighted;
};

// P is int64_t or StringElement.
template <typename P> class GramPool {
public:
  GramPool(Attrs attrs, std::span<const P> pool)
      : pool(pool), starts(attrs.ints("ngram_counts")), indexes(attrs.ints("ngram_indexes")) {}

  int64_t longest() const { return int64_t(starts.size()); }

  /// The output column of the n-gram x[0], x[distance], ..., or -1.
  template <typename T> int64_t find(const T *x, int64_t length, int64_t distance) const {
    int64_t begin = starts[size_t(length - 1)];
    int64_t end = length < longest() ? starts[size_t(length)] : int64_t(pool.size());
    int64_t first = 0; // number of the first gram of this length
    for (int64_t l = 1; l < length; ++l)
      first += (starts[size_t(l)] - starts[size_t(l - 1)]) / l;
    for (int64_t gram = (end - begin) / length; gram-- > 0;) {
      int64_t i = 0;
      while (i < length && isSame(pool[size_t(begin + gram * length + i)], x[i * distance]))
        ++i;
      if (i == length)
        return indexes[size_t(first + gram)];
    }
    return -1;
  }

private:
  static bool isSame(int64_t a, int64_t b) { return a == b; }
  static bool isSame(std::string_view a, std::string_view b) { return a == b; }
  std::span<const P> pool;
  std::span<const int64_t> starts, indexes;
};

template <typename P, typename T>
void countRow(const TfIdfState &s, const GramPool<P> &pool, const T *x, float *out) {
  int64_t longest = std::min(s.maxLength, pool.longest());
  for (int64_t length = s.minLength; length <= longest; ++length) {
    int64_t distances = length == 1 ? 1 : std::min(s.maxSkip + 1, s.items / (length - 1) + 1);
    for (int64_t distance = 1; distance <= distances; ++distance)
      for (int64_t i = 0; i + (length - 1) * distance < s.items; ++i)
        if (int64_t column = pool.find(x + i, length, distance); column >= 0)
          out[column] += 1;
  }
}

void countRow(const KernelCall &call, const TfIdfState &s, int64_t row, float *out) {
  const TensorView &x = call.in[0];
  if (x.type == DType::String) {
    std::span<const StringElement> pool(call.in[1].as<const StringElement>(), size_t(call.in[1].elements()));
    return countRow(s, GramPool(call.attrs, pool), x.as<const StringElement>() + row * s.items, out);
  }
  GramPool pool(call.attrs, call.attrs.ints("pool_int64s"));
  if (x.type == DType::I32)
    countRow(s, pool, x.as<const int32_t>() + row * s.items, out);
  else
    countRow(s, pool, x.as<const int64_t>() + row * s.items, out);
}

} // namespace

void prepareTfIdf(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<TfIdfState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  s.rows = y.rank == 2 ? y.dim(0) : 1, s.width = y.dim(y.rank - 1);
  s.items = x.rank == 0 ? 1 : x.dim(x.rank - 1);
  s.minLength = call.attrs.i("min_gram_length", 1), s.maxLength = call.attrs.i("max_gram_length", 1);
  s.maxSkip = call.attrs.i("max_skip_count", 0);
  s.isBinary = call.attrs.s("mode", "") == "IDF";
  s.isWeighted = call.attrs.s("mode", "") != "TF";
  work.tiles[0] = uint32_t(s.rows);
}

void runTfIdf(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<TfIdfState>();
  std::span<const double> weights = call.attrs.floats("weights");
  for (int64_t row = part.begin; row < part.end; ++row) {
    float *out = call.out[0].as<float>() + row * s.width;
    std::fill(out, out + s.width, 0.0f);
    countRow(call, s, row, out);
    for (int64_t i = 0; i < s.width; ++i) {
      float count = s.isBinary ? std::min(out[i], 1.0f) : out[i];
      out[i] = s.isWeighted && size_t(i) < weights.size() ? count * float(weights[size_t(i)]) : count;
    }
  }
}

} // namespace dspark

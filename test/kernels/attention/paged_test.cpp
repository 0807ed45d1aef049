// The paged cache: ragged batches against the plain evaluation in double, the same bits however a sequence is
// cut into batches, and layouts that make no sense.
#include "kernels/attention/attention_kernel.h"
#include "kernels/common/element.h"
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>
#include <numeric>

namespace dspark::test {
namespace {

Tensor layoutOf(std::vector<int64_t> values, std::vector<int64_t> dims = {}) {
  if (dims.empty())
    dims = {int64_t(values.size())};
  return tensorOf<int64_t>(DType::I64, std::move(values), std::move(dims));
}

// A cache, and sequences whose pages are dealt out at random.
struct Cache {
  int64_t pages = 160, kvHeads = 2, pageSize = 16, size = 24, width = 40, group = 3;
  std::vector<int64_t> lengths;
  std::mt19937 rng{11};
  Tensor k, v, table;

  explicit Cache(std::vector<int64_t> lengths) : lengths(std::move(lengths)) {
    k = uniform({pages, kvHeads, pageSize, size}, rng), v = uniform({pages, kvHeads, pageSize, width}, rng);
    std::vector<int64_t> free(size_t(pages), 0), rows;
    std::iota(free.begin(), free.end(), 0);
    std::shuffle(free.begin(), free.end(), rng);
    int64_t perRow = 0;
    for (int64_t n : this->lengths)
      perRow = std::max(perRow, (n + pageSize - 1) / pageSize);
    for (int64_t n : this->lengths)
      for (int64_t p = 0; p < perRow; ++p) {
        rows.push_back(p * pageSize < n ? free.back() : -1);
        if (p * pageSize < n)
          free.pop_back();
      }
    table = layoutOf(rows, {int64_t(this->lengths.size()), perRow});
  }
  Tensor queries(int64_t tokens) { return uniform({tokens, kvHeads * group, size}, rng); }
  std::vector<Tensor> operands(const Tensor &q, std::vector<int64_t> offsets) const {
    return {q, k, v, layoutOf(std::move(offsets)), layoutOf(lengths), table};
  }
};

Tensor rowsOfTensor(Tensor &t, int64_t begin, int64_t end) {
  Tensor part = zeros(t.type, {end - begin, t.dims[1], t.dims[2]});
  size_t bytes = t.bytes.size() / size_t(t.dims[0]);
  std::memcpy(part.bytes.data(), t.bytes.data() + size_t(begin) * bytes, part.bytes.size());
  return part;
}

void expectNear(const Tensor &got, const Tensor &want, double tolerance, const char *row) {
  ASSERT_EQ(got.elements(), want.elements());
  for (int64_t i = 0; i < got.elements(); ++i)
    ASSERT_NEAR(got.as<float>()[i], want.as<float>()[i], tolerance) << row << " element " << i;
}

// Values are at most 1 and scores at most sqrt(24): their rounding, 24 eps per score, goes through exp.
constexpr double kTolerance = 5 * 24 * 6e-8;

TEST(PagedAttention, RaggedBatchMatchesTheReference) {
  // A prefill from nothing, a later chunk, a decoded token, four drafts, a sequence without rows, and rows
  // that belong to no sequence.
  Cache cache({37, 300, 1100, 520, 80});
  std::vector<Tensor> in = cache.operands(cache.queries(37 + 50 + 1 + 4 + 2), {0, 37, 87, 88, 92, 92});
  std::vector<AttrList> variants(6);
  variants[1].set("left_window_size", 130);
  variants[2].setFloat("softcap", 2);
  variants[3].set("is_causal", int64_t(0)).setFloat("scale", 0.1);
  for (size_t i = 0; i < variants.size(); ++i) {
    if (i == 4) { // sinks
      in.resize(8);
      in.push_back(uniform({cache.kvHeads * cache.group}, cache.rng));
    }
    if (i == 5) { // slopes; of at most 1/64 they add up to 17 to scores of 24, which are then so much coarser
      in.push_back(uniform({cache.kvHeads * cache.group}, cache.rng));
      for (int64_t h = 0; h < cache.kvHeads * cache.group; ++h)
        in.back().as<float>()[h] /= 64;
    }
    Tensor want = runRow(*rowsOf("paged_attention").back(), in, variants[i])[0];
    for (const Kernel *row : rowsOf("paged_attention"))
      expectNear(runRow(*row, in, variants[i])[0], want, kTolerance * (i == 5 ? 2 : 1), row->name);
  }
}

TEST(PagedAttention, ARowDoesNotDependOnItsBatch) {
  Cache cache({2100, 150});
  Tensor q = cache.queries(2100 + 150), slopes = uniform({cache.kvHeads * cache.group}, cache.rng);
  auto withSlopes = [&](std::vector<Tensor> in) {
    in.resize(9);
    in.push_back(slopes);
    return in;
  };
  std::vector<Tensor> all = withSlopes(cache.operands(q, {0, 2100, 2250}));
  for (const Kernel *row : rowsOf("paged_attention")) {
    if (row == rowsOf("paged_attention").back())
      continue; // the reference
    Tensor whole = runRow(*row, all, {}, 1, 3)[0];
    for (int64_t i : {0, 255, 1024, 1500, 2099}) { // one token, with the context up to it
      Cache one = cache;
      one.lengths = {i + 1, 0};
      std::vector<Tensor> in = withSlopes(one.operands(rowsOfTensor(q, i, i + 1), {0, 1, 1}));
      ASSERT_EQ(runRow(*row, in, {})[0].bytes, rowsOfTensor(whole, i, i + 1).bytes)
          << row->name << " token " << i;
    }
    std::vector<Tensor> drafts = // verified beside a prefill
        withSlopes(cache.operands(rowsOfTensor(q, 2095, 2250), {0, 5, 155}));
    ASSERT_EQ(runRow(*row, drafts, {})[0].bytes, rowsOfTensor(whole, 2095, 2250).bytes) << row->name;
  }
}

TEST(PagedAttention, SameBitsAsDenseAttention) {
  Cache cache({1300});
  int64_t tokens = 1300, heads = cache.kvHeads * cache.group;
  Tensor q = cache.queries(tokens);
  std::vector<Tensor> paged = cache.operands(q, {0, tokens});
  auto gather = [&](const Tensor &pages, int64_t width) {
    Tensor dense = zeros(DType::F32, {1, tokens, cache.kvHeads * width});
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t h = 0; h < cache.kvHeads; ++h)
        std::copy_n(pages.as<float>() + ((cache.table.as<int64_t>()[t / cache.pageSize] * cache.kvHeads + h) *
                                             cache.pageSize +
                                         t % cache.pageSize) *
                                            width,
                    width, dense.as<float>() + (t * cache.kvHeads + h) * width);
    return dense;
  };
  std::vector<Tensor> dense = {q, gather(cache.k, cache.size), gather(cache.v, cache.width)};
  dense[0].dims = {1, tokens, heads * cache.size};
  AttrList attrs;
  attrs.set("is_causal", 1).set("q_num_heads", heads).set("kv_num_heads", cache.kvHeads);
  for (Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512})
    if (isa <= machineIsa()) {
      auto rowAt = [&](const char *op) {
        for (const Kernel *row : rowsOf(op))
          if (row->isa == isa && row->accepts != acceptsAttentionBf16)
            return row;
        return static_cast<const Kernel *>(nullptr);
      };
      EXPECT_EQ(runRow(*rowAt("paged_attention"), paged, {})[0].bytes,
                runRow(*rowAt("attention"), dense, attrs)[0].bytes);
    }
}

TEST(PagedAttention, CachesOfEveryType) {
  for (DType type : {DType::F16, DType::BF16, DType::I8}) {
    Cache cache({290, 45});
    bool isInteger = type == DType::I8;
    std::vector<Tensor> in = cache.operands(cache.queries(9), {0, 1, 9});
    for (size_t i : {1, 2}) {
      Tensor narrow = zeros(type, in[i].dims);
      for (int64_t k = 0; k < narrow.elements(); ++k) {
        float v = in[i].as<float>()[k];
        if (type == DType::F16)
          narrow.as<F16>()[k] = F16(v);
        else if (type == DType::BF16)
          narrow.as<BF16>()[k] = BF16(v);
        else
          narrow.as<int8_t>()[k] = int8_t(std::lround(v * 127));
      }
      in[i] = narrow;
    }
    if (isInteger)
      for (int i = 0; i < 2; ++i)
        in.push_back(filled<float>(DType::F32, {cache.pages, cache.kvHeads, cache.pageSize}, [&] {
          return std::uniform_real_distribution<float>(0.001f, 0.01f)(cache.rng);
        }));
    Tensor want = runRow(*rowsOf("paged_attention").back(), in, {})[0];
    for (const Kernel *row : rowsOf("paged_attention"))
      expectNear(runRow(*row, in, {})[0], want, kTolerance, row->name); // the same cache, so as for f32
  }
}

// Bit for bit as if the values' first elements were a cache of their own; here the keys' cache holds them.
TEST(PagedAttention, ValuesMayBeTheFirstElementsOfKeys) {
  Cache cache({290, 45});
  cache.width = 20;
  cache.v = zeros(DType::F32, {cache.pages, cache.kvHeads, cache.pageSize, cache.width});
  for (int64_t i = 0; i < cache.v.elements(); ++i)
    cache.v.as<float>()[i] = cache.k.as<float>()[i / cache.width * cache.size + i % cache.width];
  std::vector<Tensor> apart = cache.operands(cache.queries(9), {0, 1, 9}), together = apart;
  together[2] = cache.k;
  AttrList attrs;
  attrs.set("value_width", cache.width);
  for (const Kernel *row : rowsOf("paged_attention"))
    EXPECT_EQ(runRow(*row, together, attrs)[0].bytes, runRow(*row, apart, {})[0].bytes) << row->name;
  AttrList wrong;
  wrong.set("value_width", cache.size + 1);
  EXPECT_THAT(refusal("paged_attention", together, wrong),
              testing::HasSubstr("value_width must be in [0, 24]"));
}

TEST(PagedCacheWrite, RowsArriveWhereAttentionLooks) {
  Cache cache({20, 5});
  Tensor fresh = uniform({7, cache.kvHeads, cache.size}, cache.rng);
  std::vector<Tensor> in = {cache.k, fresh, layoutOf({0, 4, 7}), layoutOf(cache.lengths), cache.table};
  Tensor written = runOp("paged_cache_write", in)[0];
  auto at = [&](int64_t sequence, int64_t place, int64_t h) {
    int64_t page = cache.table.as<int64_t>()[sequence * 2 + place / cache.pageSize];
    return ((page * cache.kvHeads + h) * cache.pageSize + place % cache.pageSize) * cache.size;
  };
  Tensor want = cache.k;
  for (int64_t t = 0; t < 7; ++t)
    for (int64_t h = 0; h < cache.kvHeads; ++h)
      std::copy_n(fresh.as<float>() + (t * cache.kvHeads + h) * cache.size, cache.size,
                  want.as<float>() + (t < 4 ? at(0, 16 + t, h) : at(1, 2 + t - 4, h)));
  EXPECT_EQ(written.bytes, want.bytes);

  // int8: a row's error is half a step, and a step is its largest magnitude / 127.
  in[0] = zeros(DType::I8, cache.k.dims);
  in.push_back(zeros(DType::F32, {cache.pages, cache.kvHeads, cache.pageSize}));
  std::vector<Tensor> out = runOp("paged_cache_write", in, {}, 2);
  for (int64_t c = 0; c < cache.size; ++c) {
    int64_t row = at(0, 19, 1) / cache.size;
    float scale = out[1].as<float>()[row],
          exact = fresh.as<float>()[(3 * cache.kvHeads + 1) * cache.size + c];
    EXPECT_NEAR(float(out[0].as<int8_t>()[row * cache.size + c]) * scale, exact, scale * 0.5001);
  }
}

// Whatever the layout says, every access stays within the operands (the sanitizers watch).
TEST(PagedAttention, SenselessLayoutsAreClamped) {
  std::mt19937 rng(12);
  const int64_t kEdges[] = {0, 1, 5, 17, 100, 3000, -1, -40, INT64_MAX, INT64_MIN};
  auto edges = [&](std::vector<int64_t> dims) {
    return filled<int64_t>(DType::I64, std::move(dims), [&] { return kEdges[rng() % std::size(kEdges)]; });
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Tensor> in = {uniform({11, 2, 8}, rng),
                              uniform({3, 1, 4, 8}, rng),
                              uniform({3, 1, 4, 8}, rng),
                              edges({5}),
                              edges({4}),
                              edges({4, 6})};
    Tensor want = runRow(*rowsOf("paged_attention").back(), in, {})[0];
    for (const Kernel *row : rowsOf("paged_attention"))
      expectNear(runRow(*row, in, {})[0], want, kTolerance, row->name);
    std::vector<Tensor> write = {in[1], uniform({11, 1, 8}, rng), in[3], in[4], in[5]};
    runOp("paged_cache_write", write);
  }
}

TEST(PagedAttention, RefusesWhatDoesNotFit) {
  Cache cache({20});
  std::vector<Tensor> in = cache.operands(cache.queries(2), {0, 2});
  std::vector<Tensor> bad = in;
  bad[3] = layoutOf({0, 1, 2});
  EXPECT_THAT(refusal("paged_attention", bad), testing::HasSubstr("dim 0 of operand 3 must be 2"));
  bad = in;
  bad[1] = zeros(DType::I8, in[1].dims);
  EXPECT_THAT(refusal("paged_attention", bad), testing::HasSubstr("scales, must be given"));
  bad = in;
  bad[0] = zeros(DType::F32, {2, 5, cache.size});
  EXPECT_THAT(refusal("paged_attention", bad), testing::HasSubstr("multiple of key heads"));
  bad = in;
  bad[1] = zeros(DType::F32, {4, 2, 0, cache.size});
  EXPECT_THAT(refusal("paged_attention", bad), testing::HasSubstr("at least one token"));
}

} // namespace
} // namespace dspark::test

// matmul with GGUF weights beside ggml, llama.cpp's kernels, on one thread. Built where CMake finds a ggml
// package:
//
//   cmake -S llama.cpp/ggml -B ggml -DGGML_NATIVE=ON && cmake --build ggml && cmake --install ggml --prefix P
//   cmake --preset runtime -Dggml_DIR=P/lib/cmake/ggml && ninja -C build/runtime bench_ggml
//
//   bench_ggml [FILTER] [--isa LEVEL] [--seconds S] [--list]
//
// Both sides hold the same blocks, quantised by ggml, in copies that are cold; ggml's are repacked where it
// has a form for this machine, as llama.cpp does. Turns of as many products alternate; ggml runs them as
// nodes of one graph. First the results are compared: both quantise rows to 8 bits, ggml by 32 or 256 terms.
// Printed: median time of both, the median of the paired ratios and its quartiles. Exit code 3 if a result is
// wrong.
#include "bench/kernels/options.h"
#include "bench/kernels/packed_product.h"
#include "bench/kernels/peak.h"
#include "runtime/format/PackedBits.h"
#include <cmath>
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <random>

namespace {

using namespace dspark;
using namespace dspark::bench;

ggml_type typeNamed(std::string name) {
  for (int t = 0; t < GGML_TYPE_COUNT; ++t) {
    std::string known = ggml_type_name(ggml_type(t));
    std::transform(known.begin(), known.end(), known.begin(), [](char c) { return char(std::tolower(c)); });
    if (known == name)
      return ggml_type(t);
  }
  std::abort();
}

struct Case {
  const char *type;
  int64_t k, n;
  std::string name() const { return std::string(type) + " " + std::to_string(k) + "x" + std::to_string(n); }
};

std::vector<std::byte> randomBlocks(const Case &c) {
  ggml_type type = typeNamed(c.type);
  std::mt19937 rng(1);
  std::normal_distribution<float> draw(0, 0.05f);
  std::vector<std::byte> blocks(ggml_row_size(type, c.k) * size_t(c.n));
  std::vector<float> row(size_t(c.k), 0.0f);
  for (int64_t n = 0; n < c.n; ++n) {
    for (float &value : row)
      value = draw(rng);
    ggml_quantize_chunk(type, row.data(), blocks.data() + size_t(n) * ggml_row_size(type, c.k), 0, 1, c.k,
                        nullptr);
  }
  return blocks;
}

struct FreeGgml {
  void operator()(ggml_context *p) const { ggml_free(p); }
  void operator()(ggml_backend_buffer *p) const { ggml_backend_buffer_free(p); }
  void operator()(ggml_backend *p) const { ggml_backend_free(p); }
};
template <typename T> using Owned = std::unique_ptr<T, FreeGgml>;

// `count` products with the next copies of the weights in each run.
class Peer {
public:
  Peer(const Case &c, int64_t rows, int count, const std::vector<std::byte> &blocks)
      : rows(rows), backend(ggml_backend_cpu_init()) {
    ggml_backend_cpu_set_n_threads(backend.get(), 1);
    size_t copies = std::max(kColdBytes / blocks.size() / size_t(count), size_t(1)) * size_t(count);
    weightContext.reset(ggml_init({ggml_tensor_overhead() * (copies + 1), nullptr, true}));
    std::vector<ggml_tensor *> weights;
    for (size_t i = 0; i < copies; ++i)
      weights.push_back(ggml_new_tensor_2d(weightContext.get(), typeNamed(c.type), c.k, c.n));
    ggml_backend_buffer_type_t where = bufferFor(weights[0], c.k);
    weightBuffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(weightContext.get(), where));
    for (ggml_tensor *w : weights)
      ggml_backend_tensor_set(w, blocks.data(), 0, blocks.size());
    context.reset(
        ggml_init({(ggml_tensor_overhead() * 2 + ggml_graph_overhead()) * (copies + 2) * 2, nullptr, true}));
    x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, c.k, rows);
    for (size_t first = 0; first < copies; first += size_t(count)) {
      graphs.push_back(ggml_new_graph(context.get()));
      for (size_t i = first; i < first + size_t(count); ++i) {
        ggml_tensor *product = ggml_mul_mat(context.get(), weights[i], x);
        ggml_build_forward_expand(graphs.back(), product);
        y = i == 0 ? product : y;
      }
    }
    buffer.reset(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
  }
  void run() { ggml_backend_graph_compute(backend.get(), graphs[at++ % graphs.size()]); }
  void setRows(const std::vector<float> &values) {
    ggml_backend_tensor_set(x, values.data(), 0, values.size() * 4);
  }
  std::vector<float> result() {
    std::vector<float> values(size_t(ggml_nelements(y)));
    ggml_backend_tensor_get(y, values.data(), 0, values.size() * 4);
    return values;
  }
  bool isRepacked = false;

private:
  // ggml's own form for this machine, if it has one for the type and shape.
  ggml_backend_buffer_type_t bufferFor(ggml_tensor *w, int64_t k) {
    ggml_backend_dev_t device = ggml_backend_get_device(backend.get());
    auto extras = ggml_backend_dev_get_extra_bufts_t(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
    Owned<ggml_context> trial(ggml_init({ggml_tensor_overhead() * 4, nullptr, true}));
    ggml_tensor *product =
        ggml_mul_mat(trial.get(), w, ggml_new_tensor_2d(trial.get(), GGML_TYPE_F32, k, rows));
    for (auto *type = extras ? extras(device) : nullptr; type && *type; ++type) {
      Owned<ggml_backend_buffer> empty(ggml_backend_buft_alloc_buffer(*type, 0));
      w->buffer = empty.get();
      isRepacked = ggml_backend_dev_supports_op(device, product);
      w->buffer = nullptr;
      if (isRepacked)
        return *type;
    }
    return ggml_backend_dev_buffer_type(device);
  }

  int64_t rows;
  Owned<ggml_backend> backend;
  Owned<ggml_context> weightContext, context;
  Owned<ggml_backend_buffer> weightBuffer, buffer;
  ggml_tensor *x = nullptr, *y = nullptr;
  std::vector<ggml_cgraph *> graphs;
  size_t at = 0;
};

// Rows of 8 bits by 256 terms are off by amax / 254 each, ours by less; both sides' errors add up like a
// random walk. 1/50 of the results' root mean square is four times what the worst type shows.
bool agree(const std::vector<float> &a, const std::vector<float> &b) {
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += double(a[i] - b[i]) * double(a[i] - b[i]);
    size += double(b[i]) * double(b[i]);
  }
  return std::sqrt(error / size) < 0.02;
}

bool measure(const Case &c, Isa isa, double seconds) {
  std::vector<std::byte> blocks = randomBlocks(c);
  ColdWeights weights(size_t(*PackedFormat::named(c.type)->bytes(c.k, c.n)));
  if (!packGguf(c.type, c.k, c.n, blocks, weights.first()).isOk())
    std::abort();
  weights.copy();
  std::printf("%s\n", c.name().c_str());
  for (int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
    int count = int(std::clamp<int64_t>((int64_t(1) << 24) / (rows * c.k * c.n), 1, 16));
    Peer peer(c, rows, count, blocks);
    PackedProduct product({c.type, "int8", rows, c.k, c.n}, weights, isa);
    std::mt19937 rng(2);
    std::normal_distribution<float> draw;
    for (float &value : product.x)
      value = draw(rng);
    peer.setRows(product.x);
    peer.run();
    product.run();
    if (!agree(product.y, peer.result())) {
      std::printf("  WRONG\n");
      return false;
    }
    std::vector<double> ours, theirs, ratios;
    for (double end = threadSeconds() + seconds; threadSeconds() < end || ours.size() < 5;) {
      double begin = threadSeconds();
      for (int i = 0; i < count; ++i)
        product.run();
      double middle = threadSeconds();
      peer.run();
      ours.push_back((middle - begin) / count);
      theirs.push_back((threadSeconds() - middle) / count);
      ratios.push_back(theirs.back() / ours.back());
    }
    std::sort(ratios.begin(), ratios.end());
    std::printf("  %4lld rows %9.1f us, ggml%s %9.1f us: %.2f x (%.2f .. %.2f)\n", (long long)rows,
                median(ours) * 1e6, peer.isRepacked ? " repacked" : "", median(theirs) * 1e6, median(ratios),
                ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4]);
    std::fflush(stdout);
  }
  return true;
}

constexpr Case kCases[] = {
    // SmolLM2-135M
    {"q4_1", 576, 192},
    {"q4_1", 576, 576},
    {"q4_1", 576, 1536},
    {"q4_1", 1536, 576},
    {"q8_0", 576, 49152},
    // Gemma-3-270m
    {"q5_0", 640, 1024},
    {"q5_0", 640, 2048},
    {"q4_k", 2048, 640},
    {"q6_k", 2048, 640},
    {"q8_0", 640, 65536}, // a quarter of its vocabulary
    // larger ones
    {"q4_0", 4096, 4096},
    {"q4_k", 4096, 4096},
    {"q5_k", 4096, 4096},
    {"q6_k", 4096, 4096},
    {"q8_0", 4096, 4096},
};

} // namespace

int main(int argc, char **argv) {
  const std::optional<BenchOptions> options = parseBenchOptions("bench_ggml", 0.5, argc, argv);
  if (!options)
    return 1;
  ggml_log_set([](ggml_log_level, const char *, void *) {}, nullptr); // a line per repacked copy
  return runBench(*options, kCases, [](const Case &c) { return c.name(); }, measure);
}

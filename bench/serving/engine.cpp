// What a step of the engine costs beside the model: scheduling, the batch, pages, sampling and delivery, with
// a model that costs nothing.
//
//   bench_serving [FILTER] [--seconds S] [--list]
//
// The vocabulary of 64 shows the engine alone; what the larger ones add is sampling. Each case first checks
// that every sequence got its tokens. Exit code 3: one did not.
#include "runtime/serving/Engine.h"
#include "bench/kernels/options.h"

using namespace dspark;

namespace {

// The same logits for every row; each row's largest one is elsewhere.
class NullModel : public llm::ForwardModel {
public:
  explicit NullModel(int32_t vocabulary)
      : modelFacts{.vocabulary = vocabulary,
                   .contextLength = 1 << 20,
                   .pageSize = 32,
                   .pages = 1 << 15,
                   .pageBytes = 1,
                   .maxRows = 512},
        logits(size_t(kMostRows) * size_t(vocabulary)) {
    for (size_t i = 0; i < logits.size(); ++i)
      logits[i] = float(i * 2654435761u % 10007) * 1e-3f;
  }
  const llm::ModelFacts &facts() const override { return modelFacts; }
  StatusOr<std::span<const float>> forward(const llm::ForwardBatch &batch) override {
    return std::span<const float>(logits).first(batch.logitRows.size() * size_t(modelFacts.vocabulary));
  }
  Status copyPage(int32_t, int32_t) override { return Status::ok(); }

private:
  static constexpr int kMostRows = 64;
  llm::ModelFacts modelFacts;
  std::vector<float> logits;
};

struct Case {
  const char *sampler;
  int32_t sequences, vocabulary;
  llm::SamplingParameters sampling;

  std::string name() const {
    return std::string(sampler) + ", " + std::to_string(sequences) + " sequences, vocabulary " +
           std::to_string(vocabulary);
  }
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Decoding steps in the steady state; microseconds of each.
bool measure(const Case &c, double duration) {
  NullModel model(c.vocabulary);
  const auto engine = serving::Engine::create(model, nullptr, {.scheduling = {.sequences = c.sequences}});
  int64_t tokens = 0;
  for (int32_t i = 0; i < c.sequences; ++i) {
    serving::Request request;
    request.prompt.assign(size_t(20 + i), i % c.vocabulary);
    request.sampling = c.sampling;
    request.maxTokens = 1 << 20;
    request.receive = [&](const serving::Output &output) { tokens += int64_t(output.tokens.size()); };
    if (!engine.isOk() || !(*engine)->submit(request).isOk())
      return false;
  }
  for (int warmUp = 0; warmUp < 50; ++warmUp)
    (*engine)->step();
  std::vector<double> times;
  const int64_t before = tokens;
  for (const double begin = seconds(); seconds() < begin + duration || times.size() < 20;) {
    const double began = seconds();
    (*engine)->step();
    times.push_back((seconds() - began) * 1e6);
  }
  const bool right = tokens - before == int64_t(times.size()) * c.sequences;
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf("%-48s %8.1f us a step (quartiles %.1f to %.1f), %6.2f us a sequence%s\n", c.name().c_str(),
              median, times[times.size() / 4], times[times.size() * 3 / 4], median / c.sequences,
              right ? "" : "  WRONG");
  return right;
}

} // namespace

int main(int argc, char **argv) {
  const auto options = parseBenchOptions("bench_serving", 0.5, argc, argv);
  if (!options)
    return 2;
  const llm::SamplingParameters greedy{.temperature = 0}, nucleus{.topK = 40, .topP = 0.95f};
  std::vector<Case> cases;
  for (int32_t vocabulary : {64, 49'152, 262'144}) {
    for (int32_t sequences : {1, 16})
      cases.push_back({"greedy", sequences, vocabulary, greedy});
    cases.push_back({"top-k 40, top-p 0.95", 16, vocabulary, nucleus});
  }
  return runBench(
      *options, cases, [](const Case &c) { return c.name(); },
      [](const Case &c, Isa, double duration) { return measure(c, duration); });
}

#include "tools/dspark-bench/Compare.h"
#include "tools/dspark-rt/Inputs.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

namespace dspark {
namespace {

constexpr int kResamples = 1000;
constexpr double kTurn = 0.02; // seconds: a plan runs for so long before it is the other's turn
constexpr int kLeastTurns = 10;

// One of the two.
struct Contender {
  std::unique_ptr<Session> session;
  Inputs inputs;
  std::deque<std::vector<BorrowedValue>> nodes;
  std::vector<BorrowedValue> lent;
  int runs = 1;                // per turn
  std::vector<double> seconds; // per run, by turn

  static StatusOr<Contender> open(const std::string &path, const PlanComparison &comparison) {
    Contender made;
    DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(path));
    DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
    DSPARK_ASSIGN_OR_RETURN(made.session, Session::create(program, comparison.session));
    InputRequest request;
    request.dims = comparison.dims;
    request.archive = comparison.archive;
    DSPARK_ASSIGN_OR_RETURN(made.inputs, gatherInputs(*program, request));
    return made;
  }
  void lendAll() {
    for (HostValue &value : inputs.values)
      lent.push_back(lend(value, nodes));
  }
  StatusOr<double> turn(int count) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
      DSPARK_RETURN_IF_ERROR(session->run(std::span<const BorrowedValue>(lent)));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// |second - first| / |first| of the f32 outputs, the largest; infinite where shapes differ.
double outputDifference(Session &first, Session &second) {
  double worst = 0;
  for (size_t k = 0; k < first.outputCount(); ++k) {
    if (first.outputValue(k).isList || second.outputValue(k).isList)
      continue;
    const TensorView &a = first.output(k), &b = second.output(k);
    if (a.type != DType::F32 || b.type != DType::F32)
      continue;
    if (a.elements() != b.elements())
      return INFINITY;
    double noise = 0, signal = 0;
    for (int64_t i = 0; i < a.elements(); ++i) {
      double x = a.as<float>()[i], y = b.as<float>()[i];
      noise += (x - y) * (x - y);
      signal += x * x;
    }
    worst = std::max(worst, noise == 0 ? 0 : std::sqrt(noise / signal));
  }
  return worst;
}

Status checkSame(const Program &first, const Program &second) {
  bool isSame =
      first.inputs().size() == second.inputs().size() && first.outputs().size() == second.outputs().size();
  for (size_t i = 0; isSame && i < first.inputs().size(); ++i)
    isSame =
        first.values()[size_t(first.inputs()[i])].name == second.values()[size_t(second.inputs()[i])].name;
  return isSame ? Status::ok()
                : invalidArgument(second.file().path() + ": its inputs and outputs are not those of " +
                                  first.file().path());
}

} // namespace

RatioInterval ratioInterval(const std::vector<double> &first, const std::vector<double> &second) {
  std::vector<double> ratios;
  for (size_t i = 0; i < first.size(); ++i)
    ratios.push_back(second[i] / first[i]);
  std::mt19937_64 random(1);
  std::vector<double> medians, sample(ratios.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double &value : sample)
      value = ratios[random() % ratios.size()];
    medians.push_back(median(sample));
  }
  std::sort(medians.begin(), medians.end());
  return {median(ratios), medians[size_t(kResamples * 0.025)], medians[size_t(kResamples * 0.975)]};
}

Status comparePlans(const PlanComparison &comparison) {
  DSPARK_ASSIGN_OR_RETURN(Contender first, Contender::open(comparison.first, comparison));
  DSPARK_ASSIGN_OR_RETURN(Contender second, Contender::open(comparison.second, comparison));
  DSPARK_RETURN_IF_ERROR(checkSame(first.session->program(), second.session->program()));
  for (Contender *one : {&first, &second}) {
    one->lendAll();
    DSPARK_ASSIGN_OR_RETURN([[maybe_unused]] double cold, one->turn(1));
    DSPARK_ASSIGN_OR_RETURN(double warm, one->turn(1));
    one->runs = int(std::clamp(kTurn / std::max(warm, 1e-7), 1.0, 1e5));
  }
  double difference = outputDifference(*first.session, *second.session);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(comparison.seconds);
  for (int turn = 0; turn < kLeastTurns || std::chrono::steady_clock::now() < end; ++turn)
    for (Contender *one : {turn % 2 ? &second : &first, turn % 2 ? &first : &second}) {
      DSPARK_ASSIGN_OR_RETURN(double taken, one->turn(one->runs));
      one->seconds.push_back(taken);
    }
  RatioInterval interval = ratioInterval(first.seconds, second.seconds);
  if (comparison.isJson) {
    std::cout << nlohmann::json{{"first_s", median(first.seconds)},
                                {"second_s", median(second.seconds)},
                                {"ratio", interval.ratio},
                                {"low", interval.low},
                                {"high", interval.high},
                                {"turns", first.seconds.size()},
                                {"output_difference",
                                 std::isfinite(difference) ? nlohmann::json(difference) : "infinite"}}
                     .dump(2)
              << "\n";
    return Status::ok();
  }
  std::printf("first   %.4f ms  %s\nsecond  %.4f ms  %s\n", median(first.seconds) * 1e3,
              comparison.first.c_str(), median(second.seconds) * 1e3, comparison.second.c_str());
  std::printf("ratio   %.3f, between %.3f and %.3f (95 %%, %zu pairs of turns): the second takes %s\n",
              interval.ratio, interval.low, interval.high, first.seconds.size(),
              interval.high < 1  ? "less"
              : interval.low > 1 ? "more"
                                 : "as long, as far as this can tell");
  std::printf("outputs differ by %.3g\n", difference);
  return Status::ok();
}

} // namespace dspark

// dspark-bench: measures this machine, and compares plans.
#include "planning/CostSamples.h"
#include "runtime/executor/CpuLimits.h"
#include "tools/dspark-bench/Compare.h"
#include "tools/dspark-bench/Language.h"
#include "tools/dspark-bench/Probe.h"
#include "tools/dspark-bench/Sweep.h"
#include "tools/dspark-rt/OptionTexts.h"
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>

using namespace dspark;

namespace {

constexpr const char *kFooter = R"(exit codes:
  0 fine, 1 usage or file trouble, 3 the machine was too busy to be measured (nothing is saved)
examples:
  dspark-bench probe                              measure, fit, save where dspark-compile and dspark-rt look
  dspark-bench probe --samples report.json        with the steps of your own models: dspark-rt --bench 1 --threads 1 --json
  dspark-bench probe --dry-run                    print only
  dspark-bench llm smol.dsp                       how fast a language model reads and writes
  dspark-bench compare a.dsp b.dsp                two plans by turns on the same inputs)";

// Of a sample of the sweep beside those of models, whose steps find caches as steps do.
constexpr double kSweepWeight = 0.1;

struct ProbeOptions {
  std::string output, sweep;
  std::vector<std::string> samples;
  double maxSpread = 0.10, seconds = 0.002;
  int threads = 0, passes = 3;
  bool isDry = false, isVerbose = false;
};

void printLimits(const CostModel &model) {
  for (const auto &[isa, peak] : model.peaks)
    std::printf("peak    %-9s f32 %6.1f GFLOP/s  int8 %6.1f GOP/s per core\n", isa.c_str(), peak.f32 * 1e-9,
                peak.int8 * 1e-9);
  for (const MemoryLevel &level : model.levels)
    std::printf("read    %-9s %6.1f GB/s by one thread, %6.1f GB/s by %d\n", level.name.c_str(),
                level.onePerSecond * 1e-9, level.allPerSecond * 1e-9, model.threads);
  std::printf("launch  %.2f us alone, %.2f us more with %d threads\n", model.launch * 1e6,
              model.barrier * 1e6, model.threads);
}

void printFit(const FitReport &fit, bool isVerbose) {
  if (isVerbose)
    for (const KernelFit &kernel : fit.kernels)
      std::printf("kernel  %-44s %4zu samples  median error %5.1f %%  worst %6.1f %%\n", kernel.key.c_str(),
                  kernel.samples, kernel.median * 100, kernel.worst * 100);
  std::printf("fit     %zu samples of %zu kernels: R2 %.4f, median error %.1f %%, worst %.0f %%\n",
              fit.samples, fit.kernels.size(), fit.r2, fit.median * 100, fit.worst * 100);
}

// The sweep, or what an earlier one wrote to the file --sweep names.
StatusOr<SweepResult> sweepOrFile(const ProbeOptions &options) {
  if (!options.sweep.empty() && std::filesystem::exists(options.sweep)) {
    SweepResult sweep;
    DSPARK_ASSIGN_OR_RETURN(sweep.samples, readSamples(options.sweep));
    return sweep;
  }
  DSPARK_ASSIGN_OR_RETURN(SweepResult sweep,
                          runSweep(sweepCases(), activeIsa(), options.passes, options.seconds));
  if (!options.sweep.empty())
    DSPARK_RETURN_IF_ERROR(writeSamples(options.sweep, sweep.samples));
  return sweep;
}

StatusOr<int> probe(const ProbeOptions &options) {
  auto start = std::chrono::steady_clock::now();
  MachineProfile profile;
  profile.machine = MachineFacts::read();
  profile.fingerprint = profile.machine.fingerprint();
  profile.model = probeLimits(profile.machine, options.threads > 0 ? options.threads : defaultThreads());
  std::printf("machine %s, %s, %d cores, fingerprint %s\n", profile.machine.cpu.c_str(),
              profile.machine.isa.c_str(), profile.machine.cores, profile.fingerprint.c_str());
  printLimits(profile.model);
  DSPARK_ASSIGN_OR_RETURN(SweepResult sweep, sweepOrFile(options));
  for (CostSample &sample : sweep.samples)
    sample.weight = options.samples.empty() ? 1 : kSweepWeight;
  for (const std::string &path : options.samples) {
    DSPARK_ASSIGN_OR_RETURN(std::vector<CostSample> more, readSamples(path));
    sweep.samples.insert(sweep.samples.end(), more.begin(), more.end());
  }
  profile.spread = sweep.spread;
  profile.fit = fitCosts(profile.model, sweep.samples);
  printFit(profile.fit, options.isVerbose);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf(
      "noise   the same call differs by %.1f %% between passes (median; 90 %% of calls below %.1f %%); "
      "%.1f s\n",
      sweep.spread * 100, sweep.p90Spread * 100, taken.count());
  if (options.isDry)
    return 0;
  if (sweep.spread > options.maxSpread) {
    std::cerr << "dspark-bench: the machine is too busy: repeated measurements differ by "
              << int(sweep.spread * 100 + 0.5) << " %, expected at most "
              << int(options.maxSpread * 100 + 0.5)
              << " %; nothing was saved (--max-spread changes the limit)\n";
    return 3;
  }
  std::string path = options.output.empty() ? MachineProfile::defaultPath(profile.machine) : options.output;
  if (path.empty())
    return invalidArgument("neither XDG_CACHE_HOME nor HOME is set: -o FILE says where to save");
  DSPARK_RETURN_IF_ERROR(profile.save(path));
  std::printf("saved   %s\n", path.c_str());
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures this machine for the cost model, and plans on it.", "dspark-bench");
  app.footer(kFooter);
  app.require_subcommand(1);
  ProbeOptions options;
  CLI::App *probing =
      app.add_subcommand("probe", "measure peaks, bandwidths and kernels; fit and save the model");
  probing->add_option("-o,--output", options.output,
                      "profile to write (default: this machine's, in the cache folder)");
  probing->add_option("--samples", options.samples,
                      "JSON reports of dspark-rt --bench --threads 1 to fit as well");
  probing->add_option(
      "--sweep", options.sweep,
      "keep the measured calls in this file; if it exists, fit them instead of measuring again");
  probing->add_option("--max-spread", options.maxSpread, "refuse to save above this noise (default 0.10)")
      ->check(CLI::Range(0.0, 100.0));
  probing->add_option("--threads", options.threads, "threads to measure bandwidth with (default: all)")
      ->check(CLI::Range(1, 1024));
  probing->add_option("--passes", options.passes, "how often each call is measured (default 3)")
      ->check(CLI::Range(2, 100));
  probing->add_option("--seconds", options.seconds, "length of one measurement (default 0.002)")
      ->check(CLI::Range(1e-4, 10.0));
  probing->add_flag("--dry-run", options.isDry, "print, but save nothing");
  probing->add_flag("-v,--verbose", options.isVerbose, "print how well each kernel fits");
  LanguageBench language;
  CLI::App *writing =
      app.add_subcommand("llm", "tokens per second of a language model's plan: prompts, decoding, batches");
  writing->add_option("PLAN", language.plan, "the plan")->required();
  writing->add_option("--prompt", language.prompt, "tokens of a prompt (default 512)")
      ->check(CLI::Range(1, 1 << 20));
  writing->add_option("--decode", language.decode, "tokens to write (default 64)")
      ->check(CLI::Range(1, 1 << 20));
  writing->add_option("--batch", language.batch, "sequences that write side by side (default 8)")
      ->check(CLI::Range(1, 512));
  writing->add_option("--passes", language.passes, "of each, of which the median counts (default 5)")
      ->check(CLI::Range(1, 1000));
  writing->add_option("--threads", language.session.threads, "threads (default: all)")
      ->check(CLI::Range(1, 1024));
  writing->add_flag("--json", language.isJson, "print one JSON object");
  PlanComparison comparison;
  std::vector<std::string> dims, devices;
  CLI::App *comparing =
      app.add_subcommand("compare", "two plans of one interface, run by turns on the same inputs");
  comparing->add_option("FIRST", comparison.first, "a plan")->required();
  comparing->add_option("SECOND", comparison.second, "another plan of the same inputs and outputs")
      ->required();
  comparing->add_option("--inputs", comparison.archive,
                        "all or some inputs by name, FILE.npz (default: random)");
  comparing->add_option("--dim", dims, "size of a symbolic dim of random inputs, NAME=N (default 1)");
  comparing->add_option("--device", devices, "a plug-in for a device of the plans, NAME=LIBRARY.so[,CONFIG]");
  comparing->add_option("--seconds", comparison.seconds, "to measure for (default 3)")
      ->check(CLI::Range(0.0, 3600.0));
  comparing->add_option("--threads", comparison.session.threads, "threads (default: all)")
      ->check(CLI::Range(1, 1024));
  comparing->add_flag("--json", comparison.isJson, "print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  StatusOr<int> code = 0;
  if (probing->parsed()) {
    code = probe(options);
  } else if (comparing->parsed()) {
    Status status = parseDims(dims, comparison.dims);
    if (status.isOk())
      status = parseDevices(devices, comparison.session.devices);
    if (status.isOk())
      status = comparePlans(comparison);
    if (!status.isOk())
      code = status;
  } else if (Status status = runLanguageBench(language); !status.isOk()) {
    code = status;
  }
  if (code.isOk())
    return *code;
  std::cerr << "dspark-bench: " << code.status().message() << "\n";
  return 1;
}

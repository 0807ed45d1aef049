// dspark-rt: runs a plan file. See docs/dspark-rt.md.
#include "tools/dspark-rt/Compare.h"
#include "tools/dspark-rt/Language.h"
#include "tools/dspark-rt/Npy.h"
#include "tools/dspark-rt/OptionTexts.h"
#include "tools/dspark-rt/Prediction.h"
#include "tools/dspark-rt/Report.h"
#include "tools/dspark-rt/TensorProto.h"
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

using namespace dspark;
using nlohmann::json;

namespace {

constexpr const char *kFooter = R"(exit codes:
  0 fine, 1 usage or file trouble, 2 not supported by this runtime or machine, 3 a result differs, 4 out of memory
environment:
  DSPARK_ISA=baseline|avx2|avx512|amx   no kernel above this level
examples:
  dspark-rt model.dsp                                  random inputs, a summary of the outputs
  dspark-rt model.dsp --input x=x.npy --output y.npz   your inputs, your outputs
  dspark-rt model.dsp --dim batch=8 --bench 3 --profile)";

struct Options {
  std::string plan, function, output, trace, caseFolder, machine, adaptLog;
  std::vector<std::string> dims, devices;
  std::optional<bool> adapts; // none: where there are devices
  InputRequest inputs;
  SessionOptions session;
  Tolerance tolerance;
  LanguageRequest language;
  double benchSeconds = 0;
  bool isProfiled = false, isJson = false, verifies = false;
};

int exitCode(const Status &status) {
  switch (status.code()) {
  case Code::Ok:
    return 0;
  case Code::Unsupported:
    return 2;
  case Code::Mismatch:
    return 3;
  case Code::OutOfMemory:
    return 4;
  default:
    return 1;
  }
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The values, lent for as long as this lives.
class Lent {
public:
  explicit Lent(std::vector<HostValue> &values) {
    for (HostValue &value : values)
      lent.push_back(lend(value, nodes));
  }
  std::span<const BorrowedValue> values() const { return lent; }

private:
  std::deque<std::vector<BorrowedValue>> nodes;
  std::vector<BorrowedValue> lent;
};

HostTensor copyOf(const TensorView &view, std::string_view name) {
  HostTensor tensor{std::string(name), view.type, {view.dims, view.dims + view.rank}, {}};
  if (view.type == DType::String) {
    auto *strings = view.as<const StringElement>();
    tensor.strings.assign(strings, strings + view.elements());
    return tensor;
  }
  auto *bytes = static_cast<const std::byte *>(view.data);
  tensor.bytes.assign(bytes, bytes + dtypeBytes(view.type, view.elements()));
  return tensor;
}

// The tensors of an output; those in lists are called "name[0]", "name[1][0]" ...
void copyTensors(const OutputValue &value, const std::string &name, std::vector<HostTensor> &tensors) {
  if (!value.isList)
    tensors.push_back(copyOf(value.tensor, name));
  for (size_t i = 0; i < value.items.size(); ++i)
    copyTensors(value.items[i], name + "[" + std::to_string(i) + "]", tensors);
}

// --- a run on inputs from files or made up ---

class Runner {
public:
  Runner(const Options &options, Session &session, Inputs inputs)
      : options(options), session(session), inputs(std::move(inputs)), lent(this->inputs.values) {}

  Status run() {
    double start = now();
    DSPARK_RETURN_IF_ERROR(session.run(lent.values()));
    firstSeconds = now() - start;
    summarizeAll();
    if (!options.output.empty())
      DSPARK_RETURN_IF_ERROR(writeOutputs());
    if (options.benchSeconds > 0)
      DSPARK_RETURN_IF_ERROR(bench());
    if (options.isProfiled)
      DSPARK_RETURN_IF_ERROR(profile());
    if (!options.trace.empty())
      DSPARK_RETURN_IF_ERROR(trace());
    if (!options.adaptLog.empty())
      DSPARK_RETURN_IF_ERROR(writeAdaptLog(options.adaptLog, session.takeAdaptEvents()));
    if (!options.session.learned.empty())
      DSPARK_RETURN_IF_ERROR(session.saveLearned(options.session.learned));
    if (options.isJson)
      std::cout << report.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    return Status::ok();
  }

private:
  void summarizeAll();
  Status writeOutputs() const;
  Status bench();
  Status profile();
  Status trace();
  Status predict();
  Status runFor(double seconds, int leastRuns, BenchResult &result);

  const Options &options;
  Session &session;
  Inputs inputs;
  Lent lent;
  double firstSeconds = 0;
  json report;
};

void Runner::summarizeAll() {
  report["plan"] = options.plan;
  report["threads"] = session.threads();
  report["isa"] = isaName(options.session.isa);
  report["assumed_dims"] = inputs.assumedDims;
  for (size_t i = 0; i < inputs.values.size(); ++i) {
    json summary =
        summarize(lent.values()[i],
                  std::string(session.program().values()[size_t(session.program().inputs()[i])].name));
    summary["random"] = bool(inputs.isRandom[i]);
    report["inputs"].push_back(summary);
  }
  for (size_t k = 0; k < session.outputCount(); ++k)
    report["outputs"].push_back(
        summarize(session.outputValue(k), std::string(session.program().outputs()[k].name)));
  report["first_run_s"] = firstSeconds;
  MemoryFigures memory = session.memory();
  report["memory"] = {{"arena_bytes", memory.arenaBytes},
                      {"lower_bound_bytes", memory.lowerBound},
                      {"in_use_bytes", memory.bytesInUse}};
  if (options.isJson)
    return;
  std::cout << "plan    " << options.plan << ", " << session.threads() << " threads, "
            << isaName(options.session.isa) << "\n";
  for (const std::string &symbol : inputs.assumedDims)
    std::cout << "dim     " << symbol << " = 1 (--dim " << symbol << "=N changes it)\n";
  for (const json &summary : report["inputs"])
    std::cout << (summary["random"] ? "random  " : "input   ") << summaryLine(summary) << "\n";
  for (const json &summary : report["outputs"])
    std::cout << "output  " << summaryLine(summary) << "\n";
  std::printf("memory  %.2f MB of tensors (at least %.2f MB are alive at once)\n",
              double(memory.arenaBytes) * 1e-6, double(memory.lowerBound) * 1e-6);
  std::printf("first   %.3f ms, with preparing for these shapes\n", firstSeconds * 1e3);
  std::fflush(stdout);
}

Status Runner::writeOutputs() const {
  std::vector<HostTensor> tensors;
  for (size_t k = 0; k < session.outputCount(); ++k)
    copyTensors(session.outputValue(k), std::string(session.program().outputs()[k].name), tensors);
  for (size_t i = 0; i < inputs.values.size(); ++i)
    if (const ValueInfo &input = session.program().values()[size_t(session.program().inputs()[i])];
        input.isState) {
      tensors.push_back(inputs.values[i].tensor);
      tensors.back().name = std::string(input.name);
    }
  return writeNpz(options.output, tensors);
}

Status Runner::runFor(double seconds, int leastRuns, BenchResult &result) {
  for (double end = now() + seconds; int(result.seconds.size()) < leastRuns || now() < end;) {
    double start = now();
    DSPARK_RETURN_IF_ERROR(session.run(lent.values()));
    result.seconds.push_back(now() - start);
  }
  return Status::ok();
}

Status Runner::bench() {
  BenchResult result;
  DSPARK_RETURN_IF_ERROR(runFor(options.benchSeconds, 3, result));
  report["bench"] = benchSummary(result);
  if (!options.isJson)
    std::cout << "bench   " << benchLine(report["bench"]) << std::endl;
  return predict();
}

// Every step beside its prediction, in runs of their own.
Status Runner::predict() {
  constexpr size_t kRows = 12;
  std::string warning;
  MachineProfile machine = MachineProfile::ofThisMachine(warning);
  if (!options.machine.empty()) {
    if (options.machine == "generic" || options.machine == "generic-avx512") {
      machine = MachineProfile::genericOf(options.machine == "generic" ? Isa::Avx2 : Isa::Avx512);
    } else {
      DSPARK_ASSIGN_OR_RETURN(machine, MachineProfile::load(options.machine));
    }
    warning.clear();
  }
  if (!warning.empty())
    std::cerr << "dspark-rt: " << warning << "\n";
  DSPARK_ASSIGN_OR_RETURN(BoundPlan bound, session.bind(lent.values()));
  Profile measured;
  BenchResult runs;
  session.setProfile(&measured);
  Status status = runFor(options.benchSeconds, 10, runs);
  session.setProfile(nullptr);
  DSPARK_RETURN_IF_ERROR(std::move(status));
  report["prediction"] = predictionReport(bound, measured, machine, session);
  report["cost_samples"] = std::move(report["prediction"]["cost_samples"]);
  report["prediction"].erase("cost_samples");
  if (!options.isJson)
    printPrediction(report["prediction"], kRows);
  return Status::ok();
}

Status Runner::profile() {
  Profile measured;
  BenchResult result;
  session.setProfile(&measured);
  Status status = runFor(options.benchSeconds, 10, result);
  session.setProfile(nullptr);
  DSPARK_RETURN_IF_ERROR(std::move(status));
  double total = 0;
  for (double seconds : result.seconds)
    total += seconds;
  int runs = int(result.seconds.size());
  report["profile"] = profileLines(measured, runs, total / runs);
  if (!options.isJson)
    printProfile(report["profile"], total / runs);
  return Status::ok();
}

Status Runner::trace() {
  Profile measured;
  measured.keepEvents = true;
  session.setProfile(&measured);
  Status status = session.run(lent.values());
  session.setProfile(nullptr);
  DSPARK_RETURN_IF_ERROR(std::move(status));
  return writeTrace(options.trace, measured);
}

// --- a backend test case ---

struct CaseValue {
  std::string name;
  const fb::ValueType *type; // null: a tensor
};

// The values KIND_0.pb, KIND_1.pb ... in the plan's order: by name where the files name them, else by number.
StatusOr<std::vector<HostValue>> readCase(const std::string &folder, const std::string &kind,
                                          const std::vector<CaseValue> &expected) {
  auto path = [&](size_t k) { return folder + "/" + kind + "_" + std::to_string(k) + ".pb"; };
  std::vector<std::string> fileNames;
  for (size_t k = 0; std::filesystem::exists(path(k)); ++k) {
    DSPARK_ASSIGN_OR_RETURN(std::string name, readProtoName(path(k)));
    fileNames.push_back(std::move(name));
  }
  if (fileNames.size() < expected.size())
    return invalidArgument(folder + ": there are " + std::to_string(fileNames.size()) + " files " + kind +
                           "_K.pb, expected one for each of " + std::to_string(expected.size()));
  std::vector<HostValue> ordered;
  for (size_t i = 0; i < expected.size(); ++i) {
    auto named = std::find(fileNames.begin(), fileNames.end(), expected[i].name);
    size_t k = named != fileNames.end() ? size_t(named - fileNames.begin()) : i;
    DSPARK_ASSIGN_OR_RETURN(HostValue value, readValueProto(path(k), expected[i].type));
    ordered.push_back(std::move(value));
  }
  return ordered;
}

// Item by item; `largest` becomes the largest difference of all.
Status compareValues(const OutputValue &found, const HostValue &expected, const Tolerance &tolerance,
                     double &largest) {
  if (!found.isList && !expected.isList) {
    double apart = 0;
    Status status = compareTensors(found.tensor, expected.tensor, tolerance, apart);
    largest = std::max(largest, apart);
    return status;
  }
  if (found.isList != expected.isList || found.items.size() != expected.items.size())
    return {Code::Mismatch, found.isList
                                ? "is a list of " + std::to_string(found.items.size()) + " items, expected " +
                                      (expected.isList ? std::to_string(expected.items.size()) : "a tensor")
                                : "is a tensor, expected a list"};
  for (size_t i = 0; i < found.items.size(); ++i) {
    Status status = compareValues(found.items[i], expected.items[i], tolerance, largest);
    DSPARK_RETURN_IF_ERROR(status.in("item " + std::to_string(i)));
  }
  return Status::ok();
}

Status runCase(const Options &options, Session &session) {
  const Program &program = session.program();
  if (!std::filesystem::is_directory(options.caseFolder))
    return invalidArgument(options.caseFolder + ": no such folder");
  std::vector<CaseValue> inputNames, outputNames;
  for (int value : program.inputs())
    inputNames.push_back(
        {std::string(program.values()[size_t(value)].name), program.values()[size_t(value)].typeTree});
  for (const OutputInfo &output : program.outputs())
    outputNames.push_back({std::string(output.name), output.typeTree});
  DSPARK_ASSIGN_OR_RETURN(auto inputs, readCase(options.caseFolder, "input", inputNames));
  DSPARK_ASSIGN_OR_RETURN(auto expected, readCase(options.caseFolder, "output", outputNames));
  DSPARK_RETURN_IF_ERROR(session.run(Lent(inputs).values()));
  json report = {{"case", options.caseFolder}, {"outputs", json::array()}};
  for (size_t k = 0; k < expected.size(); ++k) {
    double largest = 0;
    Status status = compareValues(session.outputValue(k), expected[k], options.tolerance, largest);
    DSPARK_RETURN_IF_ERROR(status.in(options.caseFolder + ": output '" + outputNames[k].name + "'"));
    std::string type =
        expected[k].isList ? "list of " + std::to_string(expected[k].items.size()) : expected[k].tensor.str();
    report["outputs"].push_back(
        {{"name", outputNames[k].name}, {"type", type}, {"largest_difference", largest}});
    if (!options.isJson)
      std::printf("output  %s  %s  as expected, largest difference %.3g\n", outputNames[k].name.c_str(),
                  type.c_str(), largest);
  }
  if (options.isJson)
    std::cout << report.dump(2) << "\n";
  return Status::ok();
}

Status runAll(Options &options) {
  DSPARK_RETURN_IF_ERROR(parseDims(options.dims, options.inputs.dims));
  DSPARK_RETURN_IF_ERROR(parseDevices(options.devices, options.session.devices));
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(options.plan));
  if (options.verifies)
    DSPARK_RETURN_IF_ERROR(file->verifyWeights());
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file), options.function));
  options.session.adapt = options.adapts.value_or(!options.session.devices.empty());
  if (options.language.isAsked()) {
    options.language.isJson = options.isJson;
    options.language.model.session = options.session;
    return runLanguage(options.language, std::move(program));
  }
  if (options.session.adapt && !options.session.devices.empty() && options.session.learned.empty())
    options.session.learned = options.plan + ".learned";
  DSPARK_ASSIGN_OR_RETURN(auto session, Session::create(program, options.session));
  for (const std::string &note : session->notes())
    std::cerr << "dspark-rt: " << note << "\n";
  if (!options.caseFolder.empty())
    return runCase(options, *session);
  DSPARK_ASSIGN_OR_RETURN(Inputs inputs, gatherInputs(*program, options.inputs));
  return Runner(options, *session, std::move(inputs)).run();
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs a plan that dspark-compile made. Inputs that no file gives are random.", "dspark-rt");
  app.footer(kFooter);
  Options options;
  std::string isa;
  bool refusesCode = false, adapts = false;
  app.add_option("PLAN", options.plan, "the plan file")->required();
  app.add_option("--input", options.inputs.files, "an input, NAME=FILE.npy; may be repeated");
  app.add_option("--inputs", options.inputs.archive, "all or some inputs by name, FILE.npz");
  app.add_option("--output", options.output,
                 "write all outputs, and states as the run left them, to this FILE.npz");
  app.add_option("--function", options.function, "run this function of the plan, instead of its model");
  app.add_option("--dim", options.dims, "size of a symbolic dim of random inputs, NAME=N (default 1)");
  app.add_option("--seed", options.inputs.seed, "of random inputs (default 0)");
  app.add_option("--threads", options.session.threads,
                 "threads (default: the affinity mask and cgroup quota)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", options.devices,
                 "a plug-in for a device of the plan, NAME=LIBRARY.so[,CONFIG]; may be repeated");
  CLI::Option *adapting = app.add_flag(
      "--adapt,!--no-adapt", adapts,
      "choose per shape, from measured times: the device of each region, or without devices between "
      "all threads "
      "and one (default: with devices)");
  app.add_option("--adapt-log", options.adaptLog,
                 "write every change of that choice, and every fault, to this file, a JSON line each");
  app.add_option(
      "--learned", options.session.learned,
      "file of what adaptation has learned, read and written (default: PLAN.learned, with devices)");
  app.add_flag("--virtual-time", options.session.virtualTime,
               "simulate: adapt to the times that devices claim and the generic profile predicts");
  app.add_option("--isa", isa, "highest instruction set to use: baseline, avx2, avx512, amx");
  app.add_option("--memory-limit", options.session.memoryLimit, "for tensors and scratch, e.g. 512MB")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--bench", options.benchSeconds, "repeat the run for so many seconds and print the median")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option(
      "--machine", options.machine,
      "machine profile that --bench predicts with: a file, 'generic' or 'generic-avx512' (default: this machine's)");
  app.add_flag("--profile", options.isProfiled,
               "print a table of steps: time, GB/s, GFLOP/s, kernel, ONNX nodes");
  app.add_option("--trace", options.trace, "write a Chrome trace of one run to this file");
  app.add_flag("--json", options.isJson, "print one JSON object instead of text");
  app.add_option("--case", options.caseFolder,
                 "run on input_K.pb of this folder and compare with output_K.pb");
  app.add_option("--rtol", options.tolerance.relative, "relative tolerance of --case (default 1e-3)");
  app.add_option("--atol", options.tolerance.absolute, "absolute tolerance of --case (default 1e-7)");
  app.add_flag("--verify", options.verifies, "check the hash of the weights first");
  app.add_flag("--no-native-code", refusesCode, "do not load generated code from the plan");
  addLanguageOptions(app, options.language);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  if (!isa.empty() && !isaFromName(isa, options.session.isa)) {
    std::cerr << "dspark-rt: --isa expects baseline, avx2, avx512 or amx, found '" << isa << "'\n";
    return 1;
  }
  if (adapting->count() > 0)
    options.adapts = adapts;
  options.session.isa = std::min(options.session.isa, activeIsa());
  options.session.nativeCode = !refusesCode;
  Status status;
  try {
    status = runAll(options);
  } catch (const std::bad_alloc &) {
    status = {Code::OutOfMemory, options.plan + ": out of memory"};
  } catch (const std::exception &error) {
    status = {Code::Internal, options.plan + ": " + error.what()};
  }
  if (!status.isOk())
    std::cerr << "dspark-rt: " << status.message() << "\n";
  return exitCode(status);
}

#include "compiler/Pipeline/Compile.h"
#include "compiler/Pipeline/Codegen.h"
#include "compiler/Pipeline/EmitPlan.h"
#include "compiler/Recovery/RecoverDecoder.h"
#include "compiler/Support/LocationNames.h"
#include "dialects/DSpark/DSpark.h"
#include "dialects/Plan/Plan.h"
#include "frontends/checkpoint/ExportSettings.h"
#include "frontends/checkpoint/HuggingFaceTokenizer.h"
#include "frontends/language/ImportLanguageModel.h"
#include "frontends/onnx/Import.h"
#include "mlir/IR/Verifier.h"
#include "runtime/llm/tokenizer/SpecFormat.h"
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace mlir;

namespace dspark {
namespace {

constexpr int kUsage = 1, kUnsupported = 2, kOutOfMemory = 4;

int exitCodeOf(const Status &status) {
  switch (status.code()) {
  case Code::Ok:
    return 0;
  case Code::Unsupported:
    return kUnsupported;
  case Code::OutOfMemory:
    return kOutOfMemory;
  default:
    return kUsage;
  }
}

/// Seconds that this process was on a core, all threads together.
double cpuSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

/// Notes what each pass took.
class PassTimer : public PassInstrumentation {
public:
  explicit PassTimer(std::vector<PassTime> &times) : times(times) {}

private:
  void runBeforePass(Pass *, Operation *) override { begin = cpuSeconds(); }
  void runAfterPass(Pass *pass, Operation *) override {
    if (!pass->getArgument().empty()) // the adaptors that go from a module to its functions have none
      times.push_back({pass->getArgument().str(), cpuSeconds() - begin});
  }

  std::vector<PassTime> &times;
  double begin = 0; // passes that have an argument hold no others
};

class Compiler {
public:
  explicit Compiler(const CompileOptions &options)
      : options(options), context(MLIRContext::Threading::DISABLED),
        handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            note(diagnostic);
        }) {
    context.loadDialect<ir::DSparkDialect, plan::PlanDialect, func::FuncDialect>();
  }

  CompileReport run() {
    for (int i = 0; i < kPhaseCount && report.exitCode == 0; ++i) {
      auto phase = Phase(i);
      if (options.level == 0 && isOptional(phase)) {
        if (options.stopAfter == phase)
          break;
        continue;
      }
      if (options.onPhase)
        options.onPhase(phase);
      report.times.emplace_back().phase = phase;
      auto begin = std::chrono::steady_clock::now();
      double cpuBegin = cpuSeconds();
      runPhase(phase);
      std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      report.times.back().seconds = seconds.count();
      report.times.back().cpuSeconds = cpuSeconds() - cpuBegin;
      if (report.exitCode == 0 && phase != Phase::Emit)
        dump(phase);
      if (options.stopAfter == phase)
        break;
    }
    if (report.exitCode == 0 && options.stopAfter && *options.stopAfter != Phase::Emit)
      writeText(options.output);
    report.contractions = choices.contractions;
    report.values = choices.values;
    report.products = choices.products;
    report.attentions = choices.attentions;
    return std::move(report);
  }

private:
  void fail(int exitCode, std::string message) {
    report.exitCode = exitCode;
    report.message += (report.message.empty() ? "" : "\n") + std::move(message);
  }

  // "node: message" for a diagnostic of a pass or verifier.
  void note(Diagnostic &diagnostic) {
    std::string node = locationNames(diagnostic.getLocation());
    diagnostics += (diagnostics.empty() ? "" : "\n") + options.model + ": " +
                   (node.empty() ? "" : "node '" + node + "': ") + diagnostic.str();
  }

  void runPhase(Phase phase) {
    switch (phase) {
    case Phase::Import:
      return import();
    case Phase::Codegen:
      return codegen();
    case Phase::Emit:
      return emit();
    default:
      runPasses(*module, {phase});
    }
    if (phase == Phase::Pack && report.exitCode == 0)
      checkChoices();
    if (phase == Phase::Fuse && report.exitCode == 0 && !languageModel)
      recover();
  }

  // A plan never has another precision than was chosen.
  void checkChoices() {
    for (const auto &[node, choice] : options.precision)
      if (!choices.applied.contains(node))
        return fail(kUsage, options.model + ": node '" + node + "' cannot be computed as " + choice.layout);
  }

  void runPasses(ModuleOp on, std::initializer_list<Phase> phases) {
    PassManager passes(&context);
    for (Phase phase : phases)
      addPhasePasses(phase, passes, weights, &choices, options.joinsSteps);
    passes.addInstrumentation(std::make_unique<PassTimer>(report.times.back().passes));
    if (failed(passes.run(on)))
      fail(kUnsupported, diagnostics.empty() ? options.model + ": phase " +
                                                   std::string(phaseName(*phases.begin())) + " failed"
                                             : diagnostics);
  }

  // An exported decoder becomes the step of a language model.
  void recover() {
    bool isAsked = options.languageModel == LanguageModel::Always;
    bool isLikely = options.dims.empty() && recovery::looksLikeDecoder(*module);
    if (options.languageModel == LanguageModel::Never || (!isAsked && !isLikely))
      return;
    StatusOr<language::ImportedModel> recovered = recoveredModel();
    if (!recovered.isOk() && isAsked)
      return fail(exitCodeOf(recovered.status()),
                  options.model + ": no language model: " + recovered.status().message());
    if (!recovered.isOk()) {
      report.message =
          options.model + ": compiled as a graph, not as a language model: " + recovered.status().message();
      return;
    }
    module = std::move(recovered->module);
    languageModel = std::move(*recovered);
    runPasses(*module, {Phase::Canonicalize, Phase::Fuse});
  }

  StatusOr<language::ImportedModel> recoveredModel() {
    std::string folder = std::filesystem::path(options.model).parent_path().string();
    folder = folder.empty() ? "." : folder;
    DSPARK_ASSIGN_OR_RETURN(checkpoint::ExportSettings settings, checkpoint::readExportSettings(folder));
    DSPARK_ASSIGN_OR_RETURN(checkpoint::HuggingFaceTokenizer tokenizer,
                            checkpoint::readHuggingFaceTokenizer(folder));
    OwningOpRef<ModuleOp> branch = recovery::withCacheBranch(*module);
    if (branch)
      runPasses(*branch, {Phase::Canonicalize, Phase::Fuse});
    DSPARK_ASSIGN_OR_RETURN(recovery::RecoveredDecoder decoder,
                            recovery::recoverDecoder(branch ? *branch : *module, settings.contextLength,
                                                     decoderOptions(), *weights));
    language::ImportedModel model;
    model.module = std::move(decoder.module);
    model.tokenizer = std::move(tokenizer.spec);
    model.chatTemplate = std::move(tokenizer.chatTemplate);
    model.config.architecture = settings.architecture;
    model.config.contextLength = settings.contextLength;
    model.config.vocabulary = decoder.vocabulary;
    for (int64_t window : decoder.windows)
      model.config.layers.push_back({.window = window});
    DSPARK_RETURN_IF_ERROR(language::checkVocabulary(model));
    return model;
  }

  language::DecoderOptions decoderOptions() const { return {options.cacheType, options.int8Arithmetic, {}}; }

  void import() {
    if (language::isCheckpoint(options.model))
      importCheckpoint();
    else
      importOnnx();
    if (options.languageModel == LanguageModel::Always && options.level == 0 && !languageModel)
      fail(kUsage, options.model + ": --language-model needs the optimisations that -O0 leaves out");
    if (report.exitCode == 0 && failed(verify(*module)))
      fail(kUnsupported, diagnostics);
  }

  void importCheckpoint() {
    if (!options.dims.empty())
      return fail(kUsage, options.model +
                              ": the dims of a language model are chosen when it runs; --dim fixes those "
                              "of ONNX models");
    language::LanguageOptions language;
    language.decoder = decoderOptions();
    language.draft = options.draft;
    language.selfDrafts = options.selfDrafts;
    auto model = language::importLanguageModel(options.model, language, context);
    if (!model.isOk())
      return fail(exitCodeOf(model.status()), model.status().message());
    module = std::move(model->module);
    *weights = std::move(model->weights);
    languageModel = std::move(*model);
  }

  void importOnnx() {
    onnx::ImportOptions importOptions;
    importOptions.dims = options.dims;
    onnx::ImportResult result = onnx::importOnnx(options.model, context, importOptions);
    if (!result.isOk())
      return fail(result.isInvalid() ? kUsage : kUnsupported, result.report(options.model));
    module = std::move(result.module);
    *weights = std::move(result.weights);
  }

  func::FuncOp mainFunction() { return module->lookupSymbol<func::FuncOp>("main"); }

  void codegen() {
    if (!options.codegen)
      return;
    StatusOr<GeneratedCode> generated = generateCode(*module, options.isa, options.threads);
    if (!generated.isOk())
      return fail(exitCodeOf(generated.status()), options.model + ": " + generated.status().message());
    code = std::move(*generated);
    report.generated = code.kernels;
  }

  void emit() {
    Status status = writePlan();
    if (!status.isOk())
      fail(exitCodeOf(status), status.message());
  }

  Status writePlan() {
    StatusOr<std::unique_ptr<PlanWriter>> writer = PlanWriter::create(options.output);
    if (!writer.isOk())
      return writer.status();
    WeightPlaces places;
    StatusOr<fb::PlanT> plan = emitPlan(mainFunction(), *weights, **writer, places);
    if (!plan.isOk())
      return plan.status();
    for (func::FuncOp function : module->getOps<func::FuncOp>())
      if (function != mainFunction()) {
        DSPARK_ASSIGN_OR_RETURN(fb::PlanT further, emitPlan(function, *weights, **writer, places));
        further.name = function.getName().str();
        (*writer)->addFunction(further);
      }
    for (auto &[isa, elf] : code.objects)
      (*writer)->addCode(uint32_t(isa), std::move(elf));
    (*writer)->setMeta(meta());
    if (languageModel) {
      (*writer)->setTokenizer(llm::encodeTokenizer(languageModel->tokenizer));
      (*writer)->setTemplate(languageModel->chatTemplate);
      (*writer)->setDrafters(llm::encodeDrafters({options.speculates, languageModel->drafters}));
    }
    report.steps = int(plan->body->steps.size());
    for (auto &step : plan->body->steps)
      report.fused += step->op == "fused" || step->op == "fused_reduce";
    DSPARK_RETURN_IF_ERROR((*writer)->finish(*plan));
    std::error_code error;
    report.planBytes = std::filesystem::file_size(options.output, error);
    return Status();
  }

  std::string meta() const {
    nlohmann::json json;
    json["producer"] = "dspark-compile 0.1.0";
    json["model"] = std::filesystem::path(options.model).filename().string();
    json["dims"] = options.dims;
    json["codegen"] = options.codegen && options.level > 0;
    json["level"] = options.level;
    for (auto &[isa, elf] : code.objects)
      json["isa"].push_back(std::string(isaName(isa)));
    if (languageModel)
      json["language_model"] = {{"architecture", languageModel->config.architecture},
                                {"layers", languageModel->config.layers.size()},
                                {"vocabulary", languageModel->config.vocabulary},
                                {"context_length", languageModel->config.contextLength},
                                {"window", languageModel->config.widestWindow()}};
    return json.dump(2);
  }

  void dump(Phase phase) {
    if (options.dumpDir.empty())
      return;
    std::error_code error;
    std::filesystem::create_directories(options.dumpDir, error);
    std::string number = std::to_string(int(phase));
    writeText(options.dumpDir + "/" + std::string(2 - std::min<size_t>(2, number.size()), '0') + number +
              "-" + std::string(phaseName(phase)) + ".mlir");
  }

  void writeText(const std::string &path) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream,
                  OpPrintingFlags().enableDebugInfo(true, /*prettyForm=*/true).elideLargeElementsAttrs(64));
    if (path.empty() || path == "-") {
      llvm::outs() << text << "\n";
      return;
    }
    std::ofstream file(path);
    file << text << "\n";
    if (!file.flush())
      fail(kUsage, path + ": cannot be written");
  }

  const CompileOptions &options;
  PrecisionChoices choices{options.precision, options.bytes, options.ranges, {}, {}, {}, {}, {}};
  CompileReport report;
  MLIRContext context;
  std::string diagnostics;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  std::shared_ptr<WeightStore> weights = std::make_shared<WeightStore>();
  GeneratedCode code;
  std::optional<language::ImportedModel> languageModel; // its module and weights have moved to those above
};

} // namespace

CompileReport compileModel(const CompileOptions &options) { return Compiler(options).run(); }

} // namespace dspark

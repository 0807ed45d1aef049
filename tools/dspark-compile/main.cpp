// dspark-compile: model file -> plan file. See docs/dspark-compile.md.
#include "compiler/Pipeline/Compile.h"
#include "frontends/onnx/OpTable.h"
#include "tools/dspark-compile/Decide.h"
#include "tools/dspark-compile/Drafts.h"
#include "tools/dspark-compile/Progress.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>

using namespace dspark;

namespace {

constexpr const char *kFooter = R"(phases, in order:
  import canonicalize fuse layout regions pack schedule codegen emit
exit codes:
  0 fine, 1 usage or file trouble, 2 model not supported, 3 the error bound cannot be met, 4 out of memory
example:
  dspark-compile model.onnx -o model.dsp --dim batch=1)";

// "NAME=N" pairs; false with a sentence on stderr if one is not.
bool parseDims(const std::vector<std::string> &texts, std::map<std::string, int64_t> &dims) {
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    char *end = nullptr;
    long long value = equals == std::string::npos ? -1 : std::strtoll(text.c_str() + equals + 1, &end, 10);
    if (equals == std::string::npos || equals == 0 || !end || *end != 0 || end == text.c_str() + equals + 1 ||
        value < 0) {
      std::cerr << "dspark-compile: --dim expects NAME=N with N >= 0, found '" << text << "'\n";
      return false;
    }
    dims[text.substr(0, equals)] = value;
  }
  return true;
}

// MODEL with .dsp; a folder's name may have dots that begin no extension.
std::string planBeside(const std::string &model) {
  std::filesystem::path path(model);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return path.replace_extension(".dsp").string();
  return (path.has_filename() ? path : path.parent_path()).string() + ".dsp";
}

void printTime(double seconds, double cpuSeconds, std::string_view name) {
  std::fprintf(stderr, "%10.1f ms %10.1f ms on cores  %s\n", seconds * 1e3, cpuSeconds * 1e3,
               std::string(name).c_str());
}

void printTiming(const CompileReport &report, bool withPasses) {
  double total = 0, cpuTotal = 0;
  for (const PhaseTime &time : report.times) {
    printTime(time.seconds, time.cpuSeconds, phaseName(time.phase));
    if (withPasses)
      for (const PassTime &pass : time.passes)
        std::fprintf(stderr, "%27.1f ms on cores    %s\n", pass.cpuSeconds * 1e3, pass.name.c_str());
    total += time.seconds;
    cpuTotal += time.cpuSeconds;
  }
  printTime(total, cpuTotal, "total");
}

// One row of the operator table a line: domain, operator, first version, catalogue entry and kind, or why it
// is refused.
void printOperators() {
  for (const onnx::OpRow *row : onnx::allRows()) {
    std::string domain(row->domain.empty() ? "ai.onnx" : row->domain);
    std::cout << domain << '\t' << row->op << '\t' << row->since << '\t' << row->entry << '\t' << row->kind
              << '\t' << (row->refusal ? row->refusal : "") << '\n';
  }
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compiles an ONNX model or a language model's checkpoint to a plan that dspark-rt runs.",
               "dspark-compile");
  app.footer(kFooter);
  CompileOptions options;
  DecideOptions decide;
  PrecisionOptions &precision = decide.precision;
  std::vector<std::string> dims;
  std::string stopAfter, isa, timing, bound = "0", cacheType = "f16", arithmetic = "int8",
                                      languageModel = "auto";
  bool noCodegen = false, verbose = false;
  app.add_option(
         "MODEL", options.model,
         "the ONNX file, or a language model: a GGUF file or a Hugging Face folder (docs/checkpoints.md)")
      ->required();
  app.add_option("-o,--output", options.output, "the plan to write (default: MODEL with .dsp)");
  app.add_option("--dim", dims, "fix a dim symbol, NAME=N; without it one plan serves every shape");
  app.add_option("--cache-type", cacheType,
                 "of a language model's keys and values: f16 (default), bf16, f32 or i8")
      ->check(CLI::IsMember({"f16", "bf16", "f32", "i8"}));
  app.add_option("--arithmetic", arithmetic,
                 "how a language model's rows meet weights of few bits: int8 (default; rows are quantised as "
                 "llama.cpp "
                 "does) or f32 (nothing is rounded)")
      ->check(CLI::IsMember({"int8", "f32"}));
  app.add_option(
         "--language-model", languageModel,
         "whether an ONNX export of a decoder becomes a language model's plan: auto (default; where "
         "it is recognised and its tokenizer lies beside it), always (or say what does not fit), never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  DraftRequest draft;
  auto *drafts = app.add_option("--speculative-draft", draft.draft,
                                "what a language model's plan guesses tokens ahead with: auto (default) and "
                                "lookup (in prompt and answer, "
                                "which needs nothing of the plan), self (some of the model's own layers), or "
                                "the FOLDER of a DSpark, DFlash "
                                "or EAGLE-3 draft; beside the last two, dspark-rt looks up, too");
  app.add_option(
      "--speculative-text", draft.text,
      "text FILE that drafts are tried on, to choose layers and calibrate confidences (default: what the "
      "model says by itself)");
  app.add_flag("--speculation,!--no-speculation", options.speculates,
               "whether dspark-rt guesses unless it is told (default)")
      ->excludes(drafts);
  app.add_option(
         "--precision", precision.precision,
         "auto (default: f32, and fewer bits as far as --max-error allows), f32, or fewer bits "
         "everywhere: int8 (weights, rows by 32), int8_static (weights and activations), int4, f16, bf16")
      ->check(CLI::IsMember({"auto", "f32", "int8", "int8_static", "int4", "f16", "bf16"}));
  app.add_option(
      "--max-error", bound,
      "bound on the outputs' error; what is faster within it is chosen: 0.01 (relative), top1=0.001 (share "
      "of changed answers) or kl=0.01 (divergence of the outputs' softmax)");
  app.add_option("--calib", precision.files,
                 "inputs that precisions are judged by, FILE.npz per set (default: random ones)");
  app.add_option("--calib-dim", precision.dims,
                 "size of a symbolic dim of random inputs, NAME=N (default 1), or several, NAME=N,M: a form "
                 "that pays with few rows is then used up to as many as it paid with");
  app.add_option("--sensitive", precision.sensitive, "nodes that stay f32");
  app.add_option("--device", decide.devices,
                 "a device beside the CPU that steps may run on, NAME=LIBRARY.so[,CONFIG]; may be repeated");
  app.add_option("--run-threads", decide.threads,
                 "threads of the CPU that devices are weighed against (default: one per core)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--plan-rules", decide.rules, "overrule what is chosen by this JSON file (docs/devices.md)");
  app.add_option("--save-plan-rules", decide.saveRules, "write what was chosen as rules to this file");
  app.add_flag("--explain{table}", decide.explain,
               "print each step's device, precision, kernel, times, error and best rejected alternative; "
               "--explain=json, or --explain=FILE.html for a page with a picture")
      ->check([](const std::string &value) -> std::string {
        bool isGood = value == "table" || value == "json" || value.ends_with(".html");
        return isGood ? "" : "expected table, json or FILE.html, found '" + value + "'";
      });
  app.add_option("--remarks", decide.remarks, "write the same facts as MLIR remarks to this YAML file");
  app.add_option("-O", options.level,
                 "0: the graph as it is, kernel by kernel; 1: all optimisations (default)")
      ->check(CLI::Range(0, 1));
  app.add_option("--threads", options.threads, "compile threads (default: one per core)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--isa", isa,
                 "highest instruction set to generate code for: baseline, avx2, avx512 (default: all)");
  app.add_option("--stop-after", stopAfter, "stop after a phase and print the IR (to -o if given)");
  app.add_option("--dump-phases", options.dumpDir, "write the IR after each phase into this folder");
  app.add_flag("--timing{phases}", timing, "print the time of each phase; --timing=passes: also of each pass")
      ->check(CLI::IsMember({"phases", "passes"}));
  app.add_flag("--no-codegen", noCodegen, "no native code in the plan: fused steps are interpreted");
  app.add_flag_callback(
      "--list-operators",
      [] {
        printOperators();
        throw CLI::Success();
      },
      "print the table of ONNX operators, tab-separated, and stop");
  app.add_flag("-v,--verbose", verbose, "print each phase as it starts and a summary");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  if (!parseDims(dims, options.dims))
    return 1;
  StatusOr<ErrorBound> parsed = ErrorBound::parse(bound);
  if (!parsed.isOk()) {
    std::cerr << "dspark-compile: " << parsed.status().message() << "\n";
    return 1;
  }
  precision.bound = *parsed;
  options.codegen = !noCodegen;
  options.int8Arithmetic = arithmetic == "int8";
  options.cacheType = dtypeFromName(cacheType);
  options.languageModel = languageModel == "always"  ? LanguageModel::Always
                          : languageModel == "never" ? LanguageModel::Never
                                                     : LanguageModel::Auto;
  if (!stopAfter.empty() && !(options.stopAfter = phaseFromName(stopAfter))) {
    std::cerr << "dspark-compile: no phase is called '" << stopAfter << "'; see --help\n";
    return 1;
  }
  if (!isa.empty() && !isaFromName(isa, options.isa.emplace())) {
    std::cerr << "dspark-compile: --isa expects baseline, avx2 or avx512, found '" << isa << "'\n";
    return 1;
  }
  bool printsIr = options.stopAfter && *options.stopAfter != Phase::Emit;
  if (options.output.empty())
    options.output = printsIr ? "-" : planBeside(options.model);

  Progress progress(verbose);
  options.onPhase = [&](Phase phase) { progress.start(std::string(phaseName(phase))); };
  bool decides = decide.isAsked() && !printsIr && options.level > 0;
  bool hasDraft = draft.needsTrial() && !printsIr;
  if (printsIr && draft.needsTrial() && draft.draft != "self")
    options.draft = draft.draft;
  if (hasDraft && decides) {
    std::cerr << "dspark-compile: --speculative-draft and --precision exclude each other\n";
    return 1;
  }
  CompileReport report = hasDraft  ? compileWithDraft(options, draft)
                         : decides ? compileAndDecide(options, decide)
                                   : compileModel(options);
  progress.finish();
  if (!timing.empty())
    printTiming(report, timing == "passes");
  if (report.exitCode != 0) {
    std::cerr << "dspark-compile: " << report.message << "\n";
    return report.exitCode;
  }
  if (!report.message.empty())
    std::cerr << report.message << "\n";
  if (verbose && !printsIr)
    std::cerr << options.output << ": " << report.planBytes << " bytes, " << report.steps << " steps, "
              << report.fused << " fused, " << report.generated << " generated kernels\n";
  return 0;
}

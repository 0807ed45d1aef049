// A whole compile: model file in, plan file out.
#pragma once
#include "compiler/Pipeline/Pipeline.h"
#include "kernels/common/isa.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dspark {

/// Whether an ONNX model becomes a language model's plan (compiler/Recovery): where it is one and its
/// tokenizer lies beside it, or else fail, or never.
enum class LanguageModel { Auto, Always, Never };

struct CompileOptions {
  std::string model;
  std::string output;                  // the plan; with stopAfter the IR's text, "-" for standard output
  std::map<std::string, int64_t> dims; // symbols to fix
  int threads = 0;                     // compile threads; 0 is one per core
  std::optional<Isa> isa;              // highest level to generate code for; none is all levels
  std::optional<Phase> stopAfter;
  std::string dumpDir; // writes NN-phase.mlir after each phase; "" does not
  bool codegen = true;
  DType cacheType = DType::F16; // of a language model's keys and values: f32, f16, bf16, i8
  bool int8Arithmetic = true;   // of a language model: rows in 8 bits for products with weights of few bits
  LanguageModel languageModel = LanguageModel::Auto;
  std::string draft; // of a language model: folder of a draft that reads its hidden states; "": none
  // Of a language model of so many layers: those that draft by themselves, a drafter each; null: none.
  std::function<std::vector<std::vector<int64_t>>(int64_t layers)> selfDrafts;
  bool speculates = true; // of a language model: false, nothing is drafted unless a run asks for it
  bool joinsSteps =
      true;      // convolutions, or products, may become one step; false where something is decided for each
  int level = 1; // 0: the model as it is, without the phases that are optional (Pipeline.h)
  std::map<std::string, PrecisionChoice>
      precision;                      // contractions in fewer bits, by node (PrecisionChoices.h)
  ByteMode bytes = ByteMode::None;    // what is made of contractions that may run on bytes
  std::vector<ByteRange> ranges;      // of their values, as Observe numbers them
  std::function<void(Phase)> onPhase; // called as each phase starts
};

struct PassTime {
  std::string name; // as on the command line of dspark-opt
  double cpuSeconds;
};

struct PhaseTime {
  Phase phase = Phase::Import;
  double seconds = 0;           // by the wall
  double cpuSeconds = 0;        // of all threads
  std::vector<PassTime> passes; // in the order they ran; import, codegen and emit have none
};

struct CompileReport {
  int exitCode = 0;    // as documented in docs/dspark-compile.md
  std::string message; // what went wrong, one or more lines; or, when all went well, warnings
  std::vector<PhaseTime> times;
  int steps = 0, fused = 0, generated = 0;
  std::vector<ByteContraction> contractions; // that may run on bytes; with `bytes` other than None
  std::vector<ByteValue> values;             // likewise: what may become bytes, by number
  std::vector<PackedProduct> products;       // whose weights may be of fewer bits
  std::vector<std::string> attentions;       // nodes of attention, in the order of their steps
  uint64_t planBytes = 0;
};

CompileReport compileModel(const CompileOptions &options);

} // namespace dspark

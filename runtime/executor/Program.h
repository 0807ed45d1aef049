// A plan made ready to be traced: operators looked up, attributes as views, uses counted, constants located.
// Immutable after create(), except for generated code, which is loaded on first demand; shared by sessions
// and threads.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/isa.h"
#include "kernels/common/strings.h"
#include "runtime/executor/NativeCode.h"
#include "runtime/format/PlanFile.h"
#include "runtime/memory/Arena.h"
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dspark {

struct StepInfo;

/// A value from outside that a block uses, and how often (nested blocks included).
struct Capture {
  int value;
  int uses;
};

struct BlockInfo {
  std::span<const int32_t> args, results; // value ids
  std::vector<StepInfo> steps;
  std::vector<Capture> captures; // no constants
};

struct StepInfo {
  fb::StepKind kind;
  std::string_view opName;
  const OpEntry *op = nullptr;              // Kernel steps only
  std::span<const int32_t> inputs, outputs; // value ids or -1
  std::vector<Attr> attrs;
  std::span<const int32_t> dims; // Dims steps: expression ids
  std::vector<BlockInfo> blocks;
  std::string symbol;                // generated code, "" if none
  std::string_view location, kernel; // kernel: the row to prefer, "" if none
  int index;                         // number of the step in the plan, in file order

  /// "node 'conv1' (conv)" for messages.
  std::string where() const;
  /// The result that may overwrite this operand of a Kernel step.
  std::optional<size_t> updated(size_t operand) const;
};

struct ValueInfo {
  std::string_view name, layout;
  fb::ValueKind kind;
  DType type;
  std::span<const int32_t> dims; // expression ids
  bool hasDims;
  int uses = 0;                            // references by steps, block results and outputs
  bool isState = false;                    // an input that the one step which uses it overwrites
  const fb::ValueType *typeTree = nullptr; // of an input that is no tensor
  // Constants only:
  std::span<const std::byte> bytes; // of strings: of their StringElements
  TensorInfo info;                  // with contents where the tensor is small and of integers
};

struct OutputInfo {
  int value;
  std::string_view name;
  DType type;                              // Undefined if the plan does not say
  std::span<const int32_t> dims;           // expression ids, -1 for unknown
  const fb::ValueType *typeTree = nullptr; // of an output that is no tensor
};

/// Steps of the body that one decision covers, and the devices that may run them; 0 is the CPU.
struct RegionInfo {
  struct Variant {
    int device;
    double seconds; // as predicted when the plan was made
    uint64_t bytes; // of weights in the device's memory
  };
  std::span<const int32_t> steps;   // in body().steps
  std::vector<Variant> variants;    // the CPU's among them
  int chosen;                       // by the compiler
  bool isPinned;                    // and nothing but a fault changes it
  std::span<const int32_t> choices; // instead of `chosen`, by entry of Program::sizes(); empty: for all
};

/// Of dim symbols, by number, and of each a size that choices were made for.
using SizesInfo = std::vector<std::pair<int, int64_t>>;

class Program {
public:
  /// Unsupported if the plan uses operators that this runtime does not have; the message names them all.
  /// CorruptFile if a state is not updated by exactly one step; InvalidArgument if the plan has no function
  /// of that name ("" is the plan's own).
  static StatusOr<std::shared_ptr<const Program>> create(std::shared_ptr<const PlanFile> file,
                                                         std::string_view function = "");

  const PlanFile &file() const { return *planFile; }
  const std::shared_ptr<const PlanFile> &sharedFile() const { return planFile; }
  const BlockInfo &body() const { return main; }
  std::span<const ValueInfo> values() const { return valueInfos; }
  std::span<const int> inputs() const { return inputValues; } // value ids
  std::span<const OutputInfo> outputs() const { return outputInfos; }
  size_t symbolCount() const { return symbolNames.size(); }
  std::span<const std::string> symbols() const { return symbolNames; }
  int stepCount() const { return steps; }
  /// The names of the devices that regions may run on; devices()[0] is "cpu".
  std::span<const std::string> devices() const { return deviceNames; }
  std::span<const RegionInfo> regions() const { return regionInfos; }
  std::span<const SizesInfo> sizes() const { return sizesInfos; }
  /// Of a step of the body; -1 if it is in none.
  int regionOf(size_t step) const { return stepRegions[step]; }

  /// The expression as text, "?" for -1.
  std::string dimText(int expression) const;
  /// Values of all expressions under the given symbols; unknown where a symbol is.
  void evaluate(std::span<const Dim> symbols, std::vector<Dim> &expressions) const;
  /// The symbol that this expression is, or -1.
  int symbolOf(int expression) const;

  /// The function of generated code for the best level <= cap, or null if the plan has none.
  StatusOr<const void *> code(const std::string &symbol, Isa cap) const;

private:
  Program() = default;
  Status readValues();
  void readBlock(const fb::Block &block, BlockInfo &info, int &index);
  StepInfo readStep(const fb::Step &step, int &index);
  void countUses(BlockInfo &block);
  void readRegions();
  Status checkStates() const;

  std::shared_ptr<const PlanFile> planFile;
  const fb::Plan *record = nullptr; // of the function
  BlockInfo main;
  Status readStrings(ValueInfo &info);
  StatusOr<std::span<const std::byte>> constantBytes(const fb::Blob &blob, std::string_view name);

  std::vector<ValueInfo> valueInfos;
  std::deque<std::vector<StringElement>> constantStrings;
  MemoryBudget constantBudget{machineMemory()};
  std::vector<Block> writtenOut; // constants stored as runs
  std::vector<int> inputValues;
  std::vector<OutputInfo> outputInfos;
  std::vector<std::string> symbolNames;
  std::vector<std::string> deviceNames;
  std::vector<RegionInfo> regionInfos;
  std::vector<SizesInfo> sizesInfos;
  std::vector<int> stepRegions; // of each step of the body
  int steps = 0;
  std::vector<std::string> missing; // operators without an entry, with the first node that uses each

  struct LazyCode {
    std::once_flag once;
    Status status;
    std::unique_ptr<NativeCode> code;
  };
  mutable std::array<LazyCode, kIsaCount> native;
};

} // namespace dspark

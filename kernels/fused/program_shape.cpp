#include "kernels/elementwise/kinds.h"
#include "kernels/elementwise/scalar.h"
#include "kernels/fused/program.h"
#include <algorithm>

namespace dspark {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// The kind is one of its category that has a meaning on f32.
bool isKind(FusedCategory category, int64_t kind) {
  switch (category) {
  case FusedCategory::Unary:
    return kind >= 0 && kind < int64_t(UnaryKind::kCount) && UnaryKind(kind) != UnaryKind::k_bitnot;
  case FusedCategory::Binary: {
    if (kind < 0 || kind >= int64_t(BinaryKind::kCount))
      return false;
    BinaryKind binary = BinaryKind(kind);
    return binaryTakes(binary, DType::F32) || binaryTakes(binary, DType::Bool);
  }
  case FusedCategory::Compare:
    return kind >= 0 && kind < int64_t(CompareKind::kCount);
  default:
    return kind == 0;
  }
}

/// Instruction i from its kFusedStride numbers; false with `error` set if it breaks a rule.
bool readInstruction(std::span<const int64_t> words, int64_t i, int64_t inputs, FusedInstruction &instruction,
                     std::string &error) {
  std::string what = "instruction " + number(i);
  if (words[0] < 0 || words[0] > int64_t(FusedCategory::Constant)) {
    error = what + " has category " + number(words[0]) + ", expected 0 to " +
            number(int64_t(FusedCategory::Constant));
    return false;
  }
  instruction.category = FusedCategory(words[0]);
  if (!isKind(instruction.category, words[1])) {
    error = what + " has kind " + number(words[1]) + ", which its category " + number(words[0]) + " lacks";
    return false;
  }
  instruction.kind = uint8_t(words[1]);
  int *operands[] = {&instruction.a, &instruction.b, &instruction.c};
  for (int k = 0; k < FusedProgram::operandCount(instruction.category); ++k) {
    int64_t value = words[size_t(2 + k)];
    if (value < 0 || value >= inputs + i) {
      error = what + " refers to value " + number(value) + ", expected 0 to " + number(inputs + i - 1);
      return false;
    }
    *operands[k] = int(value);
  }
  return true;
}

/// Gives each instruction a slot that no value still needed occupies. Results are needed until the end, as
/// the interpreter writes outputs last (an output may share an input's buffer).
void assignSlots(FusedProgram &program) {
  int count = int(program.code.size());
  std::vector<int> lastUse(size_t(program.inputs + count), -1);
  auto use = [&](int value, int at) { lastUse[size_t(value)] = std::max(lastUse[size_t(value)], at); };
  for (int i = 0; i < count; ++i) {
    const FusedInstruction &instruction = program.code[size_t(i)];
    const int operands[] = {instruction.a, instruction.b, instruction.c};
    for (int k = 0; k < FusedProgram::operandCount(instruction.category); ++k)
      use(operands[k], i);
  }
  for (int result : program.results)
    use(result, count);
  std::vector<int> busyUntil; // per slot: the last use of the value in it
  for (int i = 0; i < count; ++i) {
    // A value's slot is free after its last use, so that no instruction writes to what it reads.
    size_t slot = 0;
    while (slot < busyUntil.size() && busyUntil[slot] >= i)
      ++slot;
    if (slot == busyUntil.size())
      busyUntil.push_back(0);
    busyUntil[slot] = std::max(lastUse[size_t(program.inputs + i)], i);
    program.slots.push_back(uint8_t(slot));
  }
  program.slotCount = int(busyUntil.size());
}

} // namespace

int FusedProgram::operandCount(FusedCategory category) {
  switch (category) {
  case FusedCategory::Unary:
  case FusedCategory::Clip:
    return 1;
  case FusedCategory::Binary:
  case FusedCategory::Compare:
    return 2;
  case FusedCategory::Select:
    return 3;
  case FusedCategory::Constant:
    break;
  }
  return 0;
}

std::optional<FusedProgram> FusedProgram::parse(Attrs attrs, size_t inputs, size_t outputs,
                                                std::string &error) {
  std::span<const int64_t> words = attrs.ints("program"), results = attrs.ints("results");
  std::span<const double> params = attrs.floats("params");
  size_t count = words.size() / kFusedStride;
  if (inputs == 0 || outputs == 0 || inputs + outputs > size_t(kMaxFusedOperands))
    error = "a fused region has at least one input and output and at most " + number(kMaxFusedOperands) +
            " of both, found " + number(int64_t(inputs)) + " and " + number(int64_t(outputs));
  else if (words.size() % kFusedStride != 0 || count > size_t(kMaxFusedInstructions))
    error = "attribute program has " + number(int64_t(words.size())) + " entries, expected a multiple of " +
            number(kFusedStride) + " for at most " + number(kMaxFusedInstructions) + " instructions";
  else if (params.size() != 2 * count)
    error = "attribute params has " + number(int64_t(params.size())) + " entries, expected " +
            number(int64_t(2 * count));
  else if (results.size() != outputs)
    error = "attribute results has " + number(int64_t(results.size())) + " entries, expected " +
            number(int64_t(outputs));
  if (!error.empty())
    return std::nullopt;

  FusedProgram program;
  program.inputs = int(inputs);
  for (size_t i = 0; i < count; ++i) {
    FusedInstruction instruction{};
    if (!readInstruction(words.subspan(i * kFusedStride, kFusedStride), int64_t(i), int64_t(inputs),
                         instruction, error))
      return std::nullopt;
    instruction.alpha = float(params[2 * i]);
    instruction.beta = float(params[2 * i + 1]);
    program.code.push_back(instruction);
  }
  for (int64_t result : results) {
    if (result < 0 || result >= int64_t(inputs + count)) {
      error = "result refers to value " + number(result) + ", expected 0 to " +
              number(int64_t(inputs + count) - 1);
      return std::nullopt;
    }
    program.results.push_back(int(result));
  }
  assignSlots(program);
  if (program.slotCount > kMaxFusedSlots) {
    error = "the program keeps " + number(program.slotCount) + " values alive, at most " +
            number(kMaxFusedSlots) + " are supported";
    return std::nullopt;
  }
  return program;
}

} // namespace dspark

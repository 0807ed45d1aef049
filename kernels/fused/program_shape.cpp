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
  case FusedCategory::Reduce:
    return kind >= 0 && kind < kFusedReduceCount;
  default:
    return kind == 0;
  }
}

/// Instruction i from its kFusedStride numbers; false with `error` set if it breaks a rule.
bool readInstruction(std::span<const int64_t> words, int64_t i, int64_t inputs, FusedInstruction &instruction,
                     std::string &error) {
  std::string what = "instruction " + number(i);
  if (words[0] < 0 || words[0] > int64_t(FusedCategory::Reduce)) {
    error = what + " has category " + number(words[0]) + ", expected 0 to " +
            number(int64_t(FusedCategory::Reduce));
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

/// The attributes that say how rows are reduced; false with `error` set if they break a rule. The
/// instructions have been read.
bool readRows(Attrs attrs, FusedProgram &program, std::string &error) {
  int values = program.inputs + int(program.code.size());
  int64_t axes = attrs.i("row_axes", 0);
  if (axes < 0 || axes > kMaxRank) {
    error = "attribute row_axes is " + number(axes) + ", expected 0 to " + number(kMaxRank);
    return false;
  }
  program.rowAxes = int(axes);
  std::vector<int> depth(size_t(values), 0);
  for (size_t i = 0; i < program.code.size(); ++i) {
    const FusedInstruction &instruction = program.code[i];
    const int operands[] = {instruction.a, instruction.b, instruction.c};
    int deepest = 0;
    for (int k = 0; k < FusedProgram::operandCount(instruction.category); ++k)
      deepest = std::max(deepest, depth[size_t(operands[k])]);
    deepest += instruction.category == FusedCategory::Reduce;
    if (deepest > (axes > 0 ? kMaxFusedDepth : 0)) {
      error = "instruction " + number(int64_t(i)) + " is reduction " + number(deepest) +
              " in a row of them, expected at most " + number(axes > 0 ? kMaxFusedDepth : 0) +
              " with row_axes " + number(axes);
      return false;
    }
    depth[size_t(program.inputs) + i] = deepest;
  }
  program.shapes.assign(program.results.size(), FusedShape::Full);
  std::span<const int64_t> shapes = attrs.ints("shapes"), kept = attrs.ints("kept");
  if (!shapes.empty() && shapes.size() != program.results.size()) {
    error = "attribute shapes has " + number(int64_t(shapes.size())) + " entries, expected " +
            number(int64_t(program.results.size()));
    return false;
  }
  for (size_t r = 0; r < shapes.size(); ++r) {
    if (shapes[r] < 0 || shapes[r] > (axes > 0 ? int64_t(FusedShape::Dropped) : 0)) {
      error = "result " + number(int64_t(r)) + " has shape " + number(shapes[r]) + ", expected 0 to " +
              number(axes > 0 ? int64_t(FusedShape::Dropped) : 0);
      return false;
    }
    program.shapes[r] = FusedShape(shapes[r]);
  }
  if (kept.size() > size_t(axes > 0 ? kMaxFusedKept : 0)) {
    error = "attribute kept has " + number(int64_t(kept.size())) + " entries, expected at most " +
            number(axes > 0 ? kMaxFusedKept : 0);
    return false;
  }
  for (int64_t value : kept) {
    int64_t least = program.kept.empty() ? program.inputs : program.kept.back() + 1;
    if (value < least || value >= values) {
      error = "attribute kept names value " + number(value) + ", expected " + number(least) + " to " +
              number(int64_t(values) - 1);
      return false;
    }
    program.kept.push_back(int(value));
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
  case FusedCategory::Reduce:
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

uint32_t FusedProgram::uniformInputs() const {
  std::vector<bool> reaches(size_t(inputs) + code.size(), false);
  for (size_t r = 0; r < results.size(); ++r)
    if (body().isReduced(r))
      reaches[size_t(results[r])] = true;
  for (size_t i = code.size(); i-- > 0;) {
    const int operands[] = {code[i].a, code[i].b, code[i].c};
    if (reaches[size_t(inputs) + i] && code[i].category != FusedCategory::Reduce)
      for (int k = 0; k < operandCount(code[i].category); ++k)
        reaches[size_t(operands[k])] = true;
  }
  uint32_t mask = 0;
  for (int k = 0; k < inputs; ++k)
    mask |= uint32_t(reaches[size_t(k)]) << k;
  return mask;
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
  if (!readRows(attrs, program, error))
    return std::nullopt;
  assignSlots(program);
  if (program.slotCount > kMaxFusedSlots) {
    error = "the program keeps " + number(program.slotCount) + " values alive, at most " +
            number(kMaxFusedSlots) + " are supported";
    return std::nullopt;
  }
  return program;
}

} // namespace dspark

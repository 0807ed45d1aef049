#include "kernels/fused/passes.h"
#include <algorithm>

namespace dspark {
namespace {

// Bits 0 to pass of a mask of passes.
constexpr unsigned upTo(int pass) { return (2u << pass) - 1; }

void setLevels(const FusedBody &program, uint32_t uniform, FusedPasses &passes) {
  for (int k = 0; k < program.inputs; ++k) {
    passes.level[k] = 0;
    passes.isUniform[k] = uniform >> k & 1;
  }
  for (size_t i = 0; i < program.code.size(); ++i) {
    const FusedInstruction &instruction = program.code[i];
    const int operands[] = {instruction.a, instruction.b, instruction.c};
    int level = 0;
    bool isUniform = true;
    for (int k = 0; k < FusedProgram::operandCount(instruction.category); ++k) {
      level = std::max<int>(level, passes.level[operands[k]]);
      isUniform = isUniform && passes.isUniform[operands[k]];
    }
    bool isReduction = instruction.category == FusedCategory::Reduce;
    passes.level[size_t(program.inputs) + i] = uint8_t(level + isReduction);
    passes.isUniform[size_t(program.inputs) + i] = isUniform || isReduction;
  }
}

} // namespace

// Backwards from what each pass must make: the operands of its reductions, the rows it keeps, the results.
FusedPasses planPasses(const FusedBody &program, uint32_t uniform) {
  FusedPasses passes{};
  setLevels(program, uniform, passes);
  int values = program.values(), last = 0;
  for (int v = 0; v < values; ++v)
    last = std::max<int>(last, passes.level[v]);
  bool writes = std::count(program.shapes.begin(), program.shapes.end(), FusedShape::Full) > 0;
  passes.count = last + writes;
  for (size_t r = 0; r < program.results.size() && writes; ++r)
    if (!program.isReduced(r))
      passes.runs[program.results[r]] |= uint16_t(1u << last);
  for (int v = values; v-- > 0;) {
    int level = passes.level[v];
    unsigned runs = passes.runs[v];
    if (v < program.inputs)
      continue;
    const FusedInstruction &instruction = program.code[size_t(v - program.inputs)];
    const int operands[] = {instruction.a, instruction.b, instruction.c};
    if (instruction.category == FusedCategory::Reduce) {
      passes.runs[instruction.a] |= uint16_t(1u << (level - 1));
      continue;
    }
    // Later passes read a kept value, and need none of its operands.
    if (runs != 0 && std::find(program.kept.begin(), program.kept.end(), v) != program.kept.end()) {
      passes.runs[v] = uint16_t(runs |= 1u << level);
      runs &= upTo(level);
    }
    for (int k = 0; k < FusedProgram::operandCount(instruction.category); ++k)
      passes.runs[operands[k]] |= uint16_t(runs);
  }
  // Uniform values belong to no pass.
  for (int v = 0; v < values; ++v)
    if (passes.isUniform[v])
      passes.runs[v] = 0;
  return passes;
}

} // namespace dspark

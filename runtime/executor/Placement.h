// Which device runs which step, and what therefore crosses between devices.
#pragma once
#include "runtime/executor/Program.h"
#include <vector>

namespace dspark {

/// The device of each step of a plan's body, 0 for the CPU. Empty: all on the CPU.
using Placement = std::vector<uint8_t>;

/// Whether the step's result is its first operand under another shape.
bool isView(const StepInfo &step);
/// Calls f(value) for what a step reads, the blocks inside it included.
template <typename F> void forUses(const StepInfo &step, F &&f) {
  for (int value : step.inputs)
    if (value >= 0)
      f(value);
  for (const BlockInfo &block : step.blocks)
    for (const Capture &capture : block.captures)
      f(capture.value);
}

/// The placement with variant variants[r] of each region r.
Placement placementOf(const Program &program, std::span<const int> variants);
/// The one that the compiler chose; empty if it is all on the CPU. `sizes`: the entry of Program::sizes()
/// that it is for, -1: for all others.
Placement chosenPlacement(const Program &program, int sizes = -1);
/// The entry of Program::sizes() that is nearest to those of a run, by the ratios of the sizes; -1 without
/// any.
int nearestSizes(const Program &program, std::span<const Dim> symbols);
/// Why a plan's steps must all run on the CPU, or "": a run that failed half-way could not be repeated.
std::string reasonAgainstDevices(const Program &program);

/// A value that another device than the one that makes it needs. It crosses once, however many steps use it
/// there; between two devices it passes through the host.
struct Crossing {
  int value;
  int from, to; // one of them is the CPU
  int step;     // of the body, after which it starts; -1: the value is an input
  int firstUse; // the first step of the body that needs it there; the number of steps for outputs
};
std::vector<Crossing> crossingsOf(const Program &program, const Placement &placement);

/// Bit d: device d needs the value, by value id. A view is the value that it is a view of.
std::vector<uint32_t> devicesThatNeed(const Program &program, const Placement &placement);

} // namespace dspark

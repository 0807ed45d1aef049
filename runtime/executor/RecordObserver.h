// Looks on while a session runs: at every kernel call, before it reads its operands and after it has written
// its results. For measuring what other kernels would make of the same operands, and for letting a run go on
// with their results instead.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

struct StepInfo;

/// Called on the thread that runs the session, for each record in order.
class RecordObserver {
public:
  virtual ~RecordObserver() = default;
  virtual void before(const StepInfo &step, const Kernel &kernel, const KernelCall &call) = 0;
  /// May change the results' contents.
  virtual void after(const StepInfo &step, const Kernel &kernel, const KernelCall &call) = 0;
};

} // namespace dspark

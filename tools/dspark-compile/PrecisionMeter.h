// Runs the variants of regions beside, or in place of, the plan's own f32 kernels while a session runs.
#pragma once
#include "planning/CostModel.h"
#include "runtime/executor/RecordObserver.h"
#include "tools/dspark-compile/PrecisionRegions.h"
#include <cmath>
#include <unordered_map>

namespace dspark {

class PrecisionMeter : public RecordObserver {
public:
  /// Regions and model outlive this; the vector may move, its elements must stay.
  PrecisionMeter(std::vector<PrecisionRegion> &regions, const CostModel &model);

  /// Measure: every variant of every region on the operands of f32, adding its time, prediction and, but for
  /// int8_static, whose error the plan computes, its noise.
  /// Simulate: regions with a choice >= 0 of packed weights go on with that variant's result.
  enum class Mode { Measure, Simulate };
  void setMode(Mode mode, std::vector<int> choices = {});

  void before(const StepInfo &step, const Kernel &kernel, const KernelCall &call) override;
  void after(const StepInfo &step, const Kernel &kernel, const KernelCall &call) override;

private:
  struct Turn {
    const Kernel *kernel; // null: none can do it
    const KernelCall &call;
    std::span<const std::byte> weights;
    uint64_t constants;      // bit k: operand k is a weight
    double least = INFINITY; // seconds
  };
  void measure(PrecisionRegion &region, const Kernel &kernel, const KernelCall &call);
  void measureBytes(const StepInfo &step, const Kernel &kernel, const KernelCall &call);
  void takeTurns(const PrecisionRegion &region, std::span<Turn> turns);
  double passBytes(const PrecisionRegion &region, size_t bytes) const;
  double timed(const Kernel &kernel, const KernelCall &call);
  double predicted(const PrecisionRegion &region, const Turn &turn) const;
  /// Null unless it is of packed weights.
  const PrecisionVariant *chosen(size_t region, const KernelCall &call) const;

  const CostModel &model;
  std::vector<PrecisionRegion> &regions;
  std::unordered_map<const StepInfo *, size_t> byStep, byByteStep, byQuantizeStep; // numbers of regions
  Mode mode = Mode::Measure;
  std::vector<int> choices;
  std::vector<std::vector<float>> results; // of the variants, for the call between before() and after()
  std::vector<std::byte> scratch, shared;
  double footprint = 0, lastCache = 0; // bytes of all regions' weights in f32, of the cache before memory
};

} // namespace dspark

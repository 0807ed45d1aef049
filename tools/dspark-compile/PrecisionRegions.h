// The parts of a plan whose precision can be chosen: products of f32 rows with constant f32 weights,
// convolutions with such and attention, and the forms in fewer bits that the catalogue's kernels can take
// instead.
#pragma once
#include "compiler/Pipeline/Compile.h"
#include "runtime/executor/Program.h"
#include <memory>
#include <string>
#include <vector>

namespace dspark {

/// What one call of a region in a calibration pass takes.
struct RegionCall {
  int64_t rows = 0;
  double seconds = 0, predicted = 0;
  double noise = 0; // squared difference from the f32 result
};

using PackedBytes = std::shared_ptr<const std::vector<std::byte>>;

struct PrecisionVariant {
  std::string layout, arithmetic;     // as in PrecisionChoice (docs/packed-weights.md)
  int64_t mostRows = 0;               // likewise
  PackedBytes weights = {};           // null of int8_static, which the plan itself computes, and of attention
  std::vector<RegionCall> calls = {}; // of all but int8_static
  double seconds = 0;                 // per set, one thread, fastest of several
  double predicted = 0;               // by the cost model
  double noise = 0;                   // squared difference from the f32 result, summed

  void sumUp(); // of its calls
  bool isStatic() const { return layout == kStaticInt8; }
  bool isPacked() const { return weights != nullptr; }
  bool isFor(int64_t rows) const { return mostRows == 0 || rows <= mostRows; }
  std::string name() const {
    return layout + (arithmetic.empty() ? "" : "/" + arithmetic) +
           (mostRows > 0 ? " up to " + std::to_string(mostRows) + " rows" : "");
  }
};

struct PrecisionRegion {
  const StepInfo *step = nullptr; // in f32, while the program of the search lives
  std::string op;                 // that step's
  std::string node, location;     // its ONNX node, and with those that were fused into it
  int64_t k = 0, n = 0;
  std::string pinnedBecause;     // why it stays f32 whatever the bound; "" where it need not
  std::string kernel;            // of f32
  std::vector<RegionCall> calls; // of f32, one per call of each variant of packed weights
  double seconds = 0, predicted = 0, signal = 0;
  std::vector<PrecisionVariant> variants;

  // Of int8_static:
  int contraction = -1;                   // its number in the plan of ByteMode::Compare, -1: not there
  const StepInfo *byteStep = nullptr;     // the same on bytes
  const StepInfo *quantizeStep = nullptr; // makes bytes of what it reads; null where another region's does
  double quantizeSeconds = 0;             // which is saved where what makes the value gives bytes
  int input = -1;                         // number of that value

  /// After the calibration passes: makes times those of a mean set, sums up calls, adds forms for few rows.
  void finish(double sets);
  /// Adds, of each form of packed weights that is faster with few rows and slower with many, the form that is
  /// f32 above the number of rows which pays most.
  void addRowForms();
  /// Whether the step can become two, by the number of rows.
  bool splitsByRows() const { return op == "matmul"; }
  /// A form of packed weights that is f32 above that many rows.
  PrecisionVariant upTo(const PrecisionVariant &variant, int64_t rows) const;
  /// The variant of that name(), or -1. One "up to N rows" is made where calibration did not suggest it.
  int variantNamed(const std::string &name);
  /// Relative error of one variant's result: the square root of noise over signal.
  double error(const PrecisionVariant &variant) const;
};

/// A value on the way to regions that may run on bytes.
struct PrecisionValue {
  int region = -1;              // that makes it, or -1
  std::vector<size_t> operands; // values whose bytes make its bytes; with neither it is only quantised
  bool hasFloatReaders = false; // besides regions and what makes other values
  double quantizeSeconds = 0;   // of making its bytes of floats

  bool canBeMadeOfBytes() const { return region >= 0 || !operands.empty(); }
};

/// The values of `report` with the regions' times (after finish()). Regions that read the same value, of
/// which one has the time of quantising it, all get it.
std::vector<PrecisionValue> precisionValues(const CompileReport &report,
                                            std::vector<PrecisionRegion> &regions);

/// Whether a location, names joined by ", ", has that one.
bool holdsName(std::string_view location, std::string_view name);

/// The regions of a plan of ByteMode::Compare (or, where no contraction may run on bytes, of one without
/// choices), with packed variants; `report` is of its compile. Regions whose nodes hold one of `sensitive` as
/// a whole name are pinned; NotFound names one that no node of the plan has.
StatusOr<std::vector<PrecisionRegion>> precisionRegions(const Program &program, const CompileReport &report,
                                                        const std::vector<std::string> &sensitive);

} // namespace dspark

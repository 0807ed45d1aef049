// Chooses the precision of every region of a model under a bound on the error of the whole: variants are
// measured where they would run, the solver picks within a budget for expected errors, and plans with what it
// picked are compiled and run; their true error decides about the next budget, until the bound is used.
#pragma once
#include "planning/BudgetSearch.h"
#include "tools/dspark-compile/CandidatePlans.h"
#include "tools/dspark-compile/PrecisionProbe.h"
#include "tools/dspark-compile/PrecisionSolve.h"
#include <algorithm>
#include <functional>

namespace dspark {

struct PrecisionRequest {
  ErrorBound bound;                          // 0: loss-free
  std::vector<std::string> sensitive;        // nodes that stay f32
  std::string only;                          // a layout that every region takes that may; "" chooses
  std::map<std::string, std::string> forced; // by names that hold a region's node: the form
  CalibrationRequest calibration;
  bool joinsSteps = false; // in plans that are compared, and in the one that is chosen
};

struct PrecisionResult {
  std::vector<PrecisionRegion> regions;
  std::vector<int> choices;         // per region: a variant, or -1 for f32
  std::vector<std::string> reasons; // per region: the best rejected alternative, and why
  ErrorBound bound;
  double error = 0;                   // of the plan, on the sets that decided
  double heldOutError = 0;            // on the others
  double speed = 1;                   // of the plan beside all f32, measured by turns
  double seconds = 0, f32Seconds = 0; // of all regions per pass, one thread
  bool isMet = true;
  int limiting = -1; // with !isMet: the region that does most
  size_t deciding = 0, heldOut = 0;
  bool isSynthetic = true;
  CompileOptions options; // that compile the plan
};

class PrecisionSearch {
public:
  /// `plain` is a plan without choices, `options` those of its compile. Compiles others beside
  /// options.output.
  static StatusOr<PrecisionResult> run(const Program &plain, const CompileOptions &options,
                                       const PrecisionRequest &request, const CostModel &model);

private:
  PrecisionSearch(const PrecisionRequest &request) : request(request) {}
  Status prepare(const Program &plain, const CompileOptions &options, const CostModel &model);
  /// A plan that was compiled and run.
  struct Tried {
    std::vector<int> choices;
    std::unique_ptr<Session> session; // null: all f32
    double error = 0, heldOutError = 0;
    bool isUniform = false; // one form everywhere
    double worst() const { return std::max(error, heldOutError); }
  };
  Status measureGains(const std::vector<int> &choices, double allError);
  using JudgeChoices = std::function<StatusOr<double>(const std::vector<int> &choices)>;
  Status walkBudgets(BudgetSearch &budget, int most, const JudgeChoices &errorOf);
  StatusOr<double> expectedBudget(double allError);
  StatusOr<Tried> tryOut(std::vector<int> choices) const;
  StatusOr<Tried> search();
  Status addUniform(std::vector<Tried> &found);
  Status chooseFastest(std::vector<Tried> found);
  Status trySmaller();
  void take(Tried tried);
  Status applyRules();
  double shareOf(const std::vector<int> &choices, size_t region) const;
  std::string reasonFor(size_t region) const;
  void report();

  std::vector<int> plainChoices() const { return std::vector<int>(probe->regions().size(), -1); }
  std::vector<int> uniform(const char *layout) const;

  const PrecisionRequest &request;
  Calibration calibration;
  std::unique_ptr<PrecisionProbe> probe;
  std::vector<PrecisionValue> values; // between its regions
  std::unique_ptr<CandidatePlans> plans;
  PrecisionRule rule;
  double bestBudget = 0; // of what search() found
  PrecisionResult result;
};

} // namespace dspark

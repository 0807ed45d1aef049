// Rules that overrule what a compile would choose: JSON, docs/devices.md describes it.
#pragma once
#include "runtime/base/Status.h"
#include "tools/dspark-compile/PlanDecisions.h"
#include <map>

namespace dspark {

/// What rules want of one step; "" where they say nothing.
struct StepRule {
  std::string device, precision, kernel;
};

class PlanRules {
public:
  /// NotFound, CorruptFile with the key that is wrong.
  static StatusOr<PlanRules> load(const std::string &path);
  /// By step of the body. InvalidArgument names pairs of rules that contradict each other and, with
  /// `mustMatch`, rules that match nothing.
  StatusOr<std::map<int, StepRule>> match(const std::vector<StepDecision> &steps, bool mustMatch) const;

private:
  struct Rule {
    std::string name, op, shape, type; // patterns with *, ? and [...]; "" matches all
    int step = -1;                     // -1: any
    StepRule wanted;
    bool matches(const StepDecision &decision) const;
  };
  std::string path;
  std::vector<Rule> rules;
};

/// Rules that choose again what `decisions` chose.
Status savePlanRules(const std::string &path, const PlanDecisions &decisions);

} // namespace dspark

#include "tools/dspark-compile/PlanRules.h"
#include <algorithm>
#include <fnmatch.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace dspark {
namespace {

using nlohmann::json;

bool fits(const std::string &pattern, const std::string &text) {
  return pattern.empty() || fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// "f32[1, 64]": "1x64".
std::string shapeOf(const std::string &type) {
  size_t begin = type.find('['), end = type.rfind(']');
  std::string shape;
  if (begin != type.npos && end != type.npos)
    for (char c : type.substr(begin + 1, end - begin - 1))
      if (c != ' ')
        shape += c == ',' ? 'x' : c;
  return shape;
}

// So that the pattern matches the text alone.
std::string literal(const std::string &text) {
  std::string pattern;
  for (char c : text)
    pattern += (std::string("*?[]\\").find(c) != std::string::npos ? "\\" : "") + std::string(1, c);
  return pattern;
}

// The texts of `object` by key into `places`; what is left over is wrong.
Status readTexts(const json &object, const std::string &where, std::map<std::string, std::string *> places,
                 int *step = nullptr) {
  if (!object.is_object() || object.empty())
    return corruptFile(where + " is " + object.dump().substr(0, 60) + ", expected an object with keys");
  for (const auto &[key, value] : object.items()) {
    if (step && key == "step" && value.is_number_unsigned() && value.get<uint64_t>() < INT32_MAX) {
      *step = value.get<int>();
      continue;
    }
    auto place = places.find(key);
    bool isGood = place != places.end() && value.is_string() && !value.get<std::string>().empty();
    if (!isGood)
      return corruptFile(where + "." + key + " is " + value.dump().substr(0, 60) + ", expected " +
                         (place == places.end() ? "no such key" : "text"));
    *place->second = value.get<std::string>();
  }
  return Status::ok();
}

} // namespace

StatusOr<PlanRules> PlanRules::load(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return Status(Code::NotFound, path + ": no such file");
  json parsed = json::parse(file, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("rules") || !parsed["rules"].is_array())
    return corruptFile(path + ": expected a JSON object with a list 'rules'");
  PlanRules made;
  made.path = path;
  for (size_t i = 0; i < parsed["rules"].size(); ++i) {
    const json &entry = parsed["rules"][i];
    std::string where = path + ": rule " + std::to_string(i);
    if (!entry.is_object() || !entry.contains("match") || !entry.contains("set") || entry.size() != 2)
      return corruptFile(where + " is " + entry.dump().substr(0, 60) + ", expected 'match' and 'set'");
    Rule &rule = made.rules.emplace_back();
    DSPARK_RETURN_IF_ERROR(readTexts(
        entry["match"], where + ".match",
        {{"name", &rule.name}, {"op", &rule.op}, {"shape", &rule.shape}, {"type", &rule.type}}, &rule.step));
    DSPARK_RETURN_IF_ERROR(readTexts(entry["set"], where + ".set",
                                     {{"device", &rule.wanted.device},
                                      {"precision", &rule.wanted.precision},
                                      {"kernel", &rule.wanted.kernel}}));
  }
  return made;
}

// A fused step has several nodes: one of them is enough.
bool PlanRules::Rule::matches(const StepDecision &decision) const {
  bool isNamed = fits(name, decision.nodes);
  for (size_t begin = 0, end; !isNamed && begin < decision.nodes.size(); begin = end + 2) {
    end = std::min(decision.nodes.find(", ", begin), decision.nodes.size());
    isNamed = fits(name, decision.nodes.substr(begin, end - begin));
  }
  return isNamed && fits(op, decision.op) && fits(shape, shapeOf(decision.type)) &&
         fits(type, decision.type.substr(0, decision.type.find('['))) && (step < 0 || step == decision.step);
}

StatusOr<std::map<int, StepRule>> PlanRules::match(const std::vector<StepDecision> &steps,
                                                   bool mustMatch) const {
  std::map<int, StepRule> wanted;
  std::map<std::pair<int, const char *>, size_t> setBy;
  for (size_t i = 0; i < rules.size(); ++i) {
    bool isUsed = false;
    for (const StepDecision &step : steps) {
      if (!rules[i].matches(step))
        continue;
      isUsed = true;
      StepRule &rule = wanted[step.step];
      for (auto [name, member] :
           {std::pair("device", &StepRule::device), std::pair("precision", &StepRule::precision),
            std::pair("kernel", &StepRule::kernel)}) {
        const std::string &value = rules[i].wanted.*member;
        if (value.empty())
          continue;
        auto [before, isNew] = setBy.try_emplace({step.step, name}, i);
        if (!isNew && rule.*member != value)
          return invalidArgument(path + ": rules " + std::to_string(before->second) + " and " +
                                 std::to_string(i) + " contradict each other: node '" + step.nodes +
                                 "' shall have " + name + " '" + rule.*member + "' and '" + value + "'");
        rule.*member = value;
      }
    }
    if (!isUsed && mustMatch)
      return invalidArgument(path + ": rule " + std::to_string(i) + " matches no step");
  }
  return wanted;
}

Status savePlanRules(const std::string &path, const PlanDecisions &decisions) {
  std::map<std::string, int> counts;
  for (const StepDecision &step : decisions.steps)
    ++counts[step.nodes];
  json rules = json::array();
  for (const StepDecision &step : decisions.steps) {
    json match, set = {{"device", step.device}};
    if (!step.nodes.empty())
      match["name"] = literal(step.nodes);
    if (step.nodes.empty() || counts[step.nodes] > 1)
      match.update({{"op", step.op}, {"step", step.step}});
    if (step.isChoice)
      set["precision"] = step.precision;
    rules.push_back({{"match", match}, {"set", set}});
  }
  std::ofstream file(path);
  file << json{{"rules", rules}}.dump(1, ' ', false, json::error_handler_t::replace) << "\n";
  file.close();
  return file ? Status::ok() : Status(Code::IoError, path + ": cannot be written");
}

} // namespace dspark

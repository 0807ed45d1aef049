#include "tools/dspark-compile/Explain.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

using nlohmann::json;

std::string line(const char *pattern, auto... values) {
  char text[1024];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

json finite(double value) { return std::isfinite(value) ? json(value) : json("infinite"); }

json alternativesJson(const StepDecision &step) {
  json list = json::array();
  for (const StepAlternative &other : step.alternatives) {
    json entry = {{"device", other.device}, {"seconds", finite(other.seconds)}};
    if (!other.precision.empty())
      entry["precision"] = other.precision;
    if (!other.refusal.empty())
      entry["refusal"] = other.refusal;
    list.push_back(std::move(entry));
  }
  return list;
}

json insideJson(const StepDecision &step) {
  json list = json::array();
  for (const InnerStep &inner : step.inside)
    list.push_back({{"nodes", inner.nodes},
                    {"op", inner.op},
                    {"kernel", inner.kernel},
                    {"calls", inner.calls},
                    {"measured_s", inner.measured}});
  return list;
}

std::string insideLines(const StepDecision &step) {
  std::string out;
  for (const InnerStep &inner : step.inside)
    out +=
        line("%6s  %-8s  %-18s  %-26s  %-24s  %9s  %9.4f  %8s  %-44s  %s\n", "-", "cpu", "",
             inner.kernel.c_str(), inner.op.c_str(), "-", inner.measured * 1e3, "-",
             line("in that %s, %.3g calls a run", step.op.c_str(), inner.calls).c_str(), inner.nodes.c_str());
  return out;
}

} // namespace

// Steps are found by the names of their nodes: in other precisions the plan has other steps. Those that only
// make bytes for a region have no weights.
void addPrecisions(PlanDecisions &decisions, const PrecisionResult &result) {
  for (size_t r = 0; r < result.regions.size(); ++r) {
    const PrecisionRegion &region = result.regions[r];
    auto found = std::find_if(decisions.steps.begin(), decisions.steps.end(), [&](const StepDecision &step) {
      return (step.bytes > 0 || step.op == "attention") && holdsName(step.nodes, region.node);
    });
    if (found == decisions.steps.end())
      continue;
    StepDecision &step = *found;
    int choice = result.choices[r];
    std::string precision = choice < 0 ? "f32" : region.variants[size_t(choice)].name();
    double error = choice < 0 ? 0 : region.error(region.variants[size_t(choice)]);
    // A step may be several regions.
    bool isFirst = !step.isChoice;
    step.precision = isFirst || step.precision == precision ? precision : step.precision + ", " + precision;
    step.error = isFirst ? error : std::max(step.error, error);
    step.isChoice = true;
    for (size_t v = 0; v < region.variants.size(); ++v)
      if (int(v) != choice)
        step.alternatives.push_back({"cpu", region.variants[v].name(), region.variants[v].seconds, ""});
    step.rejected += (step.rejected.empty() || result.reasons[r].empty() ? "" : "; ") + result.reasons[r];
  }
}

std::string explainTable(const PlanDecisions &decisions) {
  std::string out =
      line("%6s  %-8s  %-18s  %-26s  %-24s  %9s  %9s  %8s  %-44s  %s\n", "region", "device", "precision",
           "kernel", "result", "predicted", "measured", "error", "best rejected alternative", "nodes");
  for (const StepDecision &step : decisions.steps) {
    std::string region = step.region < 0 ? "-" : std::to_string(step.region);
    std::string measured = step.measured > 0 ? line("%.4f", step.measured * 1e3) : "-";
    out +=
        line("%6s  %-8s  %-18s  %-26s  %-24s  %9.4f  %9s  %8.2g  %-44s  %s\n", region.c_str(),
             step.device.c_str(), step.precision.c_str(), step.kernel.c_str(), step.type.c_str(),
             step.predicted * 1e3, measured.c_str(), step.error, step.rejected.c_str(), step.nodes.c_str());
    out += insideLines(step);
  }
  for (const DecidedTransfer &transfer : decisions.transfers)
    out += line("%s -> %s: %.0f bytes of '%s', %.4f ms\n", transfer.from.c_str(), transfer.to.c_str(),
                transfer.bytes, transfer.value.c_str(), transfer.seconds * 1e3);
  for (const DecidedDevice &device : decisions.devices)
    out +=
        line("device '%s' (%s): %.3g MB of weights and %.3g MB of tensors in %.3g MB\n", device.name.c_str(),
             device.kind.c_str(), device.weights * 1e-6, device.tensors * 1e-6, device.memory * 1e-6);
  for (const DecidedSizes &other : decisions.sizes) {
    size_t moved = 0;
    for (size_t i = 0; i < decisions.steps.size(); ++i)
      moved += other.devices[i] != decisions.steps[i].device;
    std::string dims;
    for (const auto &[name, value] : other.dims)
      dims += (dims.empty() ? "" : ", ") + name + "=" + std::to_string(value);
    out += line("for %s: %zu steps on other devices, %.4f ms predicted\n", dims.c_str(), moved,
                other.seconds * 1e3);
  }
  out += line("%zu steps: %.4f ms predicted, %.4f ms with the CPU alone (%d threads)", decisions.steps.size(),
              decisions.seconds * 1e3, decisions.cpuSeconds * 1e3, decisions.threads);
  if (!decisions.devices.empty())
    out += line("; outputs differ from the CPU's by %.2g", decisions.error);
  return out + "; for " + decisions.shapes + "; predictions by profile " + decisions.profile + "\n";
}

json explainJson(const PlanDecisions &decisions) {
  json steps = json::array(), devices = json::array(), transfers = json::array(), sizes = json::array();
  for (const StepDecision &step : decisions.steps) {
    steps.push_back({{"region", step.region},
                     {"step", step.step},
                     {"nodes", step.nodes},
                     {"op", step.op},
                     {"result", step.type},
                     {"device", step.device},
                     {"precision", step.precision},
                     {"kernel", step.kernel},
                     {"predicted_s", step.predicted},
                     {"measured_s", step.measured},
                     {"start_s", step.start},
                     {"error", finite(step.error)},
                     {"weight_bytes", step.bytes},
                     {"inputs", step.inputs},
                     {"rejected", step.rejected},
                     {"inside", insideJson(step)},
                     {"alternatives", alternativesJson(step)}});
  }
  for (const DecidedDevice &device : decisions.devices)
    devices.push_back({{"name", device.name},
                       {"kind", device.kind},
                       {"memory_bytes", device.memory},
                       {"weight_bytes", device.weights},
                       {"tensor_bytes", device.tensors}});
  for (const DecidedTransfer &transfer : decisions.transfers)
    transfers.push_back({{"value", transfer.value},
                         {"from", transfer.from},
                         {"to", transfer.to},
                         {"bytes", transfer.bytes},
                         {"predicted_s", transfer.seconds}});
  for (const DecidedSizes &other : decisions.sizes)
    sizes.push_back({{"dims", other.dims}, {"devices", other.devices}, {"predicted_s", other.seconds}});
  return {{"steps", steps},
          {"sizes", sizes},
          {"devices", devices},
          {"transfers", transfers},
          {"predicted_s", decisions.seconds},
          {"cpu_s", decisions.cpuSeconds},
          {"device_error", finite(decisions.error)},
          {"threads", decisions.threads},
          {"shapes", decisions.shapes},
          {"profile", decisions.profile}};
}

} // namespace dspark

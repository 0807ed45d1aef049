// Runs that confirm what a search for placements may choose: every device computes what the CPU computes, and
// has the memory for it.
#include "tools/dspark-compile/PlacementSearch.h"
#include <algorithm>

namespace dspark {
namespace {

// What another order of sums does to outputs: the unit roundoff 6e-8 times the square root of 4096 terms in
// each of 100 layers is 4e-5.
constexpr double kReorderError = 1e-4;

} // namespace

Placement PlacementSearch::placementOn(int device, std::span<const size_t> units) const {
  Placement placement(program->body().steps.size());
  for (size_t u : units)
    placement[size_t(decisions.steps[u].step)] = uint8_t(device);
  return placement;
}

// Each device with everything that it may get.
Status PlacementSearch::validateDevices() {
  for (size_t d = 1; d < program->devices().size(); ++d) {
    std::vector<size_t> units;
    for (size_t u = 0; u < decisions.steps.size(); ++u) {
      const std::vector<RegionVariant> &variants = problem.regions[u + 1].variants;
      bool isOpen = std::any_of(variants.begin(), variants.end(),
                                [&](const RegionVariant &variant) { return variant.device == int(d); });
      if (isOpen && decisions.steps[u].bytes > limits[d - 1])
        DSPARK_RETURN_IF_ERROR(dropVariant(u, int(d)));
      else if (isOpen)
        units.push_back(u);
    }
    if (!units.empty())
      DSPARK_RETURN_IF_ERROR(validateUnits(int(d), units));
  }
  return Status::ok();
}

// Where that is too much for its memory, one half and then the other.
Status PlacementSearch::validateUnits(int device, std::span<const size_t> units) {
  Placement all = placementOn(device, units);
  session->place(all);
  Status fits = bind().status();
  if (fits.isOk())
    return validateOn(all, "device '" + program->devices()[size_t(device)] + "'");
  if (fits.code() != Code::OutOfMemory)
    return fits;
  if (units.size() == 1)
    return dropVariant(units[0], device);
  DSPARK_RETURN_IF_ERROR(validateUnits(device, units.first(units.size() / 2)));
  return validateUnits(device, units.subspan(units.size() / 2));
}

// The unit alone is too large for the device.
Status PlacementSearch::dropVariant(size_t unit, int device) {
  std::string &reason = refusals[unit][size_t(device)];
  reason =
      "its " + megabytesText(unitSteps[unit]->bytes) + " of weights and tensors do not fit in its memory";
  std::vector<RegionVariant> &variants = problem.regions[unit + 1].variants;
  std::erase_if(variants, [&](const RegionVariant &variant) { return variant.device == device; });
  return variants.empty() ? Status(Code::Unsupported,
                                   "node '" + decisions.steps[unit].nodes + "' shall run on device '" +
                                       program->devices()[size_t(device)] + "', which cannot: " + reason)
                          : Status::ok();
}

Status PlacementSearch::validateOn(const Placement &placement, const std::string &who) {
  session->place(placement);
  std::vector<OutputNumbers> found, wanted;
  for (size_t set = 0; set < calibration.sets(); ++set) {
    if (!isOfSize(set))
      continue;
    DSPARK_ASSIGN_OR_RETURN(OutputNumbers numbers, calibration.run(*session, set));
    found.push_back(std::move(numbers));
    wanted.push_back(expected[set]);
  }
  std::vector<AdaptEvent> events = session->takeAdaptEvents();
  if (!events.empty())
    return Status(Code::Unsupported, events[0].detail);
  double error = outputError(ErrorMetric::Relative, found, wanted),
         allowed = std::max(request.maxError, kReorderError);
  char text[200];
  std::snprintf(text, sizeof text, ": outputs are off by %.3g relative to the CPU's, expected at most %.3g",
                error, allowed);
  decisions.error = std::max(decisions.error, error);
  return error <= allowed ? Status::ok() : Status(Code::Mismatch, who + text);
}

Status PlacementSearch::validateChoice() {
  return request.devices.empty() ? Status::ok() : validateOn(placement(), "the chosen devices");
}

} // namespace dspark

#include "tools/dspark-compile/PrecisionReport.h"
#include <cmath>

namespace dspark {

using nlohmann::json;

namespace {

std::string line(const char *pattern, auto... values) {
  char text[1024];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

struct Row {
  std::string precision, kernel;
  double seconds, predicted, error;
};

Row rowOf(const PrecisionResult &result, size_t r) {
  const PrecisionRegion &region = result.regions[r];
  if (result.choices[r] < 0)
    return {"f32", region.kernel, region.seconds, region.predicted, 0};
  const PrecisionVariant &v = region.variants[size_t(result.choices[r])];
  std::string kernel =
      v.isStatic() ? "qlinear_" + region.op : region.op + (region.op == "matmul" ? "_packed" : "_bf16");
  return {v.name(), kernel, v.seconds, v.predicted, region.error(v)};
}

json finite(double value) { return std::isfinite(value) ? json(value) : json("infinite"); }

} // namespace

std::string precisionSummary(const PrecisionResult &result) {
  size_t lower = 0;
  for (int choice : result.choices)
    lower += choice >= 0;
  return line("%zu of %zu products, convolutions and attentions in fewer bits: %.3f ms per pass where f32 "
              "takes %.3f ms "
              "(one thread), "
              "the whole %.2f times as fast; %s %.3g on %zu %s sets, %.3g on %zu held out",
              lower, result.regions.size(), result.seconds * 1e3, result.f32Seconds * 1e3, result.speed,
              result.bound.metricName().c_str(), result.error, result.deciding,
              result.isSynthetic ? "random" : "calibration", result.heldOutError, result.heldOut);
}

json precisionJson(const PrecisionResult &result) {
  json regions = json::array();
  for (size_t r = 0; r < result.regions.size(); ++r) {
    const PrecisionRegion &region = result.regions[r];
    Row row = rowOf(result, r);
    json variants = json::array();
    for (const PrecisionVariant &v : region.variants)
      variants.push_back({{"precision", v.layout},
                          {"arithmetic", v.arithmetic},
                          {"seconds", finite(v.seconds)},
                          {"predicted_s", finite(v.predicted)},
                          {"error", finite(region.error(v))},
                          {"most_rows", v.mostRows},
                          {"bytes", v.weights ? v.weights->size() : 0}});
    regions.push_back({{"region", r},
                       {"nodes", region.location},
                       {"k", region.k},
                       {"n", region.n},
                       {"device", "cpu"},
                       {"precision", row.precision},
                       {"kernel", row.kernel},
                       {"seconds", row.seconds},
                       {"predicted_s", row.predicted},
                       {"f32_s", region.seconds},
                       {"error", finite(row.error)},
                       {"pinned", !region.pinnedBecause.empty()},
                       {"rejected", result.reasons[r]},
                       {"variants", variants}});
  }
  return {{"regions", regions},
          {"metric", result.bound.metricName()},
          {"error", finite(result.error)},
          {"held_out_error", finite(result.heldOutError)},
          {"sets", result.deciding},
          {"held_out_sets", result.heldOut},
          {"synthetic", result.isSynthetic},
          {"seconds", result.seconds},
          {"f32_s", result.f32Seconds},
          {"speed", result.speed},
          {"met", result.isMet}};
}

} // namespace dspark

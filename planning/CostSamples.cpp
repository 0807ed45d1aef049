#include "planning/CostSamples.h"
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace dspark {

using nlohmann::json;

json sampleJson(const CostSample &sample) {
  const CostFeatures &f = sample.features;
  return {{"key", f.key},
          {"work", f.work},
          {"heavy", f.heavy},
          {"steps", f.steps},
          {"starts", f.starts},
          {"moved", f.moved},
          {"constant", f.constant},
          {"parts", f.parts},
          {"footprint", sample.footprint},
          {"seconds", sample.seconds}};
}

Status writeSamples(const std::string &path, const std::vector<CostSample> &samples) {
  json root = {{"cost_samples", json::array()}};
  for (const CostSample &sample : samples)
    root["cost_samples"].push_back(sampleJson(sample));
  std::ofstream file(path, std::ios::binary);
  file << root.dump(1) << "\n";
  file.close();
  return file ? Status::ok() : Status(Code::IoError, path + ": cannot be written");
}

namespace {

bool readSample(const json &entry, CostSample &sample) {
  auto number = [&](const char *name, double &value) {
    if (!entry.contains(name) || !entry[name].is_number())
      return false;
    value = entry[name].get<double>();
    return std::isfinite(value) && value >= 0;
  };
  CostFeatures &f = sample.features;
  if (!entry.is_object() || !entry.contains("key") || !entry["key"].is_string())
    return false;
  f.key = entry["key"].get<std::string>();
  return number("work", f.work) && number("heavy", f.heavy) && number("steps", f.steps) &&
         number("starts", f.starts) && number("moved", f.moved) && number("constant", f.constant) &&
         number("parts", f.parts) && number("footprint", sample.footprint) &&
         number("seconds", sample.seconds) && sample.seconds > 0;
}

} // namespace

StatusOr<std::vector<CostSample>> readSamples(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Status(Code::NotFound, path + ": cannot be opened");
  json root = json::parse(file, nullptr, false);
  if (!root.is_object() || !root.contains("cost_samples") || !root["cost_samples"].is_array())
    return corruptFile(path + ": expected JSON with an array 'cost_samples' (dspark-rt --bench --json)");
  std::vector<CostSample> samples;
  for (const json &entry : root["cost_samples"])
    if (!readSample(entry, samples.emplace_back()))
      return corruptFile(path + ": entry " + std::to_string(samples.size() - 1) +
                         " of 'cost_samples' lacks a feature or has one that is no number >= 0");
  return samples;
}

} // namespace dspark

#include "runtime/adapt/LearnedTable.h"
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace dspark {
namespace {

using nlohmann::json;

constexpr size_t kMostBuckets = 10000;
constexpr uintmax_t kMostBytes = 64 << 20;

std::string hex(int64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

bool readBucket(const json &entry, LearnedBucket &bucket) {
  if (!entry.is_object() || !entry.contains("shapes") || !entry["shapes"].is_string() ||
      !entry.contains("seconds") || !entry["seconds"].is_array() || !entry.contains("variants") ||
      !entry["variants"].is_array())
    return false;
  std::string shapes = entry["shapes"];
  uint64_t key = 0;
  auto read = std::from_chars(shapes.data(), shapes.data() + shapes.size(), key, 16);
  if (read.ec != std::errc() || read.ptr != shapes.data() + shapes.size())
    return false;
  bucket.bucket = int64_t(key);
  for (const json &region : entry["seconds"]) {
    std::vector<double> &seconds = bucket.seconds.emplace_back();
    if (!region.is_array())
      return false;
    for (const json &value : region) {
      bool isGood = value.is_number() && value.get<double>() >= 0 && value.get<double>() < 1e6;
      if (!isGood)
        return false;
      seconds.push_back(value);
    }
  }
  for (const json &value : entry["variants"]) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > 1000)
      return false;
    bucket.current.push_back(value);
  }
  return true;
}

} // namespace

Status saveLearnedTable(const std::string &path, const LearnedFor &whom,
                        const std::vector<LearnedBucket> &buckets) {
  json list = json::array();
  for (const LearnedBucket &bucket : buckets)
    list.push_back(
        {{"shapes", hex(bucket.bucket)}, {"seconds", bucket.seconds}, {"variants", bucket.current}});
  std::string temporary = path + ".tmp";
  std::ofstream file(temporary);
  file << json{{"machine", whom.machine}, {"plan", whom.plan}, {"devices", whom.devices}, {"buckets", list}}
              .dump(1, ' ', false, json::error_handler_t::replace)
       << "\n";
  file.close();
  std::error_code error;
  if (file)
    std::filesystem::rename(temporary, path, error);
  return file && !error ? Status::ok() : Status(Code::IoError, path + ": cannot be written");
}

StatusOr<std::vector<LearnedBucket>> loadLearnedTable(const std::string &path, const LearnedFor &whom) {
  std::error_code error;
  uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error)
    return Status(Code::NotFound, path + ": no such file");
  std::ifstream file(path);
  json table = bytes > kMostBytes ? json() : json::parse(file, nullptr, false);
  if (!table.is_object() || !table.contains("buckets") || !table["buckets"].is_array() ||
      table["buckets"].size() > kMostBuckets)
    return corruptFile(path + ": is no table of what was learned");
  for (auto [key, expected] : {std::pair("machine", &whom.machine), std::pair("plan", &whom.plan),
                               std::pair("devices", &whom.devices)})
    if (!table.contains(key) || table[key] != *expected)
      return Status(Code::Mismatch, path + ": was learned for another " + key);
  std::vector<LearnedBucket> buckets;
  for (const json &entry : table["buckets"])
    if (!readBucket(entry, buckets.emplace_back()))
      return corruptFile(path + ": bucket " + std::to_string(buckets.size() - 1) +
                         " is no list of times and variants");
  return buckets;
}

} // namespace dspark

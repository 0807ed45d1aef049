#include "runtime/llm/model/StepCostFile.h"
#include "planning/MachineProfile.h"
#include "runtime/base/MappedFile.h"
#include "runtime/format/Hash.h"
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace dspark::llm {
namespace {

constexpr size_t kLargestFile = 1 << 20; // bytes; a table has some dozens of points

} // namespace

// The sections' entries hold the hashes of all that the plan is.
uint64_t StepCostFile::hashOf(const PlanFile &plan) { return hashBytes(std::as_bytes(plan.sections())); }

StepCostFile::StepCostFile(uint64_t planHash, int threads, const StepCostOptions &options) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(planHash));
  MachineFacts machine = MachineFacts::read();
  key = std::string(hash) + "-" + machine.fingerprint() + "-" + std::to_string(threads) + "-" +
        std::to_string(options.sequences) + "-" + std::to_string(options.drafts);
  std::filesystem::path profile = MachineProfile::defaultPath(machine);
  if (!profile.empty())
    where = profile.parent_path() / ("steps-" + key + ".json");
}

bool StepCostFile::exists() const {
  std::error_code error;
  return !where.empty() && std::filesystem::exists(where, error);
}

StatusOr<CostTable> StepCostFile::load() const {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(where));
  if (file->bytes().size() > kLargestFile)
    return corruptFile(where + " has " + std::to_string(file->bytes().size()) + " bytes, expected at most " +
                       std::to_string(kLargestFile));
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto steps = json.is_object() ? json.find("steps_of") : json.end();
  if (!json.is_object() || steps == json.end() || *steps != key)
    return corruptFile(where + ": \"steps_of\" is not \"" + key + "\"");
  auto table = CostTable::fromJson(text);
  if (!table.isOk())
    return corruptFile(where + ": " + table.status().message());
  return table;
}

Status StepCostFile::save(const CostTable &table) const {
  auto json = nlohmann::json::parse(table.toJson());
  json["steps_of"] = key;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(where).parent_path(), error);
  const std::string beside = where + "." + std::to_string(getpid());
  std::ofstream file(beside, std::ios::binary);
  file << json.dump() << "\n";
  file.close();
  if (file)
    std::filesystem::rename(beside, where, error);
  if (!file || error) {
    std::filesystem::remove(beside, error);
    return {Code::IoError, where + ": cannot be written"};
  }
  return Status::ok();
}

} // namespace dspark::llm

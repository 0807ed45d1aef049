#include "planning/MachineProfile.h"
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

namespace dspark {

using nlohmann::json;
// planning/generic.json and generic-avx512.json, made by the build
extern const char *const kGenericProfile, *const kGenericAvx512Profile;

namespace {

constexpr const char *kFormat = "dspark machine profile";
constexpr int kVersion = 1;
constexpr std::uintmax_t kMaxBytes = 4 << 20;

// Reads numbers and objects out of JSON and remembers the first thing that is wrong.
class Reader {
public:
  explicit Reader(std::string source) : source(std::move(source)) {}

  double number(const json &object, const char *key, double least) {
    auto it = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || it == object.end() || !it->is_number())
      return fail(std::string("expected a number '") + key + "'");
    double value = it->get<double>();
    if (!std::isfinite(value) || value < least)
      return fail(std::string("'") + key + "' is " + it->dump() + ", expected at least " +
                  std::to_string(least));
    return value;
  }
  const json &object(const json &parent, const char *key) {
    static const json empty = json::object();
    auto it = parent.is_object() ? parent.find(key) : parent.end();
    if (parent.is_object() && it != parent.end() && it->is_object())
      return *it;
    fail(std::string("expected an object '") + key + "'");
    return empty;
  }
  double fail(std::string message) {
    if (status.isOk())
      status = corruptFile(source + ": " + std::move(message));
    return 0;
  }

  Status status;

private:
  std::string source;
};

void readLevels(Reader &reader, const json &root, CostModel &model) {
  auto it = root.find("levels");
  if (it == root.end() || !it->is_array() || it->empty() || it->size() > 8) {
    reader.fail("expected an array 'levels' of 1 to 8 entries");
    return;
  }
  for (const json &entry : *it) {
    MemoryLevel level;
    level.name = entry.is_object() ? entry.value("name", json("")).dump() : "";
    level.name = level.name.size() > 2 ? level.name.substr(1, level.name.size() - 2) : "";
    level.bytes = reader.number(entry, "bytes", 1);
    level.onePerSecond = reader.number(entry, "one_thread_bytes_per_s", 1);
    level.allPerSecond = reader.number(entry, "all_threads_bytes_per_s", 1);
    model.levels.push_back(std::move(level));
  }
}

void readKernels(Reader &reader, const json &root, CostModel &model) {
  for (const auto &[key, entry] : reader.object(root, "kernels").items()) {
    CostTerms terms{};
    for (size_t j = 0; j < kCostTermCount; ++j)
      if (entry.is_object() && entry.contains(kCostTermNames[j]))
        terms[j] = reader.number(entry, kCostTermNames[j], 0);
    model.kernels[key] = terms;
  }
}

json kernelsJson(const CostModel &model) {
  json kernels = json::object();
  for (const auto &[key, terms] : model.kernels) {
    json entry = json::object();
    for (size_t j = 0; j < kCostTermCount; ++j)
      if (terms[j] > 0) {
        char text[32]; // four digits are more than a measurement has
        std::snprintf(text, sizeof text, "%.4g", terms[j]);
        entry[kCostTermNames[j]] = std::strtod(text, nullptr);
      }
    kernels[key] = entry;
  }
  return kernels;
}

std::string lineOf(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int64_t cacheBytes(int index) {
  std::string text = lineOf("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  int64_t value = std::atoll(text.c_str());
  return text.ends_with("K") ? value << 10 : text.ends_with("M") ? value << 20 : value;
}

} // namespace

MachineFacts MachineFacts::read() {
  MachineFacts facts;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !line.empty();)
    for (const char *key : {"vendor_id", "cpu family", "model"})
      if (line.starts_with(key)) {
        size_t colon = line.find(": ");
        if (colon != line.npos)
          facts.cpu += (facts.cpu.empty() ? "" : " ") + line.substr(colon + 2);
      }
  facts.isa = isaName(machineIsa());
  facts.cores = int(sysconf(_SC_NPROCESSORS_ONLN));
  for (int index : {0, 2, 3}) // L1 data, L2, L3; index1 is L1 instructions
    if (int64_t bytes = cacheBytes(index); bytes > 0)
      facts.caches.push_back(bytes);
  return facts;
}

std::string MachineFacts::fingerprint() const {
  std::string text = cpu + "|" + isa + "|" + std::to_string(cores);
  for (int64_t bytes : caches)
    text += "|" + std::to_string(bytes);
  uint64_t hash = 14695981039346656037u; // FNV-1a
  for (char c : text)
    hash = (hash ^ uint8_t(c)) * 1099511628211u;
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

StatusOr<MachineProfile> MachineProfile::parse(std::string_view text, const std::string &source) {
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object())
    return corruptFile(source + ": no JSON object");
  if (root.value("format", json()) != json(kFormat))
    return corruptFile(source + ": expected \"format\": \"" + kFormat + "\"");
  if (root.value("version", json()) != json(kVersion))
    return Status(Code::Version, source + ": expected version " + std::to_string(kVersion) + ", found " +
                                     root.value("version", json()).dump());
  MachineProfile profile;
  profile.source = source;
  if (json print = root.value("fingerprint", json("")); print.is_string())
    profile.fingerprint = print.get<std::string>();
  Reader reader(source);
  const json &machine = reader.object(root, "machine");
  if (json cpu = machine.value("cpu", json("")); cpu.is_string())
    profile.machine.cpu = cpu.get<std::string>();
  if (json isa = machine.value("isa", json("")); isa.is_string())
    profile.machine.isa = isa.get<std::string>();
  profile.machine.cores = int(std::min(4096.0, reader.number(machine, "cores", 1)));
  profile.spread = reader.number(root, "spread", 0);
  CostModel &model = profile.model;
  model.threads = int(std::min(4096.0, reader.number(root, "threads", 1)));
  model.launch = reader.number(root, "launch_s", 0);
  model.barrier = reader.number(root, "barrier_s", 0);
  for (const auto &[isa, peak] : reader.object(root, "peaks").items())
    model.peaks[isa] = {reader.number(peak, "f32_flop_per_s", 1), reader.number(peak, "int8_op_per_s", 1)};
  readLevels(reader, root, model);
  readKernels(reader, root, model);
  const json &fit = reader.object(root, "fit");
  profile.fit.r2 = reader.number(fit, "r2", -1e9);
  profile.fit.median = reader.number(fit, "median", 0);
  profile.fit.worst = reader.number(fit, "worst", 0);
  profile.fit.samples = size_t(std::min(1e9, reader.number(fit, "samples", 0)));
  DSPARK_RETURN_IF_ERROR(reader.status);
  return profile;
}

StatusOr<MachineProfile> MachineProfile::load(const std::string &path) {
  std::error_code error;
  std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error)
    return Status(Code::NotFound, path + ": " + error.message());
  if (bytes > kMaxBytes)
    return corruptFile(path + ": " + std::to_string(bytes) + " bytes, expected at most " +
                       std::to_string(kMaxBytes));
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    return Status(Code::IoError, path + ": cannot be read");
  return parse(text.str(), path);
}

const MachineProfile &MachineProfile::generic() {
  static const MachineProfile profile = *parse(kGenericProfile, "generic");
  return profile;
}

const MachineProfile &MachineProfile::genericOf(Isa isa) {
  static const MachineProfile avx512 = *parse(kGenericAvx512Profile, "generic-avx512");
  return isa >= Isa::Avx512 ? avx512 : generic();
}

std::string MachineProfile::defaultPath(const MachineFacts &machine) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder = cache && *cache ? cache : home && *home ? std::string(home) + "/.cache" : "";
  return folder.empty() ? "" : folder + "/dspark/machine-" + machine.fingerprint() + ".json";
}

MachineProfile MachineProfile::ofThisMachine(std::string &warning) {
  MachineFacts facts = MachineFacts::read();
  const char *named = std::getenv("DSPARK_MACHINE");
  std::string path = named && *named ? named : defaultPath(facts);
  std::error_code error;
  bool isAsked = named && *named;
  if (path.empty() || (!isAsked && !std::filesystem::exists(path, error)))
    return genericOf(activeIsa());
  StatusOr<MachineProfile> loaded = load(path);
  if (!loaded.isOk()) {
    warning = loaded.status().message() + "; the generic profile is used";
    return genericOf(activeIsa());
  }
  if (loaded->fingerprint != facts.fingerprint())
    warning = path + ": was measured on another machine (" + loaded->machine.cpu + ")";
  return *loaded;
}

std::string MachineProfile::text() const {
  nlohmann::ordered_json root;
  root["format"] = kFormat;
  root["version"] = kVersion;
  root["fingerprint"] = fingerprint;
  root["machine"] = {
      {"cpu", machine.cpu}, {"isa", machine.isa}, {"cores", machine.cores}, {"caches", machine.caches}};
  root["spread"] = spread;
  root["threads"] = model.threads;
  root["launch_s"] = model.launch;
  root["barrier_s"] = model.barrier;
  for (const auto &[isa, peak] : model.peaks)
    root["peaks"][isa] = {{"f32_flop_per_s", peak.f32}, {"int8_op_per_s", peak.int8}};
  for (const MemoryLevel &level : model.levels)
    root["levels"].push_back({{"name", level.name},
                              {"bytes", level.bytes},
                              {"one_thread_bytes_per_s", level.onePerSecond},
                              {"all_threads_bytes_per_s", level.allPerSecond}});
  root["fit"] = {{"samples", fit.samples}, {"r2", fit.r2}, {"median", fit.median}, {"worst", fit.worst}};
  root["kernels"] = kernelsJson(model);
  return root.dump(1) + "\n";
}

Status MachineProfile::save(const std::string &path) const {
  std::error_code error;
  std::filesystem::path target(path);
  if (target.has_parent_path())
    std::filesystem::create_directories(target.parent_path(), error);
  std::string beside = path + "." + std::to_string(getpid());
  std::ofstream file(beside, std::ios::binary);
  file << text();
  file.close();
  if (file)
    std::filesystem::rename(beside, target, error);
  if (!file || error) {
    std::filesystem::remove(beside, error);
    return Status(Code::IoError, path + ": cannot be written");
  }
  return Status::ok();
}

} // namespace dspark

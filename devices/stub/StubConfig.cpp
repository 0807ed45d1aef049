#include "devices/stub/StubConfig.h"
#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

namespace dspark {
namespace {

using nlohmann::json;

/// Reads the members of one object; what is unknown or of another kind is an error.
class Reader {
public:
  Reader(const json &object, std::string where) : object(object), where(std::move(where)) {}

  void number(const char *key, double &value, double scale = 1, double least = 0) {
    member(key, [&](const json &found) {
      bool isGood = found.is_number() && found.get<double>() >= least && found.get<double>() <= 1e18;
      if (isGood)
        value = found.get<double>() * scale;
      return isGood;
    });
  }
  void count(const char *key, uint64_t &value) {
    member(key, [&](const json &found) {
      bool isGood = found.is_number_unsigned();
      if (isGood)
        value = found.get<uint64_t>();
      return isGood;
    });
  }
  void text(const char *key, std::string &value, const std::vector<std::string> &allowed = {}) {
    member(key, [&](const json &found) {
      bool isGood = found.is_string() &&
                    (allowed.empty() ||
                     std::find(allowed.begin(), allowed.end(), found.get<std::string>()) != allowed.end());
      if (isGood)
        value = found.get<std::string>();
      return isGood;
    });
  }
  void flag(const char *key, bool &value) {
    member(key, [&](const json &found) {
      if (found.is_boolean())
        value = found.get<bool>();
      return found.is_boolean();
    });
  }
  void texts(const char *key, std::vector<std::string> &value) {
    member(key, [&](const json &found) {
      bool isGood = found.is_array() &&
                    std::all_of(found.begin(), found.end(), [](auto &item) { return item.is_string(); });
      if (isGood)
        value = found.get<std::vector<std::string>>();
      return isGood;
    });
  }
  void objects(const char *key, const std::function<Status(Reader)> &read) {
    member(key, [&](const json &found) {
      if (!found.is_array())
        return false;
      for (size_t i = 0; i < found.size() && status.isOk(); ++i)
        status = read(Reader(found[i], where + key + "[" + std::to_string(i) + "]."));
      return true;
    });
  }
  /// After all members.
  Status finish() {
    if (!object.is_object())
      return corruptFile(where + " is no object");
    for (const auto &[key, value] : object.items())
      if (status.isOk() && !known.contains(key))
        return corruptFile(where + key + " is no key that a stub device knows");
    return status;
  }

private:
  void member(const char *key, const std::function<bool(const json &)> &take) {
    known.insert(key);
    if (!status.isOk() || !object.is_object() || !object.contains(key))
      return;
    bool isTaken = take(object[key]);
    if (!isTaken && status.isOk())
      status = corruptFile(where + key + " is " + object[key].dump().substr(0, 60) +
                           ", expected another kind of value (docs/devices.md)");
  }

  const json &object;
  std::string where;
  std::set<std::string> known;
  Status status;
};

Status readRow(Reader reader, StubRow &row) {
  row.op = "*";
  reader.text("op", row.op);
  reader.texts("types", row.types);
  reader.texts("packed", row.packed);
  reader.number("gflops", row.flopsPerSecond, 1e9);
  reader.number("gbytes_per_s", row.bytesPerSecond, 1e9);
  reader.number("launch_us", row.launch, 1e-6);
  return reader.finish();
}

Status readFault(Reader reader, StubFault &fault) {
  static const std::vector<std::string> kKinds = {"slow", "slow_link", "fault", "hang", "memory"};
  std::string kind = "fault";
  reader.text("kind", kind, kKinds);
  fault.kind = StubFault::Kind(std::find(kKinds.begin(), kKinds.end(), kind) - kKinds.begin());
  reader.count("from", fault.from);
  reader.count("until", fault.until);
  reader.number("factor", fault.factor);
  reader.count("bytes", fault.bytes);
  return reader.finish();
}

Status readConfig(const json &file, StubConfig &config) {
  Reader reader(file, "");
  std::string isa(isaName(config.isa));
  reader.count("memory_bytes", config.memory);
  reader.count("claimed_memory_bytes", config.claimedMemory);
  reader.number("link_latency_us", config.linkLatency, 1e-6);
  reader.number("link_in_gbytes_per_s", config.inPerSecond, 1e9, 1e-6);
  reader.number("link_out_gbytes_per_s", config.outPerSecond, 1e9, 1e-6);
  reader.text("on_open", config.onOpen, {"", "crash", "hang", "fail"});
  reader.number("noise", config.noise);
  reader.count("seed", config.seed);
  reader.flag("takes_time", config.takesTime);
  reader.text("isa", isa, {"baseline", "avx2", "avx512"});
  reader.objects("ops", [&](Reader row) { return readRow(std::move(row), config.rows.emplace_back()); });
  reader.objects("faults",
                 [&](Reader fault) { return readFault(std::move(fault), config.faults.emplace_back()); });
  isaFromName(isa, config.isa);
  return reader.finish();
}

} // namespace

StatusOr<std::vector<StubFault>> StubConfig::parseFaults(const std::string &text) {
  std::vector<StubFault> faults;
  json parsed = {{"faults", json::parse(text, nullptr, false)}};
  Reader reader(parsed, "");
  reader.objects("faults", [&](Reader fault) { return readFault(std::move(fault), faults.emplace_back()); });
  DSPARK_RETURN_IF_ERROR(reader.finish());
  return faults;
}

StatusOr<StubConfig> StubConfig::load(const std::string &path) {
  StubConfig config;
  if (path.empty()) {
    config.rows.push_back({"*", {}, {}, 0, 0, 0});
    return config;
  }
  std::ifstream file(path);
  json parsed = json::parse(file, nullptr, false);
  if (parsed.is_discarded())
    return corruptFile(path + ": is no JSON file");
  DSPARK_RETURN_IF_ERROR(readConfig(parsed, config).in(path));
  return config;
}

} // namespace dspark

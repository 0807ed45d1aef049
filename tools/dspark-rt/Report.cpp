#include "tools/dspark-rt/Report.h"
#include "kernels/common/numeric.h"
#include "runtime/format/Hash.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace dspark {

using nlohmann::json;

namespace {

std::string format(const char *pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string nameOf(const StepInfo &step) {
  return step.location.empty() ? "step " + std::to_string(step.index) : std::string(step.location);
}

// JSON has no NaN or infinity.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

std::string millis(double seconds) {
  return seconds < 1e-3 ? format("%.1f us", seconds * 1e6)
         : seconds < 1  ? format("%.3f ms", seconds * 1e3)
                        : format("%.3f s", seconds);
}

} // namespace

namespace {

// Strings: how many bytes they have, and a hash of them with their lengths.
json summarizeStrings(const TensorView &view, const std::string &name) {
  StreamHash hash;
  uint64_t bytes = 0;
  auto *strings = view.as<const StringElement>();
  for (int64_t i = 0, n = view.elements(); i < n; ++i) {
    hash.add(std::as_bytes(std::span(&strings[i].size, 1)));
    hash.add(std::as_bytes(std::span(strings[i].data, size_t(strings[i].size))));
    bytes += strings[i].size;
  }
  return {{"name", name},
          {"type", "string"},
          {"dims", std::vector<int64_t>(view.dims, view.dims + view.rank)},
          {"bytes", bytes},
          {"hash", format("%016llx", static_cast<unsigned long long>(hash.value()))}};
}

} // namespace

json summarize(const OutputValue &value, const std::string &name) {
  if (!value.isList)
    return summarize(value.tensor, name);
  json items = json::array();
  for (size_t i = 0; i < value.items.size(); ++i)
    items.push_back(summarize(value.items[i], name + "[" + std::to_string(i) + "]"));
  return {{"name", name}, {"items", items}};
}

json summarize(const BorrowedValue &value, const std::string &name) {
  if (!value.isList)
    return summarize(TensorView{value.tensor.data, value.tensor.dims, value.tensor.rank, value.tensor.type},
                     name);
  json items = json::array();
  for (size_t i = 0; i < value.count; ++i)
    items.push_back(summarize(value.items[i], name + "[" + std::to_string(i) + "]"));
  return {{"name", name}, {"items", items}};
}

json summarize(const TensorView &view, const std::string &name) {
  if (view.type == DType::String)
    return summarizeStrings(view, name);
  double least = INFINITY, largest = -INFINITY, sum = 0;
  int64_t numbers = 0, count = view.elements();
  bool isComplex = view.type == DType::C64 || view.type == DType::C128;
  DType type = view.type == DType::C64 ? DType::F32 : view.type == DType::C128 ? DType::F64 : view.type;
  int64_t total = isComplex ? 2 * count : count;
  constexpr int64_t kChunk = 4096;
  double values[kChunk];
  for (int64_t begin = 0; begin < total; begin += kChunk) {
    int64_t n = std::min(kChunk, total - begin);
    loadAsF64(type, view.data, begin, n, values);
    for (int64_t i = 0; i < n; ++i) {
      if (std::isnan(values[i]))
        continue;
      least = std::min(least, values[i]);
      largest = std::max(largest, values[i]);
      sum += values[i];
      ++numbers;
    }
  }
  size_t bytes = size_t(dtypeBytes(view.type, count));
  json result = {{"name", name},
                 {"type", dtypeName(view.type)},
                 {"dims", std::vector<int64_t>(view.dims, view.dims + view.rank)},
                 {"min", finite(least)},
                 {"mean", finite(sum / double(numbers))},
                 {"max", finite(largest)},
                 {"nan", total - numbers}};
  result["hash"] =
      format("%016llx",
             static_cast<unsigned long long>(hashBytes({static_cast<const std::byte *>(view.data), bytes})));
  return result;
}

std::string summaryLine(const json &summary) {
  if (summary.contains("items")) {
    std::string text =
        summary["name"].get<std::string>() + "  list of " + std::to_string(summary["items"].size());
    for (const json &item : summary["items"])
      text += "\n        " + summaryLine(item);
    return text;
  }
  std::string dims = summary["dims"].dump(), line;
  std::replace(dims.begin(), dims.end(), ',', ' ');
  line = summary["name"].get<std::string>() + "  " + summary["type"].get<std::string>() + dims;
  if (summary.contains("bytes"))
    return line + "  " + std::to_string(summary["bytes"].get<uint64_t>()) + " bytes  hash " +
           summary["hash"].get<std::string>();
  for (const char *key : {"min", "mean", "max"})
    if (!summary[key].is_null())
      line += format("  %s %.6g", key, summary[key].get<double>());
  if (summary["nan"].get<int64_t>() > 0)
    line += format("  nan %lld", static_cast<long long>(summary["nan"].get<int64_t>()));
  return line + "  hash " + summary["hash"].get<std::string>();
}

json benchSummary(const BenchResult &bench) {
  std::vector<double> sorted = bench.seconds;
  std::sort(sorted.begin(), sorted.end());
  auto at = [&](double share) { return sorted[size_t(share * double(sorted.size() - 1))]; };
  return {{"runs", sorted.size()},
          {"median_s", at(0.5)},
          {"min_s", sorted.front()},
          {"p10_s", at(0.1)},
          {"p90_s", at(0.9)}};
}

std::string benchLine(const json &s) {
  return millis(s["median_s"]) + " per run (median of " + std::to_string(s["runs"].get<size_t>()) + "; min " +
         millis(s["min_s"]) + ", 10 % " + millis(s["p10_s"]) + ", 90 % " + millis(s["p90_s"]) + ")";
}

json profileLines(const Profile &profile, int runs, double secondsPerRun) {
  std::vector<const Profile::Line *> sorted;
  for (const auto &[key, line] : profile.lines)
    sorted.push_back(&line);
  std::sort(sorted.begin(), sorted.end(), [](auto *a, auto *b) { return a->seconds > b->seconds; });
  json lines = json::array();
  for (const Profile::Line *line : sorted)
    lines.push_back({{"step", line->step->index},
                     {"node", nameOf(*line->step)},
                     {"op", line->step->opName},
                     {"kernel", line->kernel->name},
                     {"calls", double(line->calls) / runs},
                     {"seconds", line->seconds / runs},
                     {"share", line->seconds / runs / secondsPerRun},
                     {"gb_per_s", line->bytes / line->seconds * 1e-9},
                     {"gflop_per_s", line->flops / line->seconds * 1e-9}});
  return lines;
}

void printProfile(const json &lines, double secondsPerRun) {
  std::printf("%10s %6s %7s %8s %9s  %-34s %s\n", "time", "share", "calls", "GB/s", "GFLOP/s", "kernel",
              "node");
  double total = 0;
  for (const json &line : lines) {
    total += line["seconds"].get<double>();
    std::printf("%10s %5.1f%% %7g %8.2f %9.2f  %-34s %s\n", millis(line["seconds"]).c_str(),
                100 * line["share"].get<double>(), line["calls"].get<double>(),
                line["gb_per_s"].get<double>(), line["gflop_per_s"].get<double>(),
                line["kernel"].get<std::string>().c_str(), line["node"].get<std::string>().c_str());
  }
  std::printf("%10s %5.1f%%  of %s per run in steps\n", millis(total).c_str(), 100 * total / secondsPerRun,
              millis(secondsPerRun).c_str());
}

Status writeAdaptLog(const std::string &path, const std::vector<AdaptEvent> &events) {
  std::ofstream out(path);
  for (const AdaptEvent &event : events)
    out << json{{"run", event.run},
                {"shapes", format("%016llx", static_cast<unsigned long long>(event.bucket))},
                {"reason", event.reason},
                {"detail", event.detail},
                {"from", event.from},
                {"to", event.to},
                {"from_s", finite(event.fromSeconds)},
                {"to_s", finite(event.toSeconds)}}
               .dump()
        << "\n";
  out.close();
  return out ? Status::ok() : Status(Code::IoError, path + ": cannot write");
}

Status writeTrace(const std::string &path, const Profile &profile) {
  json events = json::array();
  for (const Profile::Event &event : profile.events)
    events.push_back({{"name", nameOf(*event.step)},
                      {"cat", event.step->opName},
                      {"ph", "X"},
                      {"ts", event.start * 1e6},
                      {"dur", event.seconds * 1e6},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", {{"kernel", event.kernel->name}, {"step", event.step->index}}}});
  std::ofstream out(path);
  out << json{{"traceEvents", events}}.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
  out.close();
  return out ? Status::ok() : Status(Code::IoError, path + ": cannot write");
}

} // namespace dspark

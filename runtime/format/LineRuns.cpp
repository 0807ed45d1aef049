#include "runtime/format/LineRuns.h"
#include <algorithm>
#include <cstring>
#include <string>

namespace dspark {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kLeast = 64 << 10; // bytes; below, a plan gains less than a page table's worth
constexpr uint64_t kSmaller = 64;     // times

struct Run {
  uint64_t count;
  std::byte line[kLine];
};
static_assert(sizeof(Run) == 72);

Run runAt(std::span<const std::byte> runs, size_t index) {
  Run run;
  std::memcpy(&run, runs.data() + index * sizeof run, sizeof run);
  return run;
}

} // namespace

std::optional<std::vector<std::byte>> lineRuns(std::span<const std::byte> bytes) {
  if (bytes.size() < kLeast)
    return std::nullopt;
  const size_t most = bytes.size() / kSmaller / sizeof(Run);
  std::vector<Run> runs;
  for (uint64_t at = 0; at < bytes.size(); at += kLine) {
    std::byte line[kLine] = {};
    std::memcpy(line, bytes.data() + at, std::min(kLine, bytes.size() - at));
    if (!runs.empty() && std::memcmp(line, runs.back().line, kLine) == 0) {
      ++runs.back().count;
      continue;
    }
    if (runs.size() == most)
      return std::nullopt;
    std::memcpy(runs.emplace_back(Run{1, {}}).line, line, kLine);
  }
  std::span<const std::byte> view = std::as_bytes(std::span(runs));
  return std::vector<std::byte>(view.begin(), view.end());
}

Status checkLineRuns(std::span<const std::byte> runs, uint64_t bytes) {
  const uint64_t lines = bytes / kLine + (bytes % kLine != 0);
  uint64_t found = 0;
  for (size_t i = 0; i < runs.size() / sizeof(Run); ++i)
    if (__builtin_add_overflow(found, runAt(runs, i).count, &found))
      found = UINT64_MAX;
  if (found != lines || runs.size() % sizeof(Run) != 0)
    return corruptFile(std::to_string(runs.size()) + " bytes of runs with " + std::to_string(found) +
                       " lines, expected whole runs of " + std::to_string(sizeof(Run)) + " bytes with " +
                       std::to_string(lines) + " lines");
  return Status::ok();
}

void writeLineRuns(std::span<const std::byte> runs, std::span<std::byte> bytes) {
  uint64_t at = 0;
  for (size_t i = 0; i < runs.size() / sizeof(Run); ++i) {
    const Run run = runAt(runs, i);
    for (uint64_t k = 0; k < run.count; ++k, at += kLine)
      std::memcpy(bytes.data() + at, run.line, std::min(kLine, bytes.size() - at));
  }
}

} // namespace dspark

// Times of records, summed per step and kernel, and optionally every single one for a trace.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dspark {

struct StepInfo;
struct Kernel;

class Profile {
public:
  struct Line {
    const StepInfo *step;
    const Kernel *kernel;
    uint64_t calls = 0;
    double seconds = 0, bytes = 0, flops = 0;
    double least = 1e300; // seconds of the fastest call: what nothing disturbed
  };
  struct Event {
    const StepInfo *step;
    const Kernel *kernel;
    double start, seconds; // since the profile was made
  };
  using Clock = std::chrono::steady_clock;

  void add(const StepInfo *step, const Kernel *kernel, Clock::time_point start, Clock::time_point end,
           double bytes, double flops) {
    Line &line = lines.try_emplace({step, kernel}, Line{step, kernel}).first->second;
    double seconds = std::chrono::duration<double>(end - start).count();
    ++line.calls;
    line.seconds += seconds;
    line.least = std::min(line.least, seconds);
    line.bytes += bytes;
    line.flops += flops;
    if (keepEvents)
      events.push_back({step, kernel, std::chrono::duration<double>(start - origin).count(), seconds});
  }
  void clear() {
    lines.clear();
    events.clear();
  }

  bool keepEvents = false;
  std::map<std::pair<const StepInfo *, const Kernel *>, Line> lines;
  std::vector<Event> events;

private:
  Clock::time_point origin = Clock::now();
};

} // namespace dspark

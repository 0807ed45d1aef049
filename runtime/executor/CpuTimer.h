// The CPU time of the calling thread while an object lives.
#pragma once
#include <ctime>

namespace dspark {

class CpuTimer {
public:
  /// Adds to *seconds; null: nothing is measured.
  explicit CpuTimer(double *seconds) : seconds(seconds), start(seconds ? now() : 0) {}
  ~CpuTimer() {
    if (seconds)
      *seconds += now() - start;
  }
  CpuTimer(const CpuTimer &) = delete;
  CpuTimer &operator=(const CpuTimer &) = delete;

private:
  static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
  }

  double *seconds, start;
};

} // namespace dspark

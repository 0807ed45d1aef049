// Tells what a long compile is doing: nothing in the first two seconds, then the current phase once a second.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dspark {

class Progress {
public:
  /// `always` prints each phase as it starts, whatever the time.
  explicit Progress(bool always);
  ~Progress();
  void start(std::string phase);
  void finish();

private:
  void watch();
  void print();

  const bool always;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::mutex mutex;
  std::condition_variable changed;
  std::string phase; // guarded by mutex, so is done
  bool done = false;
  std::thread watcher;
};

} // namespace dspark

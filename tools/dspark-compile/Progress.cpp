#include "tools/dspark-compile/Progress.h"
#include <cstdio>

namespace dspark {

Progress::Progress(bool always) : always(always), watcher([this] { watch(); }) {}

Progress::~Progress() { finish(); }

void Progress::start(std::string name) {
  std::lock_guard lock(mutex);
  phase = std::move(name);
  if (always)
    print();
}

void Progress::finish() {
  {
    std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_all();
  if (watcher.joinable())
    watcher.join();
}

void Progress::print() {
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "[%6.1f s] %s\n", elapsed.count(), phase.c_str());
}

void Progress::watch() {
  std::unique_lock lock(mutex);
  auto wake = begin + std::chrono::seconds(2);
  while (!changed.wait_until(lock, wake, [this] { return done; })) {
    if (!always)
      print();
    wake += std::chrono::seconds(1);
  }
}

} // namespace dspark

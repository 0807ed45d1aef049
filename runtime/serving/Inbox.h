// What other threads hand to the thread of the steps.
#pragma once
#include "runtime/serving/Sequence.h"
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace dspark::serving {

/// Thread-safe.
class Inbox {
public:
  struct Contents {
    std::vector<std::unique_ptr<ActiveRequest>> requests; // in order of arrival
    std::vector<RequestId> cancelled;                     // of these, or of earlier ones
  };

  /// Gives the request its id. Errors: Busy if `most` wait already.
  StatusOr<RequestId> add(std::unique_ptr<ActiveRequest> request, int64_t most) {
    const std::lock_guard lock(mutex);
    if (waiting >= most)
      return Status(Code::Busy,
                    std::to_string(waiting) + " requests wait, at most " + std::to_string(most) + " may");
    ++waiting;
    request->id = ++latest;
    contents.requests.push_back(std::move(request));
    changed.notify_all();
    return latest;
  }
  /// A request of earlier has begun, or ended before it could.
  void leaveQueue() {
    const std::lock_guard lock(mutex);
    --waiting;
  }

  void cancel(RequestId id) {
    const std::lock_guard lock(mutex);
    contents.cancelled.push_back(id);
    changed.notify_all();
  }

  Contents take() {
    const std::lock_guard lock(mutex);
    return std::exchange(contents, {});
  }

  /// Until something has come, at most so long. True: something has.
  bool wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, longest,
                            [&] { return !contents.requests.empty() || !contents.cancelled.empty(); });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  RequestId latest = 0;
  int64_t waiting = 0; // requests that have not begun, here or with the engine
  Contents contents;
};

} // namespace dspark::serving

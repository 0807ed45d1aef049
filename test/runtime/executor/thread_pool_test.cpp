#include "runtime/executor/CpuLimits.h"
#include "runtime/executor/ThreadPool.h"
#include "test/runtime/TemporaryFolder.h"
#include <algorithm>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dspark {
namespace {

struct Marks {
  std::vector<std::atomic<int>> seen;
  std::atomic<bool> threadIsGood{true};
  int threads;
  Marks(uint32_t tiles, int threads) : seen(tiles), threads(threads) {}
  static void mark(void *context, uint32_t begin, uint32_t end, int thread) {
    auto &marks = *static_cast<Marks *>(context);
    if (thread < 0 || thread >= marks.threads)
      marks.threadIsGood = false;
    for (uint32_t i = begin; i < end; ++i)
      ++marks.seen[i];
  }
};

TEST(ThreadPool, EveryTileOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (uint32_t tiles : {0u, 1u, 2u, 3u, 7u, 64u, 1000u}) {
      pool.beginRun();
      for (int round = 0; round < 20; ++round) {
        Marks marks(tiles, threads);
        pool.run(tiles, Marks::mark, &marks);
        for (uint32_t i = 0; i < tiles; ++i)
          EXPECT_EQ(marks.seen[i], 1) << "tile " << i << " of " << tiles;
        EXPECT_TRUE(marks.threadIsGood);
      }
      pool.endRun();
    }
  }
}

// Plain (not atomic) data written by one job and read by the next: the pool must order them, which TSan
// checks.
TEST(ThreadPool, JobsSeeWhatEarlierJobsWrote) {
  struct Data {
    std::vector<int> a = std::vector<int>(512), b = std::vector<int>(512);
  } data;
  ThreadPool pool(4);
  pool.beginRun();
  for (int round = 0; round < 200; ++round) {
    pool.run(
        512,
        [](void *context, uint32_t begin, uint32_t end, int) {
          auto &data = *static_cast<Data *>(context);
          for (uint32_t i = begin; i < end; ++i)
            data.a[i] = data.b[511 - i] + 1;
        },
        &data);
    pool.run(
        512,
        [](void *context, uint32_t begin, uint32_t end, int) {
          auto &data = *static_cast<Data *>(context);
          for (uint32_t i = begin; i < end; ++i)
            data.b[i] = data.a[511 - i];
        },
        &data);
  }
  pool.endRun();
  for (int value : data.b)
    EXPECT_EQ(value, 200);
}

// One tile sleeps. The slabs are cut in chunks of an eighth, and whoever is done takes chunks from the
// others' slabs, so that while it sleeps all tiles but those of its own chunk get done.
TEST(ThreadPool, StalledThreadHoldsNoMoreThanItsChunk) {
  constexpr uint32_t kTiles = 256;
  constexpr int kThreads = 4;
  struct Job {
    std::atomic<uint32_t> done{0}, doneMeanwhile{0}, left{0};
    uint32_t stalled;
  };
  ThreadPool pool(kThreads);
  for (uint32_t stalled : {0u, 63u, 64u, 255u}) {
    Job job;
    job.stalled = stalled;
    pool.beginRun();
    pool.run(
        kTiles,
        [](void *context, uint32_t begin, uint32_t end, int) {
          auto &job = *static_cast<Job *>(context);
          for (uint32_t tile = begin; tile < end; ++tile) {
            if (tile == job.stalled) {
              // Until the rest is done, or for so long that the rest must be waiting.
              for (int i = 0; i < 2000 && job.done < kTiles - kTiles / kThreads / 8; ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
              job.doneMeanwhile = job.done.load();
              job.left = end - tile;
            }
            ++job.done;
          }
        },
        &job);
    pool.endRun();
    EXPECT_EQ(job.done, kTiles);
    EXPECT_LE(job.left, kTiles / kThreads / 8);
    EXPECT_GE(job.doneMeanwhile, kTiles - kTiles / kThreads / 8) << "tile " << stalled << " stalled";
  }
}

// Workers that the system does not let run when a job comes must not be waited for.
TEST(ThreadPool, JobsEndWithoutTheWorkers) {
  static std::atomic<bool> isHeld;
  static std::atomic<int> held;
  isHeld = true;
  held = 0;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {
    ++held;
    while (isHeld)
      usleep(1000);
  };
  sigaction(SIGUSR2, &action, &before);
  struct Threads {
    std::mutex mutex;
    std::map<int, pthread_t> handles;
  } threads;
  ThreadPool pool(3);
  auto meet = [](void *context, uint32_t begin, uint32_t end, int thread) {
    auto &threads = *static_cast<Threads *>(context);
    std::lock_guard lock(threads.mutex);
    threads.handles[thread] = pthread_self();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (int i = 0; i < 1000 && threads.handles.size() < 3; ++i)
    pool.run(300, meet, &threads);
  ASSERT_EQ(threads.handles.size(), 3u);
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // both have gone to sleep
  for (int i : {1, 2})
    pthread_kill(threads.handles[i], SIGUSR2);
  for (int i = 0; i < 1000 && held < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(held, 2);
  Marks marks(100, 3);
  pool.run(100, Marks::mark, &marks); // would not return
  for (const std::atomic<int> &tile : marks.seen)
    EXPECT_EQ(tile, 1);
  isHeld = false;
  pool.run(100, Marks::mark, &marks);
  sigaction(SIGUSR2, &before, nullptr);
}

// Wherever the caller has been moved to.
TEST(ThreadPool, WorkersLeaveTheCallerItsCpu) {
  const std::vector<int> cpus = allowedCpus();
  if (cpus.size() < 2)
    GTEST_SKIP() << "one CPU";
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  ThreadPool pool(int(cpus.size()));
  struct Seen {
    std::mutex mutex;
    std::map<int, int> cpuOf; // by thread
  };
  for (int cpu : {cpus.back(), cpus.front(), cpus.back(), cpus[1]}) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    ASSERT_EQ(sched_setaffinity(0, sizeof only, &only), 0);
    Seen seen;
    auto look = [](void *context, uint32_t, uint32_t, int thread) {
      auto &seen = *static_cast<Seen *>(context);
      std::lock_guard lock(seen.mutex);
      seen.cpuOf[thread] = sched_getcpu();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    pool.beginRun();
    for (int i = 0; i < 1000 && seen.cpuOf.size() < cpus.size(); ++i)
      pool.run(100, look, &seen);
    pool.endRun();
    EXPECT_EQ(seen.cpuOf.size(), cpus.size());
    for (auto [thread, where] : seen.cpuOf)
      EXPECT_EQ(where == cpu, thread == 0) << "thread " << thread;
  }
  sched_setaffinity(0, sizeof before, &before);
}

double cpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(ThreadPool, SleepsBetweenRuns) {
  ThreadPool pool(4);
  Marks marks(1000, 4);
  pool.beginRun();
  pool.run(1000, Marks::mark, &marks);
  pool.endRun();
  std::this_thread::sleep_for(std::chrono::milliseconds(5)); // whoever still spins notices the end
  double before = cpuSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpuSeconds() - before, 0.02) << "three threads that spin would take 0.3 s or more";
}

class CgroupQuota : public testing::Test {
protected:
  void write(const std::string &name, const std::string &text) {
    std::filesystem::create_directories((folder.path / name).parent_path());
    std::ofstream(folder.file(name)) << text;
  }
  double quota() { return cgroupCpuQuota(folder.file("cgroup"), folder.file("self")); }
  test::TemporaryFolder folder;
};

TEST_F(CgroupQuota, None) {
  EXPECT_EQ(quota(), 0);
  write("self", "0::/\n");
  write("cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
}
TEST_F(CgroupQuota, VersionTwoTakesTheTightestFolder) {
  write("self", "0::/a/b\n");
  write("cgroup/a/cpu.max", "150000 100000\n");
  write("cgroup/a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}
TEST_F(CgroupQuota, VersionOne) {
  write("self", "5:cpu,cpuacct:/box\n4:memory:/other\n");
  write("cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
  write("cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.5);
  write("cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota(), 0);
}
TEST(CpuLimits, ThisProcess) {
  EXPECT_FALSE(allowedCpus().empty());
  EXPECT_GE(defaultThreads(), 1);
  EXPECT_LE(defaultThreads(), int(allowedCpus().size()));
}

// What a child process finds that may use one CPU only, or with a mask of all but one.
struct Affinity {
  int allowed = 0, threads = 0;
  bool workersStayInside = true;
};
Affinity inChild(const std::vector<int> &cpus) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : cpus)
      CPU_SET(size_t(cpu), &set);
    Affinity found;
    if (sched_setaffinity(0, sizeof set, &set) == 0) {
      found.allowed = int(allowedCpus().size());
      found.threads = defaultThreads();
      ThreadPool pool(found.allowed + 1);
      struct Job {
        const std::vector<int> &cpus;
        std::atomic<bool> isInside{true};
      } job{cpus};
      pool.run(
          1000,
          [](void *context, uint32_t, uint32_t, int) {
            auto &job = *static_cast<Job *>(context);
            if (std::find(job.cpus.begin(), job.cpus.end(), sched_getcpu()) == job.cpus.end())
              job.isInside = false;
          },
          &job);
      found.workersStayInside = job.isInside;
    }
    _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
  }
  Affinity found;
  EXPECT_EQ(read(ends[0], &found, sizeof found), ssize_t(sizeof found));
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  return found;
}

TEST(CpuLimits, AffinityIsHonoured) {
  std::vector<int> cpus = allowedCpus();
  Affinity one = inChild({cpus.back()});
  EXPECT_EQ(one.allowed, 1);
  EXPECT_EQ(one.threads, 1);
  EXPECT_TRUE(one.workersStayInside);
  if (cpus.size() < 2)
    return;
  std::vector<int> most(cpus.begin() + 1, cpus.end());
  Affinity rest = inChild(most);
  EXPECT_EQ(rest.allowed, int(most.size()));
  EXPECT_LE(rest.threads, int(most.size()));
  EXPECT_TRUE(rest.workersStayInside);
}

} // namespace
} // namespace dspark

#include "runtime/executor/CpuLimits.h"
#include "runtime/executor/ThreadPool.h"
#include "test/runtime/TemporaryFolder.h"
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>

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

} // namespace
} // namespace dspark

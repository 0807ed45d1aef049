// How many threads this process may sensibly use, and on which CPUs.
#pragma once
#include <string>
#include <vector>

namespace dspark {

/// The CPUs in this thread's affinity mask, in ascending order.
std::vector<int> allowedCpus();
/// CPUs' worth of time that the cgroups of this process (v1 or v2) grant; 0 if there is no limit. `root` is
/// where the cgroup file systems are mounted and `self` lists this process's groups; tests pass their own.
double cgroupCpuQuota(const std::string &root = "/sys/fs/cgroup",
                      const std::string &self = "/proc/self/cgroup");
/// Allowed CPUs, lowered to the quota rounded up; at least 1.
int defaultThreads();

} // namespace dspark

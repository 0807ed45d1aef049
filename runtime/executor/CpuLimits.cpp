#include "runtime/executor/CpuLimits.h"
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <sstream>

namespace dspark {

std::vector<int> allowedCpus() {
  // The mask may be wider than cpu_set_t on machines with more than 1024 CPUs.
  for (int width = CPU_SETSIZE; width <= (1 << 20); width *= 2) {
    cpu_set_t *set = CPU_ALLOC(size_t(width));
    size_t bytes = CPU_ALLOC_SIZE(size_t(width));
    std::vector<int> cpus;
    if (sched_getaffinity(0, bytes, set) == 0)
      for (int i = 0; i < width; ++i)
        if (CPU_ISSET_S(size_t(i), bytes, set))
          cpus.push_back(i);
    CPU_FREE(set);
    if (!cpus.empty())
      return cpus;
  }
  return {};
}

namespace {

double quotaIn(const std::string &folder) {
  double quota = 0, period = 0;
  std::string word;
  if (std::ifstream v2(folder + "/cpu.max"); v2 >> word >> period && word != "max")
    quota = std::atof(word.c_str());
  if (quota <= 0 && (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> quota) ||
                     !(std::ifstream(folder + "/cpu.cfs_period_us") >> period)))
    return 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

} // namespace

// A group's limit holds for all groups below it, so every folder from the root down to ours counts.
double cgroupCpuQuota(const std::string &root, const std::string &self) {
  double least = 0;
  auto consider = [&](const std::string &folder) {
    if (double quota = quotaIn(folder); quota > 0)
      least = least > 0 ? std::min(least, quota) : quota;
  };
  consider(root);
  consider(root + "/cpu");
  std::ifstream groups(self);
  for (std::string line; std::getline(groups, line);) {
    // "0::/a/b" for v2, "4:cpu,cpuacct:/a/b" for v1.
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos)
      continue;
    std::string folder = root + (controllers.empty() ? "" : "/cpu");
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, '/');)
      if (!part.empty())
        consider(folder += "/" + part);
  }
  return least;
}

int defaultThreads() {
  int threads = std::max(1, int(allowedCpus().size()));
  if (double quota = cgroupCpuQuota(); quota > 0)
    threads = std::min(threads, std::max(1, int(std::ceil(quota))));
  return threads;
}

} // namespace dspark

#include "kernels/common/families.h"
#include "kernels/common/tiles.h"
#include <algorithm>
#include <unordered_map>

namespace dspark {
namespace {

// All rows, per operator and from the highest level down, in list order within a level.
std::vector<Kernel> collectKernels() {
  std::vector<Kernel> all;
#define DSPARK_FAMILY(name)                                                                                  \
  for (const Kernel &row : name##Kernels())                                                                  \
    all.push_back(row);
#include "kernels/families.def"
#undef DSPARK_FAMILY
  std::stable_sort(all.begin(), all.end(), [](const Kernel &a, const Kernel &b) {
    int order = std::string_view(a.op).compare(b.op);
    return order != 0 ? order < 0 : a.isa > b.isa;
  });
  return all;
}

} // namespace

std::span<const Kernel> allKernels() {
  static const std::vector<Kernel> all = collectKernels();
  return all;
}

bool mayRun(const Kernel &row, Isa cap) { return row.isa <= cap && (row.isa != Isa::Amx || tilesWork()); }

const Kernel *selectKernel(std::string_view op, const KernelCall &call, Isa cap) {
  static const auto index = [] {
    std::unordered_map<std::string_view, std::span<const Kernel>> map;
    std::span<const Kernel> all = allKernels();
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
      for (end = begin; end < all.size() && std::string_view(all[end].op) == all[begin].op;)
        ++end;
      map.emplace(all[begin].op, all.subspan(begin, end - begin));
    }
    return map;
  }();
  auto it = index.find(op);
  if (it == index.end())
    return nullptr;
  for (const Kernel &row : it->second)
    if (mayRun(row, cap) && (!row.accepts || row.accepts(call)))
      return &row;
  return nullptr;
}

} // namespace dspark

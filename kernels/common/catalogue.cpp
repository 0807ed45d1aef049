#include "kernels/common/catalogue.h"
#include "kernels/common/families.h"
#include <string_view>
#include <unordered_map>

namespace dspark {
namespace {

std::vector<OpEntry> collectOps() {
  std::vector<OpEntry> all;
#define DSPARK_FAMILY(name)                                                                                  \
  for (const OpEntry &entry : name##Ops())                                                                   \
    all.push_back(entry);
#include "kernels/families.def"
#undef DSPARK_FAMILY
  return all;
}

} // namespace

std::span<const OpEntry> allOps() {
  static const std::vector<OpEntry> all = collectOps();
  return all;
}

const OpEntry *findOp(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OpEntry *> map;
    for (const OpEntry &entry : allOps())
      map.emplace(entry.name, &entry);
    return map;
  }();
  auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

} // namespace dspark

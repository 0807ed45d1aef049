#include "kernels/common/catalogue.h"
#include "kernels/common/families.h"
#include <algorithm>
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

InferStatus inferWith(const OpEntry &entry, InferContext &ctx) {
  auto isString = [](const TensorInfo &info) { return info.type == DType::String; };
  if (!entry.takesStrings && std::any_of(ctx.in.begin(), ctx.in.end(), isString))
    return ctx.fail(std::string(entry.name) + " does not take strings");
  InferStatus status = entry.infer(ctx);
  if (status == InferStatus::Ok && !entry.takesStrings &&
      std::any_of(ctx.out.begin(), ctx.out.end(), isString))
    return ctx.fail(std::string(entry.name) + " does not make strings");
  return status;
}

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

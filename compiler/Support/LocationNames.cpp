#include "compiler/Support/LocationNames.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dspark {

static void collect(Location loc, llvm::SetVector<StringRef> &names) {
  llvm::TypeSwitch<Location>(loc)
      .Case([&](NameLoc name) { names.insert(name.getName().getValue()); })
      .Case([&](FusedLoc fused) {
        for (Location inner : fused.getLocations())
          collect(inner, names);
      })
      .Case([&](CallSiteLoc call) { collect(call.getCallee(), names); });
}

std::string locationNames(Location loc) {
  llvm::SetVector<StringRef> names;
  collect(loc, names);
  constexpr size_t kMaxNames = 8;
  std::string text;
  for (auto [index, name] : llvm::enumerate(names)) {
    if (index == kMaxNames)
      return text + ", ...";
    text += (index ? ", " : "") + name.str();
  }
  return text;
}

std::string firstLocationName(Location loc) {
  llvm::SetVector<StringRef> names;
  collect(loc, names);
  return names.empty() ? "" : names.front().str();
}

} // namespace dspark

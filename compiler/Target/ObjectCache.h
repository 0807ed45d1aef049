// Compiled objects kept on disk by content, shared by all compiles of a user.
//
// An entry is written to a temporary file and renamed, so that a reader sees a whole entry or none; writers
// of the same key write the same bytes. An entry starts with a checksum; one that does not match is treated
// as absent. Nothing here reports errors: a cache that cannot be read or written only costs time.
#pragma once
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace dspark::codegen {

class ObjectCache {
public:
  /// An empty directory name makes a cache that holds nothing.
  explicit ObjectCache(std::string directory) : directory(std::move(directory)) {}

  std::optional<llvm::SmallVector<char, 0>> load(llvm::StringRef key) const;
  void store(llvm::StringRef key, llvm::StringRef object) const;

private:
  std::string path(llvm::StringRef key) const;
  std::string directory;
};

} // namespace dspark::codegen

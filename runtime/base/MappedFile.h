// A read-only file mapping, unmapped when the object dies.
#pragma once
#include "runtime/base/Status.h"
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace dspark {

class MappedFile {
public:
  /// Fails with NotFound if there is no such file, IoError if it cannot be read. An empty file maps to no
  /// bytes.
  static StatusOr<std::unique_ptr<MappedFile>> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte *>(address), length}; }

private:
  MappedFile(void *address, size_t length) : address(address), length(length) {}
  void *address;
  size_t length;
};

} // namespace dspark

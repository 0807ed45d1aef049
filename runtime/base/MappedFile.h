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
  /// The same, shared; null with `error` set on failure.
  static std::shared_ptr<const MappedFile> open(const std::string &path, std::string &error);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte *>(address), length}; }
  const std::string &path() const { return name; }
  /// Tells the system that a range will not be read again soon, so that it stops counting as resident memory.
  void release(std::span<const std::byte> range) const;

private:
  MappedFile(std::string path, void *address, size_t length)
      : name(std::move(path)), address(address), length(length) {}
  std::string name;
  void *address;
  size_t length;
};

} // namespace dspark

// Generated code: an ELF shared object from a plan's CODE section, loaded from memory.
#pragma once
#include "runtime/base/Status.h"
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace dspark {

class NativeCode {
public:
  /// Loading runs nothing but the object's own initialisers (generated code has none). `name` shows up in
  /// debuggers and messages.
  static StatusOr<std::unique_ptr<NativeCode>> load(std::span<const std::byte> elf, const std::string &name);
  ~NativeCode();
  NativeCode(const NativeCode &) = delete;
  NativeCode &operator=(const NativeCode &) = delete;

  /// The function of that name, or null.
  const void *find(const std::string &symbol) const;

private:
  NativeCode(void *handle, int fd) : handle(handle), fd(fd) {}
  void *handle;
  // Stays open: the loader knows an object by its path, which names this number, and would give the object that
  // is already loaded to the next plan that gets the same number.
  int fd;
};

} // namespace dspark

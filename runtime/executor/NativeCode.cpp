#include "runtime/executor/NativeCode.h"
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dspark {

StatusOr<std::unique_ptr<NativeCode>> NativeCode::load(std::span<const std::byte> elf,
                                                       const std::string &name) {
  // The dynamic loader aborts or crashes on garbage rather than reporting it; refuse what is no ELF file at
  // all.
  if (elf.size() < 64 || std::memcmp(elf.data(), "\177ELF", 4) != 0)
    return corruptFile(name + ": generated code is no ELF object");
  int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (fd < 0)
    return Status(Code::Unsupported, name + ": cannot load generated code: " + std::strerror(errno));
  std::string failure;
  for (size_t done = 0; done < elf.size() && failure.empty();) {
    ssize_t n = write(fd, elf.data() + done, elf.size() - done);
    if (n < 0 && errno != EINTR)
      failure = std::strerror(errno);
    done += size_t(n > 0 ? n : 0);
  }
  void *handle = nullptr;
  if (failure.empty()) {
    handle = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      failure = dlerror();
  }
  if (!handle) {
    close(fd);
    return Status(Code::Unsupported, name + ": cannot load generated code: " + failure +
                                         "; refuse native code to use catalogue kernels instead");
  }
  return std::unique_ptr<NativeCode>(new NativeCode(handle, fd));
}

NativeCode::~NativeCode() {
  dlclose(handle);
  close(fd);
}

const void *NativeCode::find(const std::string &symbol) const { return dlsym(handle, symbol.c_str()); }

} // namespace dspark

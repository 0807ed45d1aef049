#include "runtime/base/MappedFile.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dspark {

StatusOr<std::unique_ptr<MappedFile>> MappedFile::open(const std::string &path) {
  auto failure = [&](const char *what) {
    Code code = errno == ENOENT || errno == ENOTDIR ? Code::NotFound : Code::IoError;
    return Status(code, path + ": cannot " + what + ": " + std::strerror(errno));
  };
  // O_NONBLOCK: a FIFO must be refused, not waited for.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return failure("open");
  struct stat info;
  if (fstat(fd, &info) != 0) {
    Status status = failure("stat");
    close(fd);
    return status;
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return Status(Code::IoError, path + ": is not a regular file");
  }
  size_t length = size_t(info.st_size);
  void *address = nullptr;
  if (length > 0) {
    address = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) {
      Status status = failure("map");
      close(fd);
      return status;
    }
  }
  close(fd);
  return std::unique_ptr<MappedFile>(new MappedFile(path, address, length));
}

MappedFile::~MappedFile() {
  if (length > 0)
    munmap(address, length);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path, std::string &error) {
  StatusOr<std::unique_ptr<MappedFile>> file = open(path);
  if (!file.isOk()) {
    error = file.status().message();
    return nullptr;
  }
  return std::move(*file);
}

void MappedFile::release(std::span<const std::byte> range) const {
  static const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  uintptr_t begin = (uintptr_t(range.data()) + page - 1) & ~(page - 1);
  uintptr_t end = uintptr_t(range.data() + range.size()) & ~(page - 1);
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

} // namespace dspark

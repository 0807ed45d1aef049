#include "compiler/Target/ObjectCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cstring>

namespace dspark::codegen {
namespace fs = llvm::sys::fs;
namespace {
constexpr llvm::StringLiteral kMagic = "DSPOBJ1\n";
constexpr size_t kHeader = kMagic.size() + sizeof(uint64_t);

uint64_t checksum(llvm::StringRef bytes) { return llvm::xxh3_64bits(bytes); }
} // namespace

std::string ObjectCache::path(llvm::StringRef key) const { return directory + "/" + key.str() + ".o"; }

std::optional<llvm::SmallVector<char, 0>> ObjectCache::load(llvm::StringRef key) const {
  if (directory.empty())
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(path(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  llvm::StringRef bytes = (*file)->getBuffer();
  if (bytes.size() < kHeader || !bytes.starts_with(kMagic))
    return std::nullopt;
  uint64_t expected;
  std::memcpy(&expected, bytes.data() + kMagic.size(), sizeof expected);
  llvm::StringRef object = bytes.drop_front(kHeader);
  if (checksum(object) != expected)
    return std::nullopt;
  return llvm::SmallVector<char, 0>(object.begin(), object.end());
}

void ObjectCache::store(llvm::StringRef key, llvm::StringRef object) const {
  if (directory.empty() || fs::create_directories(directory))
    return;
  auto temporary = fs::TempFile::create(directory + "/" + key.str() + ".%%%%%%%%.tmp");
  if (!temporary) {
    llvm::consumeError(temporary.takeError());
    return;
  }
  uint64_t sum = checksum(object);
  llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
  stream << kMagic << llvm::StringRef(reinterpret_cast<const char *>(&sum), sizeof sum) << object;
  stream.flush();
  bool written = !stream.has_error();
  stream.clear_error();
  llvm::consumeError(written ? temporary->keep(path(key)) : temporary->discard());
}

} // namespace dspark::codegen

#include "compiler/Target/SharedObject.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace dspark::codegen {
namespace {

Status writeFile(const std::string &path, const ObjectBytes &bytes) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (!error) {
    stream.write(bytes.data(), bytes.size());
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  return error ? Status(Code::IoError, path + ": " + error.message()) : Status();
}

Status runLinker(const std::vector<std::string> &arguments) {
  static std::mutex mutex;
  static bool usable = true;
  std::lock_guard lock(mutex);
  if (!usable)
    return {Code::Internal, "the linker failed earlier in this process and cannot run again"};
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string output;
  llvm::raw_string_ostream stream(output);
  lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  return result.retCode == 0 ? Status() : Status(Code::Internal, "linking generated code failed: " + output);
}

} // namespace

// lld takes its inputs from files only, so they pass through a private temporary directory.
StatusOr<std::vector<std::byte>> linkSharedObject(llvm::ArrayRef<ObjectBytes> objects) {
  llvm::SmallString<128> directory;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("dspark-link", directory))
    return Status(Code::IoError, "no temporary directory for linking: " + error.message());
  auto cleanup = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(directory); });
  auto file = [&](const std::string &name) { return (directory + "/" + name).str(); };

  std::string output = file("fused.so");
  // No section or page padding beyond what mmap needs; local symbols are of no use to a reader of the plan.
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "--no-undefined",
                                        "--strip-all",
                                        "--build-id=none",
                                        "--hash-style=gnu",
                                        "-znoexecstack",
                                        "-zmax-page-size=4096",
                                        "--threads=1",
                                        "-o",
                                        output};
  for (size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(file(std::to_string(i) + ".o"));
    DSPARK_RETURN_IF_ERROR(writeFile(arguments.back(), objects[i]));
  }
  DSPARK_RETURN_IF_ERROR(runLinker(arguments));
  auto linked = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return Status(Code::IoError, output + ": " + linked.getError().message());
  auto *bytes = reinterpret_cast<const std::byte *>((*linked)->getBufferStart());
  return std::vector<std::byte>(bytes, bytes + (*linked)->getBufferSize());
}

} // namespace dspark::codegen

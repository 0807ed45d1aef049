#include "frontends/checkpoint/TextFile.h"
#include "runtime/base/MappedFile.h"
#include <filesystem>

namespace dspark::checkpoint {

StatusOr<std::optional<std::string>> readTextFile(const std::string &folder, const std::string &name) {
  constexpr size_t kLargest = size_t(256) << 20;
  StatusOr<std::unique_ptr<MappedFile>> file =
      MappedFile::open((std::filesystem::path(folder) / name).string());
  if (!file.isOk())
    return file.status().code() == Code::NotFound ? StatusOr<std::optional<std::string>>(std::nullopt)
                                                  : file.status();
  std::span<const std::byte> bytes = (*file)->bytes();
  if (bytes.size() > kLargest)
    return corruptFile(name + " has " + std::to_string(bytes.size()) + " bytes, more than " +
                       std::to_string(kLargest));
  return std::optional(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

} // namespace dspark::checkpoint

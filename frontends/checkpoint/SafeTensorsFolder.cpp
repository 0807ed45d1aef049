// A checkpoint cut into several files: model.safetensors.index.json says which tensor is in which.
#include "frontends/checkpoint/SafeTensors.h"
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace dspark::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostFiles = 10'000;

/// The files that the index names.
StatusOr<std::set<std::string>> filesOf(std::string_view index) {
  std::set<std::string> names;
  try {
    const Json root = Json::parse(index);
    for (const auto &[tensor, file] : root.at("weight_map").items())
      names.insert(file.get<std::string>());
  } catch (const Json::exception &error) {
    return corruptFile(error.what());
  }
  for (const std::string &name : names)
    if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos ||
        !name.ends_with(".safetensors"))
      return corruptFile("\"" + name.substr(0, 80) + "\" is no name of a .safetensors file in the folder");
  if (names.empty() || names.size() > kMostFiles)
    return corruptFile("weight_map names " + std::to_string(names.size()) + " files, expected 1 to " +
                       std::to_string(kMostFiles));
  return names;
}

} // namespace

StatusOr<std::shared_ptr<const SafeTensorsFolder>> SafeTensorsFolder::open(const std::string &folder) {
  constexpr const char *kWhole = "model.safetensors", *kIndex = "model.safetensors.index.json";
  std::filesystem::path base(folder);
  std::error_code error;
  std::set<std::string> names = {kWhole};
  if (!std::filesystem::exists(base / kWhole, error)) {
    StatusOr<std::unique_ptr<MappedFile>> index = MappedFile::open((base / kIndex).string());
    if (!index.isOk())
      return index.status().code() == Code::NotFound
                 ? Status(Code::NotFound, "the folder has neither model.safetensors nor its index")
                 : index.status();
    std::span<const std::byte> bytes = (*index)->bytes();
    auto listed = filesOf({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
    if (!listed.isOk())
      return listed.status().in(kIndex);
    names = std::move(*listed);
  }
  auto made = std::make_shared<SafeTensorsFolder>();
  for (const std::string &name : names) {
    auto file = SafeTensorsFile::open((base / name).string());
    if (!file.isOk())
      return file.status().in(name);
    for (const auto &[tensor, value] : (*file)->tensors())
      if (!made->byName.emplace(tensor, value).second)
        return corruptFile(name + ": tensor \"" + tensor.substr(0, 80) + "\" is in another file, too");
    made->files.push_back(std::move(*file));
  }
  return std::shared_ptr<const SafeTensorsFolder>(std::move(made));
}

std::shared_ptr<const SafeTensorsFolder> SafeTensorsFolder::of(std::unique_ptr<SafeTensorsFile> file) {
  auto made = std::make_shared<SafeTensorsFolder>();
  made->byName = file->tensors();
  made->files.push_back(std::move(file));
  return made;
}

const SafeTensor *SafeTensorsFolder::find(std::string_view name) const {
  auto found = byName.find(name);
  return found == byName.end() ? nullptr : &found->second;
}

} // namespace dspark::checkpoint

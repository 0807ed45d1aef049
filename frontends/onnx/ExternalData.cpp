#include "frontends/onnx/ExternalData.h"
#include <charconv>
#include <filesystem>
#include <onnx-ml.pb.h>

namespace dspark::onnx {

namespace fs = std::filesystem;

static Status refuse(const std::string &location, const std::string &why) {
  return invalidArgument("external data file '" + location + "' " + why);
}

StatusOr<std::shared_ptr<const MappedFile>> ExternalFiles::open(const std::string &location) {
  if (auto known = files.find(location); known != files.end())
    return known->second;
  if (modelPath.empty())
    return refuse(location, "cannot be found: the model has no folder");
  if (location.empty() || location.find('\0') != std::string::npos)
    return refuse(location, "has no usable name");
  fs::path relative(location);
  if (relative.is_absolute())
    return refuse(location, "is an absolute path; it must lie in the model's folder");
  for (const fs::path &part : relative)
    if (part == "..")
      return refuse(location, "contains '..'; it must lie in the model's folder");

  std::error_code error;
  fs::path folder = fs::canonical(fs::absolute(fs::path(modelPath), error).parent_path(), error);
  if (error)
    return refuse(location, "cannot be found: " + error.message());
  fs::path target = fs::canonical(folder / relative, error);
  if (error)
    return Status(Code::NotFound, "external data file '" + location + "' in '" + folder.string() +
                                      "' cannot be opened: " + error.message());
  auto [inFolder, inTarget] = std::mismatch(folder.begin(), folder.end(), target.begin(), target.end());
  if (inFolder != folder.end())
    return refuse(location, "is a link to '" + target.string() + "', outside the model's folder");
  std::string problem;
  auto file = MappedFile::open(target.string(), problem);
  if (!file)
    return Status(Code::IoError, "external data file '" + location + "': " + problem);
  files.emplace(location, file);
  return file;
}

static bool parseNumber(const std::string &text, uint64_t &value) {
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

StatusOr<ExternalRange> ExternalFiles::resolve(const ::onnx::TensorProto &tensor, uint64_t bytes) {
  std::string location;
  ExternalRange range;
  range.length = bytes;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" && !parseNumber(entry.value(), range.offset))
      return refuse(location, "has the offset '" + entry.value() + "', which is no number");
    else if (entry.key() == "length" && !parseNumber(entry.value(), range.length))
      return refuse(location, "has the length '" + entry.value() + "', which is no number");
  }
  if (range.length != bytes)
    return refuse(location, "gives " + std::to_string(range.length) + " bytes; its type and dims need " +
                                std::to_string(bytes));
  auto file = open(location);
  if (!file.isOk())
    return file.status();
  range.file = *file;
  uint64_t size = range.file->bytes().size();
  if (range.offset > size || range.length > size - range.offset)
    return refuse(location, "has " + std::to_string(size) + " bytes; offset " + std::to_string(range.offset) +
                                " + length " + std::to_string(range.length) + " is beyond its end");
  return range;
}

} // namespace dspark::onnx

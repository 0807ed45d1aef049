// Reader of .safetensors files (https://github.com/huggingface/safetensors): a header in JSON, then tensors
// whose bytes stay in the mapped file. The file may be hostile: every size and offset is checked before it is
// used, and the header is read in one pass without building it up in memory.
#pragma once
#include "kernels/common/dtype.h"
#include "runtime/base/MappedFile.h"
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dspark::checkpoint {

struct SafeTensor {
  DType type = DType::Undefined;
  std::vector<int64_t> dims; // outermost first
  std::span<const std::byte> bytes;
};
using SafeTensors = std::map<std::string, SafeTensor, std::less<>>;

class SafeTensorsFile {
public:
  /// Errors: NotFound, IoError; CorruptFile with the tensor, the value found and the limit; Unsupported with
  /// the element type.
  static StatusOr<std::unique_ptr<SafeTensorsFile>> open(const std::string &path);
  /// The same for bytes that outlive the object.
  static StatusOr<std::unique_ptr<SafeTensorsFile>> read(std::span<const std::byte> bytes);

  const SafeTensors &tensors() const { return byName; }

private:
  SafeTensorsFile() = default;
  Status parse(std::span<const std::byte> bytes);

  std::unique_ptr<MappedFile> file;
  SafeTensors byName;
};

/// The tensors of a checkpoint's folder: model.safetensors, or the files that model.safetensors.index.json
/// names. Those lie in the folder itself; a name with a path is refused.
class SafeTensorsFolder {
public:
  /// Errors: those of the files, with their names in front; NotFound if the folder has neither.
  static StatusOr<std::shared_ptr<const SafeTensorsFolder>> open(const std::string &folder);
  /// One file's tensors, for tests.
  static std::shared_ptr<const SafeTensorsFolder> of(std::unique_ptr<SafeTensorsFile> file);

  /// Null if there is no such tensor.
  const SafeTensor *find(std::string_view name) const;
  const SafeTensors &tensors() const { return byName; }

private:
  std::vector<std::unique_ptr<SafeTensorsFile>> files;
  SafeTensors byName; // spans into `files`
};

} // namespace dspark::checkpoint

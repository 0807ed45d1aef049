// Reader of GGUF files, versions 2 and 3 (the format of llama.cpp;
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): named values, then named tensors whose bytes
// stay in the mapped file. The file may be hostile: every count, size and offset is checked against the file
// before it is used, and nothing is allocated that is larger than what it describes.
#pragma once
#include "frontends/checkpoint/GgmlType.h"
#include "runtime/base/MappedFile.h"
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace dspark::checkpoint {

enum class GgufKind : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

/// One value of the file's metadata; strings and arrays point into the mapping.
struct GgufValue {
  GgufKind kind;
  std::span<const std::byte> bytes; // of the scalar, of the string, or of all elements of the array
  GgufKind element = GgufKind::U8;  // arrays
  uint64_t count = 0;               // arrays

  /// Nothing where the value is of another kind. Integers of all widths convert where they fit.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  std::optional<std::string_view> string() const;
  std::optional<std::vector<std::string_view>> strings() const;
  std::optional<std::vector<double>> numbers() const;
};

struct GgufTensor {
  std::string_view name;
  GgmlTypeInfo type;
  std::vector<int64_t>
      dims; // outermost first, as everywhere in this project; the file has them innermost first
  std::span<const std::byte> bytes;
};

class GgufFile {
public:
  /// Errors: NotFound, IoError; CorruptFile with the key or tensor, the value found and the limit; Version.
  static StatusOr<std::unique_ptr<GgufFile>> open(const std::string &path);
  /// The same for bytes that `owner` keeps alive.
  static StatusOr<std::unique_ptr<GgufFile>> read(std::span<const std::byte> bytes);

  /// Null if there is no such key.
  const GgufValue *find(std::string_view key) const;
  const GgufTensor *tensor(std::string_view name) const;
  const std::vector<GgufTensor> &tensors() const { return tensorList; }
  uint32_t version() const { return formatVersion; }

private:
  GgufFile() = default;
  Status parse(std::span<const std::byte> bytes);

  std::unique_ptr<MappedFile> file;
  uint32_t formatVersion = 0;
  std::map<std::string_view, GgufValue> values;
  std::vector<GgufTensor> tensorList;
  std::map<std::string_view, size_t> tensorIndex;
};

} // namespace dspark::checkpoint

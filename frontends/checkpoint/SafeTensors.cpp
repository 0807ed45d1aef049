#include "frontends/checkpoint/SafeTensors.h"
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace dspark::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLargestHeader = 100'000'000; // bytes; the limit of the format's own reader
constexpr size_t kMostDims = 8;

struct TypeName {
  std::string_view name;
  DType type;
};
constexpr TypeName kTypes[] = {{"F64", DType::F64},
                               {"F32", DType::F32},
                               {"F16", DType::F16},
                               {"BF16", DType::BF16},
                               {"F8_E4M3", DType::F8E4M3FN},
                               {"F8_E5M2", DType::F8E5M2},
                               {"F8_E8M0", DType::F8E8M0},
                               {"I64", DType::I64},
                               {"U64", DType::U64},
                               {"I32", DType::I32},
                               {"U32", DType::U32},
                               {"I16", DType::I16},
                               {"U16", DType::U16},
                               {"I8", DType::I8},
                               {"U8", DType::U8},
                               {"BOOL", DType::Bool}};

std::string inQuotes(std::string_view name) { return "\"" + std::string(name.substr(0, 80)) + "\""; }

// One tensor as the header describes it.
struct Entry {
  std::string name, type;
  std::vector<uint64_t> dims, offsets;
  bool hasDims = false;
};

// Takes {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..: ".."}}
// and stops at the first thing that is something else.
class HeaderReader : public nlohmann::json_sax<Json> {
public:
  std::vector<Entry> entries;
  Status status;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t value) override { return refuse(std::to_string(value)); }
  bool number_float(number_float_t, const string_t &text) override { return refuse(text); }
  bool binary(binary_t &) override { return refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth != 3)
      return refuse(std::to_string(value));
    std::vector<uint64_t> &list = field == "shape" ? entries.back().dims : entries.back().offsets;
    list.push_back(value);
    return list.size() <= kMostDims || fail("a list of more than " + std::to_string(kMostDims) + " numbers");
  }
  bool string(string_t &value) override {
    if (depth == 2 && isMetadata)
      return true;
    if (depth != 2 || field != "dtype")
      return refuse(inQuotes(value));
    entries.back().type = value;
    return true;
  }
  bool start_object(size_t) override {
    if (depth > 1)
      return refuse("an object");
    if (++depth == 2 && !isMetadata)
      entries.emplace_back().name = name;
    return true;
  }
  bool key(string_t &value) override {
    if (depth == 1) {
      name = value;
      field.clear();
      isMetadata = name == "__metadata__";
      return names.emplace(name, true).second || fail("the name occurs twice");
    }
    field = value;
    if (isMetadata)
      return true;
    const Entry &entry = entries.back();
    bool isTwice = (field == "dtype" && !entry.type.empty()) || (field == "shape" && entry.hasDims) ||
                   (field == "data_offsets" && !entry.offsets.empty());
    return !isTwice || fail(inQuotes(field) + " occurs twice");
  }
  bool end_object() override {
    if (depth-- == 2 && !isMetadata) {
      const Entry &entry = entries.back();
      if (entry.type.empty() || !entry.hasDims || entry.offsets.size() != 2)
        return fail("expected dtype, shape and two data_offsets");
    }
    return true;
  }
  bool start_array(size_t) override {
    if (depth != 2 || isMetadata || (field != "shape" && field != "data_offsets"))
      return refuse("a list");
    entries.back().hasDims |= field == "shape";
    ++depth;
    return true;
  }
  bool end_array() override {
    --depth;
    return true;
  }
  bool parse_error(size_t at, const std::string &, const nlohmann::detail::exception &) override {
    status = corruptFile("the header is no JSON at its byte " + std::to_string(at));
    return false;
  }

private:
  bool refuse(const std::string &found) {
    return fail((field.empty() ? "" : inQuotes(field) + ": ") + "found " + found +
                ", which a header has not in this place");
  }
  bool fail(const std::string &sentence) {
    status = corruptFile((depth == 0 ? "the header: " : "tensor " + inQuotes(name) + ": ") + sentence);
    return false;
  }

  int depth = 0; // 1: names, 2: a tensor's fields, 3: inside a list
  std::string name, field;
  bool isMetadata = false;
  std::map<std::string, bool> names;
};

// The entry's tensor, without its bytes.
StatusOr<SafeTensor> tensorOf(const Entry &entry) {
  SafeTensor tensor;
  for (const TypeName &row : kTypes)
    if (row.name == entry.type)
      tensor.type = row.type;
  if (tensor.type == DType::Undefined)
    return Status(Code::Unsupported, "elements of type " + inQuotes(entry.type) + " are not read");
  uint64_t bytes = uint64_t(dtypeBits(tensor.type)) / 8;
  for (uint64_t dim : entry.dims) {
    if (dim > uint64_t(INT64_MAX) || __builtin_mul_overflow(bytes, dim, &bytes) ||
        bytes > uint64_t(INT64_MAX))
      return corruptFile("its shape has more than 2^63 bytes");
    tensor.dims.push_back(int64_t(dim));
  }
  uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (end < begin || end - begin != bytes)
    return corruptFile("its offsets are " + std::to_string(begin) + " and " + std::to_string(end) +
                       ", its shape has " + std::to_string(bytes) + " bytes");
  return tensor;
}

} // namespace

StatusOr<std::unique_ptr<SafeTensorsFile>> SafeTensorsFile::open(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapped, MappedFile::open(path));
  std::unique_ptr<SafeTensorsFile> made(new SafeTensorsFile);
  made->file = std::move(mapped);
  DSPARK_RETURN_IF_ERROR(made->parse(made->file->bytes()));
  return made;
}

StatusOr<std::unique_ptr<SafeTensorsFile>> SafeTensorsFile::read(std::span<const std::byte> bytes) {
  std::unique_ptr<SafeTensorsFile> made(new SafeTensorsFile);
  DSPARK_RETURN_IF_ERROR(made->parse(bytes));
  return made;
}

Status SafeTensorsFile::parse(std::span<const std::byte> bytes) {
  uint64_t headerBytes = 0; // little-endian, like the machine
  if (bytes.size() < sizeof headerBytes)
    return corruptFile("this is no safetensors file: it has " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&headerBytes, bytes.data(), sizeof headerBytes);
  bytes = bytes.subspan(sizeof headerBytes);
  if (headerBytes > std::min<uint64_t>(bytes.size(), kLargestHeader))
    return corruptFile("the header is to have " + std::to_string(headerBytes) + " bytes, the file has " +
                       std::to_string(bytes.size()) + " more (and " + std::to_string(kLargestHeader) +
                       " are the most)");
  auto *text = reinterpret_cast<const char *>(bytes.data());
  HeaderReader header;
  if (!Json::sax_parse(text, text + headerBytes, &header))
    return header.status;
  bytes = bytes.subspan(headerBytes);

  // The format allows no gaps and no overlaps: in order of their offsets, tensors fill the rest of the file.
  std::ranges::sort(header.entries, {}, &Entry::offsets);
  uint64_t at = 0;
  for (const Entry &entry : header.entries) {
    StatusOr<SafeTensor> tensor = tensorOf(entry);
    if (!tensor.isOk())
      return tensor.status().in("tensor " + inQuotes(entry.name));
    if (entry.offsets[0] != at || entry.offsets[1] > bytes.size())
      return corruptFile("tensor " + inQuotes(entry.name) + ": its offsets are " +
                         std::to_string(entry.offsets[0]) + " and " + std::to_string(entry.offsets[1]) +
                         ", the tensors before it end at " + std::to_string(at) + " and the file at " +
                         std::to_string(bytes.size()));
    at = entry.offsets[1];
    tensor->bytes = bytes.subspan(entry.offsets[0], entry.offsets[1] - entry.offsets[0]);
    byName.emplace(entry.name, std::move(*tensor));
  }
  if (at != bytes.size())
    return corruptFile("the last tensor ends at byte " + std::to_string(at) + " of " +
                       std::to_string(bytes.size()));
  return Status::ok();
}

} // namespace dspark::checkpoint

#include "tools/dspark-rt/Npy.h"
#include "kernels/common/numeric.h"
#include "kernels/common/shape.h"
#include "runtime/base/MappedFile.h"
#include <algorithm>
#include <charconv>
#include <cstring>

namespace dspark {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct NumpyType {
  char kind;
  int bytes;
  DType type;
};
constexpr NumpyType kTypes[] = {
    {'f', 4, DType::F32}, {'f', 8, DType::F64},   {'f', 2, DType::F16},  {'i', 8, DType::I64},
    {'i', 4, DType::I32}, {'i', 2, DType::I16},   {'i', 1, DType::I8},   {'u', 8, DType::U64},
    {'u', 4, DType::U32}, {'u', 2, DType::U16},   {'u', 1, DType::U8},   {'b', 1, DType::Bool},
    {'c', 8, DType::C64}, {'c', 16, DType::C128}, {'V', 2, DType::BF16}, // how NumPy saves the extension type
                                                                         // of ml_dtypes
};

// The text after `'key':` in the header's dictionary, or nothing.
std::string_view entryOf(std::string_view header, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    std::string quoted = quote + std::string(key) + quote;
    size_t at = header.find(quoted);
    if (at == std::string_view::npos)
      continue;
    std::string_view rest = header.substr(at + quoted.size());
    size_t begin = rest.find_first_not_of(" :");
    return begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
  }
  return {};
}

bool parseShape(std::string_view text, std::vector<int64_t> &dims) {
  if (text.empty() || text[0] != '(')
    return false;
  const char *at = text.data() + 1, *end = text.data() + text.size();
  for (;;) {
    while (at < end && (*at == ' ' || *at == ','))
      ++at;
    if (at == end)
      return false;
    if (*at == ')')
      return true;
    int64_t dim = 0;
    auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 0 || dims.size() >= kMaxRank)
      return false;
    at = next;
    dims.push_back(dim);
  }
}

void appendUtf8(uint32_t point, std::string &text) {
  if (point < 0x80) {
    text += char(point);
    return;
  }
  int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  text += char((0xf00 >> (more + 1) & 0xff) | (point >> (6 * more) & 0x3f));
  while (more-- > 0)
    text += char(0x80 | (point >> (6 * more) & 0x3f));
}

// Bytes that are no UTF-8 become U+FFFD.
std::u32string fromUtf8(const std::string &text) {
  std::u32string points;
  for (size_t i = 0; i < text.size();) {
    auto first = uint8_t(text[i]);
    size_t more = first < 0x80 ? 0 : first >> 5 == 6 ? 1 : first >> 4 == 14 ? 2 : first >> 3 == 30 ? 3 : 4;
    char32_t point = more == 0 ? first : first & (0x3fu >> more);
    bool isGood = more < 4 && i + more < text.size();
    for (size_t k = 1; isGood && k <= more; ++k) {
      isGood = uint8_t(text[i + k]) >> 6 == 2;
      point = point << 6 | (uint8_t(text[i + k]) & 0x3f);
    }
    points += isGood ? point : U'\ufffd';
    i += isGood ? more + 1 : 1;
  }
  return points;
}

std::vector<std::byte> npyHeader(const std::string &type, const std::vector<int64_t> &dims) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : dims)
    header += std::to_string(dim) + ",";
  header += "), }";
  size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header += std::string((64 - unpadded % 64) % 64, ' ') + "\n";
  std::string start(kMagic);
  start += {1, 0, char(header.size() & 0xff), char(header.size() >> 8)};
  start += header;
  auto bytes = std::as_bytes(std::span(start));
  return {bytes.begin(), bytes.end()};
}

void swapBytes(std::vector<std::byte> &bytes, size_t element) {
  for (size_t at = 0; at + element <= bytes.size(); at += element)
    std::reverse(bytes.begin() + int64_t(at), bytes.begin() + int64_t(at + element));
}

// Columns-first data into rows-first.
void fromFortranOrder(HostTensor &tensor) {
  std::vector<int64_t> strides(tensor.dims.size());
  int64_t stride = 1;
  for (size_t i = 0; i < strides.size(); ++i, stride *= tensor.dims[i - 1])
    strides[i] = stride;
  std::vector<std::byte> dense(tensor.bytes.size());
  BorrowedTensor view = tensor.lend();
  view.strides = strides.data();
  copyStridedToDense(view, dense.data());
  tensor.bytes = std::move(dense);
}

DType numpyType(DType type) {
  for (const NumpyType &row : kTypes)
    if (row.type == type && type != DType::BF16)
      return type;
  return isFloat(type) ? DType::F32 : isSigned(type) ? DType::I8 : DType::U8;
}

// Strings of `width` characters each, of one byte (kind S) or as UTF-32 (kind U), filled up with zeros.
void readStrings(std::span<const std::byte> data, char kind, size_t width, size_t count, HostTensor &tensor) {
  size_t bytes = kind == 'U' ? 4 : 1;
  for (size_t i = 0; i < count; ++i) {
    std::string &text = tensor.strings.emplace_back();
    size_t end = 0; // behind the last character that is not zero
    for (size_t k = 0; k < width; ++k) {
      uint32_t point = 0;
      std::memcpy(&point, data.data() + (i * width + k) * bytes, bytes);
      if (bytes == 1)
        text += char(point);
      else
        appendUtf8(point, text);
      if (point != 0)
        end = text.size();
    }
    text.resize(end);
  }
}

std::vector<std::byte> stringNpyBytes(const HostTensor &tensor) {
  std::vector<std::u32string> wide;
  size_t width = 1;
  for (const std::string &text : tensor.strings) {
    wide.push_back(fromUtf8(text));
    width = std::max(width, wide.back().size());
  }
  std::vector<std::byte> result = npyHeader("<U" + std::to_string(width), tensor.dims);
  for (std::u32string &text : wide) {
    text.resize(width);
    auto bytes = std::as_bytes(std::span(text));
    result.insert(result.end(), bytes.begin(), bytes.end());
  }
  return result;
}

HostTensor converted(const HostTensor &tensor, DType type) {
  HostTensor result{tensor.name, type, tensor.dims, {}};
  int64_t count = tensor.elements();
  std::vector<double> values(static_cast<size_t>(count));
  loadAsF64(tensor.type, tensor.bytes.data(), 0, count, values.data());
  result.bytes.resize(size_t(dtypeBytes(type, count)));
  storeFromF64(type, result.bytes.data(), 0, count, values.data());
  return result;
}

} // namespace

StatusOr<HostTensor> parseNpy(std::span<const std::byte> bytes, const std::string &name) {
  auto broken = [&](const std::string &what) {
    return invalidArgument(name + ": not a usable .npy file: " + what);
  };
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10)
    return broken("it does not start with NumPy's magic bytes");
  int version = text[6];
  size_t lengthBytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3 || text.size() < 8 + lengthBytes)
    return broken("format version " + std::to_string(version) + ", expected 1 to 3");
  uint32_t headerBytes = 0;
  std::memcpy(&headerBytes, text.data() + 8, lengthBytes);
  size_t start = 8 + lengthBytes;
  if (headerBytes > text.size() - start)
    return broken("its header is cut off");
  std::string_view header = text.substr(start, headerBytes);
  start += headerBytes;

  std::string_view descr = entryOf(header, "descr"), order = entryOf(header, "fortran_order");
  HostTensor tensor;
  if (!parseShape(entryOf(header, "shape"), tensor.dims))
    return broken("its shape is not a tuple of at most " + std::to_string(kMaxRank) + " numbers");
  if (descr.size() < 5 || (descr[0] != '\'' && descr[0] != '"'))
    return broken("its element type is a structure");
  descr = descr.substr(1, descr.find(descr[0], 1) - 1);
  for (const NumpyType &row : kTypes)
    if (descr.size() >= 3 && descr[1] == row.kind && descr.substr(2) == std::to_string(row.bytes))
      tensor.type = row.type;
  size_t width = 0; // of strings, in characters
  if (descr.size() >= 3 && (descr[1] == 'U' || descr[1] == 'S')) {
    auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), width);
    if (error == std::errc() && end == descr.data() + descr.size() && width <= UINT32_MAX)
      tensor.type = DType::String;
  }
  if (tensor.type == DType::Undefined)
    return broken("element type '" + std::string(descr) + "', expected a number, bool or string");
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t dim : tensor.dims) {
    isEmpty |= dim == 0;
    if (__builtin_mul_overflow(count, dim, &count) && !isEmpty)
      return broken("its shape overflows");
  }
  uint64_t elementBytes =
      tensor.type != DType::String ? uint64_t(dtypeBits(tensor.type) / 8) : width * (descr[1] == 'U' ? 4 : 1);
  uint64_t expected = isEmpty ? 0 : uint64_t(count) * elementBytes;
  if ((count > 0 && elementBytes > INT64_MAX / uint64_t(count)) || count > INT64_MAX / 16 ||
      expected > text.size() - start)
    return broken("it has " + std::to_string(text.size() - start) + " bytes of data, expected " +
                  std::to_string(expected));
  auto data = bytes.subspan(start, expected);
  if (tensor.type == DType::String) {
    if (descr[0] == '>' || order.starts_with("True"))
      return broken("strings are expected in little-endian order, rows first");
    readStrings(data, descr[1], width, isEmpty ? 0 : size_t(count), tensor);
    return tensor;
  }
  tensor.bytes.assign(data.begin(), data.end());
  if (descr[0] == '>')
    swapBytes(tensor.bytes, size_t(dtypeBits(tensor.type) /
                                   (tensor.type == DType::C64 || tensor.type == DType::C128 ? 16 : 8)));
  if (order.starts_with("True"))
    fromFortranOrder(tensor);
  return tensor;
}

StatusOr<HostTensor> readNpy(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  return parseNpy(file->bytes(), path);
}

std::vector<std::byte> npyBytes(const HostTensor &tensor) {
  if (tensor.type == DType::String)
    return stringNpyBytes(tensor);
  DType type = numpyType(tensor.type);
  if (type != tensor.type)
    return npyBytes(converted(tensor, type));
  const NumpyType *row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto &r) { return r.type == type; });
  std::vector<std::byte> result = npyHeader(
      std::string(row->bytes == 1 ? "|" : "<") + row->kind + std::to_string(row->bytes), tensor.dims);
  result.insert(result.end(), tensor.bytes.begin(), tensor.bytes.end());
  return result;
}

HostTensor asDeclared(HostTensor tensor, DType declared) {
  if (tensor.type == declared || numpyType(declared) == declared)
    return tensor;
  if (tensor.type == numpyType(declared))
    return converted(tensor, declared);
  return tensor;
}

} // namespace dspark

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
  if (tensor.type == DType::Undefined)
    return broken("element type '" + std::string(descr) + "', expected a number or bool");
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t dim : tensor.dims) {
    isEmpty |= dim == 0;
    if (__builtin_mul_overflow(count, dim, &count) && !isEmpty)
      return broken("its shape overflows");
  }
  uint64_t expected = isEmpty ? 0 : uint64_t(count) * uint64_t(dtypeBits(tensor.type) / 8);
  if (count > INT64_MAX / 16 || expected > text.size() - start)
    return broken("it has " + std::to_string(text.size() - start) + " bytes of data, expected " +
                  std::to_string(expected));
  auto data = bytes.subspan(start, expected);
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
  DType type = numpyType(tensor.type);
  if (type != tensor.type)
    return npyBytes(converted(tensor, type));
  const NumpyType *row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto &r) { return r.type == type; });
  std::string header = "{'descr': '" + std::string(row->bytes == 1 ? "|" : "<") + row->kind +
                       std::to_string(row->bytes) + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : tensor.dims)
    header += std::to_string(dim) + ",";
  header += "), }";
  size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header += std::string((64 - unpadded % 64) % 64, ' ') + "\n";
  std::string start(kMagic);
  start += {1, 0, char(header.size() & 0xff), char(header.size() >> 8)};
  start += header;
  std::vector<std::byte> result(start.size() + tensor.bytes.size());
  std::memcpy(result.data(), start.data(), start.size());
  if (!tensor.bytes.empty())
    std::memcpy(result.data() + start.size(), tensor.bytes.data(), tensor.bytes.size());
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

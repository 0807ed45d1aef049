#include "frontends/onnx/TensorReader.h"
#include "frontends/onnx/Skeleton.h"
#include <bit>
#include <cstring>
#include <onnx-ml.pb.h>

namespace dspark::onnx {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

int64_t elementCount(std::span<const int64_t> dims, DType type) {
  int64_t count = 1, bits = 0;
  for (int64_t dim : dims)
    if (dim < 0)
      return -1;
  for (int64_t dim : dims)
    if (dim == 0)
      return 0;
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count))
      return -1;
  // dtypeBytes() rounds up by adding 7.
  if (__builtin_mul_overflow(count, int64_t(dtypeBits(type)), &bits) || bits > INT64_MAX - 7)
    return -1;
  return count;
}

static std::string dimsText(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

using Bytes = std::vector<std::byte>;

/// Each value's low `width` bytes, which is how the typed fields hold narrower types.
template <typename List> static Bytes narrow(const List &values, int width) {
  Bytes out;
  out.reserve(size_t(values.size()) * width);
  for (auto value : values) {
    auto *bytes = reinterpret_cast<const std::byte *>(&value);
    out.insert(out.end(), bytes, bytes + width);
  }
  return out;
}

/// The typed field that holds a tensor of `type`, as dense bytes.
static Bytes typedBytes(const ::onnx::TensorProto &tensor, DType type) {
  switch (type) {
  case DType::F32:
  case DType::C64:
    return narrow(tensor.float_data(), 4);
  case DType::F64:
  case DType::C128:
    return narrow(tensor.double_data(), 8);
  case DType::I64:
    return narrow(tensor.int64_data(), 8);
  case DType::U32:
  case DType::U64:
    return narrow(tensor.uint64_data(), type == DType::U32 ? 4 : 8);
  default: // everything of up to 32 bits; sub-byte types are packed before they are put into the list
    return narrow(tensor.int32_data(), std::max(1, dtypeBits(type) / 8));
  }
}

/// The runtime's bools are 0 or 1; a file may hold anything.
static void normalizeBools(Bytes &bytes) {
  for (std::byte &value : bytes)
    value = std::byte(value != std::byte(0));
}

std::vector<std::byte> stringBytes(const std::vector<std::string> &strings) {
  Bytes bytes(strings.size() * 2 * sizeof(uint64_t));
  for (size_t i = 0; i < strings.size(); ++i) {
    uint64_t place[2] = {bytes.size(), strings[i].size()};
    std::memcpy(bytes.data() + i * sizeof place, place, sizeof place);
    auto *text = reinterpret_cast<const std::byte *>(strings[i].data());
    bytes.insert(bytes.end(), text, text + strings[i].size());
  }
  return bytes;
}

std::span<const std::byte> bytesOf(const Weight &weight) {
  return weight.file ? weight.file->bytes().subspan(weight.offset, weight.length)
                     : std::span<const std::byte>(weight.owned);
}

Status TensorReader::readBytes(const ::onnx::TensorProto &tensor, uint64_t bytes, Weight &weight) {
  auto mismatch = [&](const char *field, uint64_t found) {
    return corruptFile(std::string(field) + " holds " + std::to_string(found) + " bytes; " +
                       std::string(dtypeName(weight.type)) + dimsText(weight.dims) + " needs " +
                       std::to_string(bytes));
  };
  if (tensor.data_location() == ::onnx::TensorProto::EXTERNAL) {
    auto range = external.resolve(tensor, bytes);
    if (!range.isOk())
      return range.status();
    weight.file = range->file;
    weight.offset = range->offset;
    weight.length = range->length;
    return Status::ok();
  }
  if (auto payload = payloadOf(tensor)) {
    if (payload->length != bytes)
      return mismatch("its data", payload->length);
    bool matches =
        payload->field == Payload::Field::Raw ||
        (payload->field == Payload::Field::Floats ? weight.type == DType::F32 || weight.type == DType::C64
                                                  : weight.type == DType::F64 || weight.type == DType::C128);
    if (!matches)
      return corruptFile("its data lies in a field that does not belong to " +
                         std::string(dtypeName(weight.type)));
    weight.file = model;
    weight.offset = payload->offset;
    weight.length = payload->length;
    return Status::ok();
  }
  if (tensor.has_raw_data()) {
    auto *raw = reinterpret_cast<const std::byte *>(tensor.raw_data().data());
    weight.owned.assign(raw, raw + tensor.raw_data().size());
  } else {
    weight.owned = typedBytes(tensor, weight.type);
  }
  if (weight.owned.size() != bytes)
    return mismatch(tensor.has_raw_data() ? "raw_data" : "its data", weight.owned.size());
  return Status::ok();
}

StatusOr<Weight> TensorReader::read(const ::onnx::TensorProto &tensor) {
  std::string where = "tensor '" + tensor.name() + "'";
  Weight weight;
  weight.dims.assign(tensor.dims().begin(), tensor.dims().end());
  if (tensor.data_type() <= 0 || tensor.data_type() >= kDTypeCount)
    return Status(Code::Unsupported,
                  where + ": element type " + std::to_string(tensor.data_type()) + " is not known");
  weight.type = DType(tensor.data_type());
  if (tensor.has_segment())
    return Status(Code::Unsupported, where + ": segmented tensors are not supported");
  int64_t elements = elementCount(weight.dims, weight.type);
  if (elements < 0)
    return corruptFile(where + ": dims " + dimsText(weight.dims) + " are negative or too large");
  if (weight.type == DType::String) {
    if (tensor.string_data_size() != elements)
      return corruptFile(where + ": it has " + std::to_string(tensor.string_data_size()) + " strings; " +
                         dimsText(weight.dims) + " needs " + std::to_string(elements));
    weight.owned = stringBytes({tensor.string_data().begin(), tensor.string_data().end()});
    return weight;
  }
  Status status = readBytes(tensor, uint64_t(dtypeBytes(weight.type, elements)), weight);
  if (!status.isOk())
    return status.in(where);
  if (weight.type == DType::Bool) {
    std::span<const std::byte> bytes = bytesOf(weight);
    weight.owned.assign(bytes.begin(), bytes.end());
    weight.file = nullptr;
    normalizeBools(weight.owned);
  }
  return weight;
}

StatusOr<Weight> TensorReader::read(const ::onnx::SparseTensorProto &sparse) {
  auto values = read(sparse.values());
  if (!values.isOk())
    return values;
  auto indices = read(sparse.indices());
  if (!indices.isOk())
    return indices;
  std::string where = "sparse tensor '" + sparse.values().name() + "'";
  Weight dense;
  dense.type = values->type;
  dense.dims.assign(sparse.dims().begin(), sparse.dims().end());
  int64_t elements = elementCount(dense.dims, dense.type);
  int64_t count = values->elements(), rank = int64_t(dense.dims.size());
  int width = dtypeBits(dense.type) / 8;
  if (elements < 0 || width == 0 || dense.type == DType::String)
    return corruptFile(where + ": bad dims " + dimsText(dense.dims) + " or element type");
  if (elements * width > kMaxSparseBytes)
    return Status(Code::Unsupported,
                  where + ": its dense form of " + std::to_string(elements * width) + " bytes is too large");
  bool linear = indices->dims.size() == 1;
  if (values->dims.size() != 1 || indices->type != DType::I64 || indices->dims.empty() ||
      indices->dims.size() > 2 || indices->dims[0] != count || (!linear && indices->dims[1] != rank))
    return corruptFile(where + ": values must be [N] and indices i64 [N] or [N, " + std::to_string(rank) +
                       "]; found " + dimsText(values->dims) + " and " +
                       std::string(dtypeName(indices->type)) + dimsText(indices->dims));

  dense.owned.assign(size_t(elements) * width, std::byte(0));
  const std::byte *index = bytesOf(*indices).data();
  for (int64_t n = 0; n < count; ++n) {
    int64_t position = 0;
    for (int64_t axis = 0; axis < (linear ? 1 : rank); ++axis, index += 8) {
      int64_t limit = linear ? elements : dense.dims[axis], entry;
      std::memcpy(&entry, index, 8);
      if (entry < 0 || entry >= limit)
        return corruptFile(where + ": index " + std::to_string(entry) + " is outside [0, " +
                           std::to_string(limit) + ")");
      position = linear ? entry : position * limit + entry;
    }
    std::memcpy(dense.owned.data() + position * width, bytesOf(*values).data() + n * width, width);
  }
  return dense;
}

} // namespace dspark::onnx

// SequenceProto, OptionalProto and MapProto. What a field holds is told by the declared type, not by the
// message.
#include "runtime/base/MappedFile.h"
#include "tools/dspark-rt/TensorProto.h"
#include "tools/dspark-rt/WireReader.h"

namespace dspark {
namespace {

using Message = std::span<const std::byte>;

// Field numbers of onnx-data.proto; an OptionalProto's value has that of a SequenceProto's items.
enum Field { kName = 1, kTensorName = 8, kMapIntKeys = 3, kMapStringKeys = 4, kMapValues = 5 };
enum ItemField { kTensorItem = 3, kSequenceItem = 5, kMapItem = 6, kOptionalItem = 7 };

uint64_t fieldOf(fb::TypeKind kind) {
  static constexpr uint64_t kFields[] = {kTensorItem, kSequenceItem, kOptionalItem, kMapItem};
  return kFields[int(kind)];
}

StatusOr<HostValue> parseValue(Message message, const fb::ValueType *type, const std::string &path);

// A map: int64 or string keys, and a sequence of the values, each a tensor of one element.
StatusOr<HostValue> parseMap(Message message, const fb::ValueType &type, const std::string &path) {
  HostValue map, keys, values;
  map.isList = true;
  keys.tensor.type = DType(type.items()->Get(0)->dtype());
  values.tensor.type = DType(type.items()->Get(1)->dtype());
  auto addKey = [&](uint64_t key) {
    auto *bytes = reinterpret_cast<const std::byte *>(&key);
    size_t width = size_t(dtypeBits(keys.tensor.type) / 8);
    keys.tensor.bytes.insert(keys.tensor.bytes.end(), bytes, bytes + std::min<size_t>(width, 8));
  };
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    if (field.number == kMapIntKeys && field.wire == Wire::Varint) {
      addKey(field.value);
    } else if (field.number == kMapIntKeys) {
      uint64_t key;
      for (WireReader packed(field.bytes); !packed.atEnd() && packed.varint(key);)
        addKey(key);
    } else if (field.number == kMapStringKeys) {
      keys.tensor.strings.push_back(textOf(field.bytes));
    } else if (field.number == kMapValues) {
      WireReader items(field.bytes);
      for (WireField item; items.next(item);)
        if (item.number == kTensorItem) {
          DSPARK_ASSIGN_OR_RETURN(HostTensor value, parseTensorProto(item.bytes, path));
          values.tensor.bytes.insert(values.tensor.bytes.end(), value.bytes.begin(), value.bytes.end());
          values.tensor.strings.insert(values.tensor.strings.end(), value.strings.begin(),
                                       value.strings.end());
        }
    }
  }
  for (HostValue *side : {&keys, &values}) {
    HostTensor &tensor = side->tensor;
    int64_t width = std::max(1, dtypeBits(tensor.type) / 8);
    tensor.dims = {tensor.type == DType::String ? int64_t(tensor.strings.size())
                                                : int64_t(tensor.bytes.size()) / width};
  }
  map.items = {std::move(keys), std::move(values)};
  return map;
}

StatusOr<HostValue> parseValue(Message message, const fb::ValueType *type, const std::string &path) {
  HostValue value;
  if (!type || type->kind() == fb::TypeKind::Tensor) {
    DSPARK_ASSIGN_OR_RETURN(value.tensor, parseTensorProto(message, path));
    return value;
  }
  if (type->kind() == fb::TypeKind::Map)
    return parseMap(message, *type, path);
  value.isList = true;
  const fb::ValueType *item = type->items()->Get(0);
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    if (field.number != fieldOf(item->kind()) || field.wire != Wire::Bytes)
      continue;
    DSPARK_ASSIGN_OR_RETURN(HostValue parsed, parseValue(field.bytes, item, path));
    value.items.push_back(std::move(parsed));
  }
  if (!reader.isGood())
    return invalidArgument(path + ": not the protocol buffer of a sequence, optional or map");
  return value;
}

} // namespace

StatusOr<std::string> readProtoName(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  std::string name;
  WireReader reader(file->bytes());
  // A TensorProto's field 1 is its dims, numbers or a list of them; it has names in field 8, which others
  // lack.
  bool isTensor = false;
  for (WireField field; reader.next(field);) {
    bool isText = field.wire == Wire::Bytes;
    if (isText && (field.number == kTensorName || (field.number == kName && !isTensor)))
      name = textOf(field.bytes);
    isTensor |= field.number == kTensorName;
  }
  return name;
}

StatusOr<HostValue> readValueProto(const std::string &path, const fb::ValueType *type) {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  return parseValue(file->bytes(), type, path);
}

} // namespace dspark

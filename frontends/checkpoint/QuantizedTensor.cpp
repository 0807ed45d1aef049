#include "frontends/checkpoint/QuantizedTensor.h"
#include "frontends/checkpoint/Float8Matrix.h"
#include <algorithm>
#include <cstring>

namespace dspark::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;
using Method = QuantizationScheme::Method;

constexpr std::string_view kParts[] = {"qweight",
                                       "qzeros",
                                       "scales",
                                       "g_idx",
                                       "weight_packed",
                                       "weight_scale",
                                       "weight_zero_point",
                                       "weight_g_idx",
                                       "weight_shape",
                                       "weight_scale_inv",
                                       "input_scale",
                                       "k_scale",
                                       "v_scale"};

std::string dimsText(const std::vector<int64_t> &dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

int64_t ceilOf(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// Blocks, and the bytes made for them.
class OwningBlocks : public BlockSource {
public:
  static StatusOr<std::shared_ptr<const BlockSource>> make(const GroupedWeight &weight, GroupedBytes bytes,
                                                           std::vector<std::byte> codes,
                                                           std::vector<std::byte> zeros,
                                                           std::shared_ptr<const SafeTensorsFolder> folder) {
    auto made = std::make_shared<OwningBlocks>();
    made->codes = std::move(codes);
    made->zeros = std::move(zeros);
    made->folder = std::move(folder);
    if (!made->codes.empty())
      bytes.codes = made->codes;
    if (!made->zeros.empty())
      bytes.zeros = made->zeros;
    DSPARK_ASSIGN_OR_RETURN(made->source, groupedSource(weight, bytes));
    return std::shared_ptr<const BlockSource>(std::move(made));
  }
  void read(int64_t column, int64_t block, BlockValues &values) const override {
    source->read(column, block, values);
  }

private:
  std::vector<std::byte> codes, zeros;
  std::shared_ptr<const SafeTensorsFolder> folder;
  std::unique_ptr<BlockSource> source;
};

// The parts of one matrix of integers.
class Grouped {
public:
  explicit Grouped(const QuantizedTensor &tensor) : t(tensor) {
    weight.bits = t.scheme.bits;
    weight.k = t.k;
    weight.n = t.n;
    weight.group = t.scheme.group > 0 ? std::min(t.scheme.group, t.k) : t.k;
  }

  StatusOr<Matrix> gptq() {
    weight.form = GroupedWeight::Form::Gptq;
    weight.hasZeros = true;
    weight.zeroShift = t.scheme.isFirstVersion ? 1 : 0;
    DSPARK_RETURN_IF_ERROR(find("qweight", {DType::I32, DType::U32}, {words(t.k), t.n}, bytes.codes));
    DSPARK_RETURN_IF_ERROR(find("qzeros", {DType::I32, DType::U32}, {groups(), words(t.n)}, bytes.zeros));
    DSPARK_RETURN_IF_ERROR(findScales("scales", {groups(), t.n}));
    DSPARK_RETURN_IF_ERROR(findOrder("g_idx"));
    return matrix();
  }

  StatusOr<Matrix> awq() {
    weight.form = GroupedWeight::Form::Awq;
    weight.hasZeros = true;
    DSPARK_RETURN_IF_ERROR(find("qweight", {DType::I32, DType::U32}, {t.k, words(t.n)}, bytes.codes));
    DSPARK_RETURN_IF_ERROR(find("qzeros", {DType::I32, DType::U32}, {groups(), words(t.n)}, bytes.zeros));
    DSPARK_RETURN_IF_ERROR(findScales("scales", {groups(), t.n}));
    return matrix();
  }

  // compressed-tensors: codes along the terms in words, stored zeros along the columns.
  StatusOr<Matrix> packedIntegers() {
    if (t.k % (32 / std::max(weight.bits, 1)) != 0)
      return Status(Code::Unsupported, "tensor '" + t.name + ".weight_packed': rows of " +
                                           std::to_string(t.k) + " terms do not fill whole words");
    DSPARK_RETURN_IF_ERROR(find("weight_packed", {DType::I32, DType::U32}, {t.n, words(t.k)}, bytes.codes));
    DSPARK_RETURN_IF_ERROR(findScales("weight_scale", {t.n, groups()}));
    if (t.folder->find(t.name + ".weight_zero_point")) {
      weight.hasZeros = true;
      DSPARK_RETURN_IF_ERROR(
          find("weight_zero_point", {DType::I32, DType::U32}, {words(t.n), groups()}, wordsOfZeros));
    }
    DSPARK_RETURN_IF_ERROR(findOrder("weight_g_idx"));
    return matrix();
  }

  // compressed-tensors: signed bytes.
  StatusOr<Matrix> bytesOfIntegers() {
    weight.bits = 8;
    areSigned = true;
    DSPARK_RETURN_IF_ERROR(find("weight", {DType::I8}, {t.n, t.k}, bytes.codes));
    DSPARK_RETURN_IF_ERROR(findScales("weight_scale", {t.n, groups()}));
    if (t.folder->find(t.name + ".weight_zero_point"))
      return Status(Code::Unsupported,
                    "tensor '" + t.name + ".weight_zero_point': zero points of 8-bit weights");
    return matrix();
  }

private:
  int64_t groups() const { return ceilOf(t.k, weight.group); }
  int64_t words(int64_t codes) const { return ceilOf(codes * weight.bits, 32); }

  Status find(const char *part, std::initializer_list<DType> types, const std::vector<int64_t> &dims,
              Bytes &found) {
    DSPARK_ASSIGN_OR_RETURN(const SafeTensor *tensor,
                            findTensor(*t.folder, t.name + "." + part, types, dims));
    found = tensor->bytes;
    return Status::ok();
  }
  Status findScales(const char *part, const std::vector<int64_t> &dims) {
    const SafeTensor *tensor = t.folder->find(t.name + "." + part);
    weight.scaleType = tensor ? tensor->type : DType::F16;
    return find(part, {DType::F16, DType::BF16, DType::F32}, dims, bytes.scales);
  }
  // The group of each term; left away where it is the plain one.
  Status findOrder(const char *part) {
    if (!t.folder->find(t.name + "." + part))
      return Status::ok();
    Bytes found;
    DSPARK_RETURN_IF_ERROR(find(part, {DType::I32}, {t.k}, found));
    StatusOr<std::vector<int64_t>> order = groupOrder(found, t.k, weight.group);
    if (!order.isOk())
      return order.status().in("tensor '" + t.name + "." + part + "'");
    if (!std::ranges::is_sorted(*order)) {
      bytes.groupOfTerm = found;
      termOrder = std::move(*order);
    }
    return Status::ok();
  }

  // NBits' zeros [n][groups], from words along the columns.
  static std::vector<std::byte> turnedZeros(const GroupedWeight &w, Bytes words, int64_t groups) {
    int64_t rowBytes = ceilOf(groups * w.bits, 8), perWord = 32 / w.bits;
    std::vector<std::byte> zeros(size_t(w.n * rowBytes));
    for (int64_t column = 0; column < w.n; ++column)
      for (int64_t g = 0; g < groups; ++g) {
        uint32_t word;
        std::memcpy(&word, words.data() + (column / perWord * groups + g) * 4, 4);
        uint32_t code = word >> column % perWord * w.bits & ((1u << w.bits) - 1);
        zeros[size_t(column * rowBytes + g * w.bits / 8)] |= std::byte(code << g * w.bits % 8);
      }
    return zeros;
  }
  static std::vector<std::byte> unsignedCodes(Bytes codes) {
    std::vector<std::byte> shifted(codes.begin(), codes.end());
    for (std::byte &code : shifted)
      code ^= std::byte(0x80); // q + 128
    return shifted;
  }

  StatusOr<Matrix> matrix() {
    Matrix made;
    StatusOr<std::string> layout = weight.layout();
    if (!layout.isOk())
      return Status(Code::Unsupported, "tensor '" + t.name + "': " + layout.status().message());
    if (weight.form == GroupedWeight::Form::NBits && t.k % weight.group != 0)
      return Status(Code::Unsupported, "tensor '" + t.name + "': " + std::to_string(t.k) +
                                           " terms are no multiple of a group's " +
                                           std::to_string(weight.group));
    made.layout = *layout;
    made.n = t.n;
    made.k = t.k;
    made.termOrder = termOrder;
    made.blocks = [weight = weight, bytes = bytes, wordsOfZeros = wordsOfZeros, areSigned = areSigned,
                   groups = groups(), folder = t.folder]() {
      return OwningBlocks::make(
          weight, bytes, areSigned ? unsignedCodes(bytes.codes) : std::vector<std::byte>(),
          wordsOfZeros.empty() ? std::vector<std::byte>() : turnedZeros(weight, wordsOfZeros, groups),
          folder);
    };
    return made;
  }

  const QuantizedTensor &t;
  GroupedWeight weight;
  GroupedBytes bytes;
  Bytes wordsOfZeros;
  bool areSigned = false;
  std::vector<int64_t> termOrder;
};

bool isFloat8(DType type) { return type == DType::F8E4M3FN || type == DType::F8E5M2; }

} // namespace

StatusOr<const SafeTensor *> findTensor(const SafeTensorsFolder &folder, const std::string &name,
                                        std::initializer_list<DType> types,
                                        const std::vector<int64_t> &dims) {
  const SafeTensor *tensor = folder.find(name);
  if (!tensor)
    return corruptFile("tensor '" + name + "' is missing, expected " + dimsText(dims));
  if (tensor->dims != dims)
    return corruptFile("tensor '" + name + "' is " + dimsText(tensor->dims) + ", expected " + dimsText(dims));
  if (std::ranges::find(types, tensor->type) == types.end()) {
    std::string known;
    for (DType type : types)
      known += (known.empty() ? "" : ", ") + std::string(dtypeName(type));
    return Status(Code::Unsupported, "tensor '" + name + "' is of type " +
                                         std::string(dtypeName(tensor->type)) + ", expected " + known);
  }
  return tensor;
}

bool isQuantizationPart(std::string_view ending) {
  return std::ranges::find(kParts, ending) != std::end(kParts);
}

bool isQuantized(const QuantizedTensor &t) {
  const SafeTensor *weight = t.folder->find(t.name + ".weight");
  return weight ? weight->type == DType::I8 || isFloat8(weight->type)
                : t.folder->find(t.name + ".qweight") || t.folder->find(t.name + ".weight_packed");
}

StatusOr<Matrix> quantizedMatrix(const QuantizedTensor &t) {
  if (const SafeTensor *weight = t.folder->find(t.name + ".weight"))
    return isFloat8(weight->type) ? float8Matrix(t) : Grouped(t).bytesOfIntegers();
  if (t.folder->find(t.name + ".weight_packed"))
    return Grouped(t).packedIntegers();
  if (t.scheme.method == Method::Gptq)
    return Grouped(t).gptq();
  if (t.scheme.method == Method::Awq)
    return Grouped(t).awq();
  return corruptFile("tensor '" + t.name + ".qweight' needs a quantization_config of gptq or awq");
}

} // namespace dspark::checkpoint

#include "runtime/executor/PackedCheck.h"
#include "runtime/executor/Contents.h"
#include "runtime/format/PackedBits.h"
#include "runtime/format/PackedLayout.h"

namespace dspark {
namespace {

// Recurrent layers multiply by W and R, both [directions, gates * hidden, k].
bool isRecurrent(const StepInfo &step) {
  return step.opName == "lstm" || step.opName == "gru" || step.opName == "rnn";
}

// Of operand i, which is packed as `layout`.
StatusOr<uint64_t> expectedBytes(const StepInfo &step, size_t i, std::string_view layout,
                                 const TensorInfo &info) {
  Attrs attrs(step.attrs);
  std::vector<int64_t> dims = numbers(info.dims);
  int64_t elementBytes = dtypeBits(info.type) / 8;
  if (dims.size() < 2)
    return invalidArgument("a packed weight is " + info.str() + ", expected at least rank 2");
  size_t rank = dims.size();
  bool isExpand = step.opName == "expand_depthwise";
  if (isExpand || step.opName.find("conv") != std::string_view::npos) {
    ConvWeight weight;
    weight.group = isExpand && i == 1 ? 1 : attrs.i("group", 1);
    weight.isTransposed = step.opName == "conv_transpose";
    if (weight.group < 1 || weight.group > dims[0] + dims[1])
      return invalidArgument("group is " + std::to_string(weight.group) + " for " + info.str());
    weight.outputs = weight.isTransposed ? dims[1] * weight.group : dims[0];
    weight.inputs = weight.isTransposed ? dims[0] : dims[1] * weight.group;
    for (size_t i = 2; i < rank; ++i)
      weight.spatial *= dims[i];
    weight.elementBytes = elementBytes;
    return packedBytes(layout, weight);
  }
  MatrixWeight weight;
  bool isExperts = step.opName == "packed_experts";
  weight.isTransposed =
      isExperts || step.opName == "packed_rows" || isRecurrent(step) || attrs.i("trans_b", 0) != 0;
  weight.k = dims[rank - (weight.isTransposed ? 1 : 2)];
  weight.n = dims[rank - (weight.isTransposed ? 2 : 1)];
  for (size_t i = 0; i + 2 < rank; ++i)
    weight.batch *= dims[i];
  weight.elementBytes = elementBytes;
  if (std::optional<PackedFormat> format = PackedFormat::named(layout)) {
    std::optional<int64_t> bytes = rank != (isExperts ? 3 : 2) ? std::nullopt
                                   : attrs.i("gated", 0) != 0  ? gatedBytes(*format, weight.k, weight.n)
                                                               : format->bytes(weight.k, weight.n);
    int64_t all = 0;
    if (!bytes || __builtin_mul_overflow(*bytes, weight.batch, &all))
      return invalidArgument("packed layout " + std::string(layout) + " does not fit " + info.str());
    return uint64_t(all);
  }
  return packedBytes(layout, weight);
}

// The layout that operand i must have if it is packed, and how many operands must be.
std::string_view layoutOf(const StepInfo &step, size_t i) {
  Attrs attrs(step.attrs);
  return step.opName == "expand_depthwise" && i == 1 ? attrs.s("expand_packed", "panel16")
                                                     : attrs.s("packed", "");
}
// Whether operand i is a weight, the only ones that may be packed.
bool isWeight(const StepInfo &step, size_t i) {
  if (step.opName == "expand_depthwise")
    return i == 1 || i == 3;
  if (isRecurrent(step) || step.opName == "dynamic_quantize_lstm")
    return i == 1 || i == 2;
  if (step.opName == "multi_matmul")
    return i % 2 == 1;
  return i == (step.opName.starts_with("qlinear") ? 3 : 1);
}
int packedOperands(const StepInfo &step) {
  if (step.opName == "expand_depthwise")
    return 2;
  if (Attrs(step.attrs).s("packed", "").empty())
    return 0;
  if (step.opName == "multi_matmul")
    return int(step.outputs.size());
  return isRecurrent(step) || step.opName == "dynamic_quantize_lstm" ? 2 : 1;
}

} // namespace

Status checkPackedOperands(const Program &program, const StepInfo &step, std::span<const TensorInfo> inputs) {
  int found = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (step.inputs[i] < 0)
      continue;
    const ValueInfo &value = program.values()[size_t(step.inputs[i])];
    if (value.layout.empty())
      continue;
    ++found;
    std::string_view packed = layoutOf(step, i);
    auto what = [&] { return step.where() + ": operand " + std::to_string(i); };
    if (!isWeight(step, i))
      return corruptFile(what() + " has layout '" + std::string(value.layout) + "', expected none");
    if (value.kind != fb::ValueKind::Constant || value.layout != packed)
      return corruptFile(what() + " has layout '" + std::string(value.layout) + "', expected '" +
                         std::string(packed) + "' and a constant");
    DSPARK_ASSIGN_OR_RETURN(uint64_t expected, expectedBytes(step, i, packed, inputs[i]));
    if (value.bytes.size() < expected)
      return corruptFile(what() + " has " + std::to_string(value.bytes.size()) + " bytes, expected " +
                         std::to_string(expected) + " as layout '" + std::string(packed) + "' of " +
                         inputs[i].str());
  }
  if (int expected = packedOperands(step); found != expected)
    return corruptFile(step.where() + ": " + std::to_string(found) + " operands are packed, expected " +
                       std::to_string(expected));
  return Status::ok();
}

} // namespace dspark

#include "frontends/onnx/ops/MatMulNBits.h"
#include "frontends/onnx/GraphImporter.h"
#include "runtime/format/PackedBits.h"
#include <cstring>

namespace dspark::onnx {
namespace {

/// The constant operands. Copies refer to the model file, so that the recipe may outlive the import.
struct Operands {
  Weight codes, scales;
  std::optional<Weight> zeros, groupOfTerm;

  GroupedBytes bytes() const {
    return {bytesOf(codes), bytesOf(scales), zeros ? bytesOf(*zeros) : std::span<const std::byte>(),
            groupOfTerm ? bytesOf(*groupOfTerm) : std::span<const std::byte>()};
  }
};

std::optional<Operands> constantOperands(Node &n) {
  auto known = [&](size_t i) { return n.has(i) ? n.importer().known(n.in(i)) : std::nullopt; };
  std::optional<Weight> codes = known(1), scales = known(2);
  Operands operands;
  operands.zeros = known(3);
  operands.groupOfTerm = known(4);
  if (!codes || !scales || n.has(3) != operands.zeros.has_value() ||
      n.has(4) != operands.groupOfTerm.has_value()) {
    n.unsupported("MatMulNBits with weights that are not constants is not supported");
    return std::nullopt;
  }
  operands.codes = std::move(*codes);
  operands.scales = std::move(*scales);
  return operands;
}

Weight packedRecipe(const GroupedWeight &weight, const std::string &layout, DType type, Operands operands) {
  Weight packed;
  packed.type = type;
  packed.dims = {weight.n, weight.k};
  packed.layout = layout;
  packed.derive = [weight, layout, operands = std::move(operands)](std::vector<std::byte> &out,
                                                                   std::string &error) {
    out.resize(size_t(*PackedFormat::named(layout)->bytes(weight.k, weight.n)));
    Status status = packGrouped(weight, operands.bytes(), out);
    error = status.message();
    if (operands.codes.file)
      operands.codes.file->release(bytesOf(operands.codes));
    return status.isOk();
  };
  return packed;
}

/// Scattered groups: the rows' terms in the order in which the weights are packed.
mlir::Value reordered(Node &n, mlir::Value a, const GroupedWeight &weight, const Operands &operands) {
  StatusOr<std::vector<int64_t>> order = groupOrder(operands.bytes().groupOfTerm, weight.k, weight.group);
  if (!order.isOk()) {
    n.unsupported(order.status().message());
    return {};
  }
  Weight indices;
  indices.type = DType::I64;
  indices.dims = {weight.k};
  indices.owned.resize(order->size() * 8);
  std::memcpy(indices.owned.data(), order->data(), indices.owned.size());
  return n.one("gather", {a, n.importer().weight(n.loc(), "term_order", std::move(indices))},
               {n.attr("axis", int64_t(-1))});
}

} // namespace

void buildMatMulNBits(Node &n) {
  if (n.i("weight_prepacked", 0) != 0)
    return n.unsupported("weights that onnxruntime has packed for itself are not supported");
  std::optional<Operands> operands = constantOperands(n);
  if (!operands)
    return;
  GroupedWeight weight;
  weight.bits = int(std::clamp<int64_t>(n.i("bits", 4), 0, 99));
  weight.group = n.i("block_size", 0);
  weight.k = n.i("K", 0);
  weight.n = n.i("N", 0);
  weight.scaleType = operands->scales.type;
  weight.hasZeros = operands->zeros.has_value();
  weight.zerosAreValues = operands->zeros && operands->zeros->type == weight.scaleType;
  if (operands->codes.type != DType::U8 ||
      (weight.hasZeros && !weight.zerosAreValues && operands->zeros->type != DType::U8) ||
      (operands->groupOfTerm && operands->groupOfTerm->type != DType::I32))
    return n.invalid("expected codes of u8, zero points of u8 or the scales' type, and g_idx of i32");
  StatusOr<std::string> layout = weight.layout();
  if (!layout.isOk())
    return n.unsupported(layout.status().message());
  Status fits = checkGrouped(weight, operands->bytes());
  if (!fits.isOk())
    return n.invalid(fits.message());
  mlir::Value a = n.in(0);
  if (operands->groupOfTerm)
    a = reordered(n, a, weight, *operands);
  if (!a)
    return;
  auto source = n.in(1).getDefiningOp<ir::WeightOp>();
  std::string name = source ? source.getWeight().str() : "weights";
  mlir::Value b = n.importer().packedWeight(
      n.in(1).getLoc(), name, packedRecipe(weight, *layout, n.type(n.in(0)), std::move(*operands)));
  Attributes attributes = {n.attr("trans_b", int64_t(1)), n.attr("packed", *layout)};
  // Levels 0 to 3 ask for rows of at least f32, f16 or bf16: they stay as they are.
  if (n.i("accuracy_level", 0) == 4)
    attributes.push_back(n.attr("arithmetic", "int8"));
  n.out(0, n.one("matmul", n.has(5) ? Values{a, b, n.in(5)} : Values{a, b}, attributes));
}

} // namespace dspark::onnx

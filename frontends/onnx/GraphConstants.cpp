// Constants and weights of a graph: what is small enough becomes dspark.constant, the rest dspark.weight.
#include "frontends/onnx/GraphImporter.h"

namespace dspark::onnx {

using Kind = ImportIssue::Kind;

mlir::Value GraphImporter::none(mlir::Location loc) {
  mlir::Value value = factory.none(loc);
  analysis.visit(value.getDefiningOp());
  return value;
}

mlir::Value GraphImporter::smallConstant(mlir::Location loc, DType type, llvm::ArrayRef<int64_t> dims,
                                         std::span<const std::byte> bytes) {
  auto value = factory.constant(loc, type, dims, llvm::ArrayRef(bytes.data(), bytes.size()));
  if (mlir::failed(value))
    return {};
  analysis.visit(value->getDefiningOp());
  return *value;
}

mlir::Value GraphImporter::strings(mlir::Location loc, std::vector<int64_t> dims,
                                   const std::vector<std::string> &values) {
  Weight data;
  data.type = DType::String;
  data.dims = std::move(dims);
  data.owned = stringBytes(values);
  return weight(loc, "strings", std::move(data));
}

mlir::Value GraphImporter::splat(mlir::Location loc, mlir::RankedTensorType type, mlir::Attribute element) {
  mlir::Value value = factory.constant(loc, mlir::DenseElementsAttr::get(type, element));
  analysis.visit(value.getDefiningOp());
  return value;
}

mlir::Value GraphImporter::weight(mlir::Location loc, const std::string &name, Weight data) {
  if (data.type != DType::String && dtypeBytes(data.type, data.elements()) <= ir::kMaxConstantBytes)
    return smallConstant(loc, data.type, data.dims, bytesOf(data));
  DType type = data.type;
  std::vector<int64_t> dims = data.dims;
  std::string unique = result.weights.add(name.empty() ? "constant" : name, std::move(data));
  mlir::Value value = factory.weight(loc, unique, type, dims);
  analysis.visit(value.getDefiningOp());
  return value;
}

mlir::Value GraphImporter::packedWeight(mlir::Location loc, const std::string &name, Weight data) {
  DType type = data.type;
  std::vector<int64_t> dims = data.dims;
  std::string layout = data.layout, unique = result.weights.add(name + "." + layout, std::move(data));
  mlir::Value value = factory.weight(loc, unique, type, dims, layout);
  analysis.visit(value.getDefiningOp());
  return value;
}

std::optional<Weight> GraphImporter::known(mlir::Value value) const {
  if (auto weight = value.getDefiningOp<ir::WeightOp>()) {
    const Weight *found = result.weights.find(weight.getWeight().str());
    return found && found->layout.empty() && !found->derive ? std::optional(*found) : std::nullopt;
  }
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  if (!constant)
    return std::nullopt;
  Weight weight;
  auto type = mlir::cast<mlir::RankedTensorType>(constant.getType());
  weight.type = ir::dtypeOf(type.getElementType());
  weight.dims.assign(type.getShape().begin(), type.getShape().end());
  weight.owned = ir::literalBytes(constant.getValue());
  return weight;
}

template <typename Proto> mlir::Value GraphImporter::constant(Node &n, const Proto &tensor) {
  auto data = model.tensors->read(tensor);
  if (!data.isOk()) {
    if (data.status().code() == Code::Unsupported)
      n.unsupported(data.status().message());
    else
      n.invalid(data.status().message());
    return {};
  }
  return weight(n.loc(), n.proto().output_size() ? n.proto().output(0) : "", std::move(*data));
}
template mlir::Value GraphImporter::constant(Node &, const ::onnx::TensorProto &);
template mlir::Value GraphImporter::constant(Node &, const ::onnx::SparseTensorProto &);

void GraphImporter::importInitializers(Scope &scope, const ::onnx::GraphProto &graph) {
  auto import = [&](const auto &tensor, const std::string &name) {
    auto data = model.tensors->read(tensor);
    Imported value{{}, !data.isOk()};
    if (data.isOk())
      value.value = weight(mlir::NameLoc::get(opBuilder.getStringAttr(name)), name, std::move(*data));
    else
      issue(data.status().code() == Code::Unsupported ? Kind::Unsupported : Kind::Invalid,
            data.status().message());
    define(scope, name, value);
  };
  for (const auto &tensor : graph.initializer())
    import(tensor, tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    import(tensor, tensor.values().name());
}

} // namespace dspark::onnx

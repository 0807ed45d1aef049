#include "frontends/language/GraphBuilder.h"
#include "dialects/DSpark/Infer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cstring>
#include <numeric>

using namespace mlir;

namespace dspark::language {

using checkpoint::Matrix;

namespace {

// Brings experts to one layout where floats of several types are in the way. Whether they then have one.
bool unifyLayouts(std::vector<Matrix> &matrices) {
  const auto isOfFirst = [&](const Matrix &m) { return m.layout == matrices.front().layout; };
  if (!llvm::all_of(matrices, isOfFirst) || matrices.front().layout.empty())
    for (Matrix &matrix : matrices)
      matrix = matrix.isBlocks() ? matrix : checkpoint::asFloats(matrix);
  return llvm::all_of(matrices, isOfFirst);
}

} // namespace

GraphBuilder::GraphBuilder(ModuleOp module, StringRef function, const checkpoint::DecoderWeights &weights,
                           WeightStore &store, const char *arithmetic)
    : weights(weights), store(store), arithmetic(arithmetic), builder(module.getContext()),
      factory(builder, analysis) {
  module.getContext()->loadDialect<ir::DSparkDialect, func::FuncDialect>();
  builder.setInsertionPointToEnd(module.getBody());
  main = func::FuncOp::create(builder, builder.getUnknownLoc(), function, builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(main.addEntryBlock());
}

Location GraphBuilder::loc() const { return NameLoc::get(StringAttr::get(builder.getContext(), place)); }

void GraphBuilder::fail(Status status) {
  if (error.isOk())
    error = std::move(status);
}

Value GraphBuilder::argument(const std::string &name, DType type, const std::vector<std::string> &texts,
                             bool isState) {
  SmallVector<int64_t> shape;
  SmallVector<Attribute> dimTexts;
  for (const std::string &text : texts) {
    bool isNumber = text.find_first_not_of("0123456789") == std::string::npos;
    shape.push_back(isNumber ? std::stoll(text) : ShapedType::kDynamic);
    dimTexts.push_back(builder.getStringAttr(text));
  }
  unsigned index = main.getNumArguments();
  auto tensor = RankedTensorType::get(shape, ir::mlirType(type, builder.getContext()));
  SmallVector<NamedAttribute> attributes = {
      builder.getNamedAttr(ir::kNameAttr, builder.getStringAttr(name)),
      builder.getNamedAttr(ir::kDimsAttr, builder.getArrayAttr(dimTexts))};
  if (isState)
    attributes.push_back(builder.getNamedAttr(ir::kStateAttr, builder.getUnitAttr()));
  Location where = NameLoc::get(builder.getStringAttr(name));
  if (failed(main.insertArgument(index, tensor, builder.getDictionaryAttr(attributes), where)))
    fail({Code::Internal, "argument '" + name + "' cannot be added"});
  analysis.bindArgument(main, index);
  return main.getArgument(index);
}

void GraphBuilder::finish(ArrayRef<Result> results) {
  if (!error.isOk())
    return;
  SmallVector<Value> values;
  for (const Result &result : results)
    values.push_back(result.value);
  func::ReturnOp::create(builder, main.getLoc(), values);
  main.setType(builder.getFunctionType(main.getArgumentTypes(), TypeRange(values)));
  for (auto [index, result] : llvm::enumerate(results))
    main.setResultAttr(unsigned(index), ir::kNameAttr, builder.getStringAttr(result.name));
}

SmallVector<Value> GraphBuilder::ops(StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attributes,
                                     unsigned results) {
  SmallVector<Value> nothing(results);
  if (!error.isOk() || llvm::is_contained(operands, Value()))
    return nothing;
  FailureOr<SmallVector<Value>> made = factory.make(loc(), name, operands, attributes, results);
  if (succeeded(made))
    return *made;
  fail({Code::Internal, place + ": " + name.str() + ": " + factory.error()});
  return nothing;
}

Value GraphBuilder::scale(Value x, double factor) {
  return factor == 1 ? x : binary("mul", x, factory.scalar(loc(), float(factor)));
}

Value GraphBuilder::slice(Value x, int64_t axis, int64_t begin, int64_t end) {
  return op("slice",
            {x, factory.ints(loc(), {begin}), factory.ints(loc(), {end}), factory.ints(loc(), {axis})});
}

Value GraphBuilder::copy(Operation *op) { return error.isOk() ? builder.clone(*op)->getResult(0) : Value(); }

Value GraphBuilder::dims(const std::vector<std::string> &expressions, Type type) {
  SmallVector<Attribute> texts;
  for (const std::string &text : expressions)
    texts.push_back(builder.getStringAttr(text));
  auto made = ir::DimsOp::create(builder, loc(), type, builder.getArrayAttr(texts));
  analysis.visit(made);
  return made.getResult();
}

Value GraphBuilder::shape(const std::vector<std::string> &texts) {
  return dims(texts, RankedTensorType::get({int64_t(texts.size())}, builder.getI64Type()));
}

Value GraphBuilder::reshape(Value x, const std::vector<std::string> &texts) {
  return op("reshape", {x, shape(texts)}, {attr("allowzero", 1)});
}

Value GraphBuilder::floats(const std::string &name, const std::vector<float> &values,
                           std::vector<int64_t> shape) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  if (int64_t(bytes.size()) <= ir::kMaxConstantBytes) {
    FailureOr<Value> made = factory.constant(loc(), DType::F32, shape, ArrayRef(bytes.data(), bytes.size()));
    if (failed(made))
      fail({Code::Internal, name + ": " + factory.error()});
    return succeeded(made) ? *made : Value();
  }
  Weight weight;
  weight.type = DType::F32;
  weight.dims = shape;
  weight.owned.assign(bytes.begin(), bytes.end());
  return factory.weight(loc(), store.add(name, std::move(weight)), DType::F32, shape);
}

Value GraphBuilder::longs(const std::string &name, const std::vector<int64_t> &values) {
  if (!store.find(name)) {
    Weight weight;
    weight.type = DType::I64;
    weight.dims = {int64_t(values.size())};
    std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    weight.owned.assign(bytes.begin(), bytes.end());
    store.add(name, std::move(weight));
  }
  return factory.weight(loc(), name, DType::I64, {int64_t(values.size())});
}

Value GraphBuilder::norm(Value x, const std::string &weight, int64_t n, double epsilon) {
  if (!error.isOk() || !weights.has(weight))
    return x;
  auto values = weights.vector(weight, n);
  if (!values.isOk()) {
    fail(values.status());
    return {};
  }
  std::string before = place;
  place = weight;
  Value made = op("layer_norm", {x, floats(weight, *values, {n})},
                  {attr("kind", "rms"), attr("axis", int64_t(-1)), attr("epsilon", epsilon)});
  place = before;
  return made;
}

Value GraphBuilder::plusBias(Value x, const std::string &name, int64_t n) {
  if (!error.isOk() || !weights.has(name))
    return x;
  auto values = weights.vector(name, n);
  if (!values.isOk())
    fail(values.status());
  return error.isOk() ? binary("add", x, floats(name, *values, {n})) : Value();
}

std::optional<Matrix> GraphBuilder::matrixOf(const std::string &weight, int64_t n, int64_t k) {
  if (!error.isOk())
    return std::nullopt;
  auto matrix = weights.matrix(weight, n, k);
  if (!matrix.isOk()) {
    fail(matrix.status());
    return std::nullopt;
  }
  return std::move(*matrix);
}

Value GraphBuilder::packed(const std::string &name, const Matrix &matrix, bool isGated) {
  std::string key = name + ".weight";
  if (!store.find(key)) {
    Weight weight;
    weight.type = DType::F32;
    weight.dims = {matrix.n, matrix.k};
    weight.layout = matrix.layout;
    weight.derive = [matrix, isGated](std::vector<std::byte> &bytes, std::string &message) {
      auto made = checkpoint::packMatrix(matrix, isGated);
      if (!made.isOk())
        message = made.status().message();
      else
        bytes = std::move(*made);
      return made.isOk();
    };
    store.add(key, std::move(weight));
  }
  return factory.weight(loc(), key, DType::F32, {matrix.n, matrix.k}, matrix.layout);
}

Value GraphBuilder::ordered(Value x, const std::string &name, const Matrix &matrix) {
  if (matrix.termOrder.empty())
    return x;
  return op("gather", {x, longs(name + ".term_order", matrix.termOrder)}, {attr("axis", int64_t(-1))});
}

Value GraphBuilder::matmul(Value x, const std::string &weight, int64_t n, int64_t k, Value residual) {
  std::optional<Matrix> matrix = matrixOf(weight, n, k);
  return matrix ? matmul(x, weight, *matrix, residual) : Value();
}

Value GraphBuilder::matmul(Value x, const std::string &name, const Matrix &matrix, Value residual,
                           StringRef activation) {
  if (!error.isOk())
    return {};
  place = name;
  SmallVector<Value> operands = {ordered(x, name, matrix), packed(name, matrix, false)};
  if (weights.has(name + ".bias")) {
    auto bias = weights.vector(name + ".bias", matrix.n);
    if (!bias.isOk()) {
      fail(bias.status());
      return {};
    }
    operands.push_back(floats(name + ".bias", *bias, {matrix.n}));
  } else if (residual) {
    operands.push_back(factory.none(loc()));
  }
  if (residual)
    operands.push_back(residual);
  SmallVector<NamedAttribute> attributes = {attr("trans_b", 1)};
  if (!matrix.layout.empty())
    attributes.push_back(attr("packed", StringRef(matrix.layout)));
  if (matrix.isBlocks())
    attributes.push_back(attr("arithmetic", arithmetic));
  if (!activation.empty())
    attributes.push_back(attr("activation", activation));
  return op("matmul", operands, attributes);
}

Value GraphBuilder::gated(Value x, const std::string &name, const Matrix &gate, const Matrix &up,
                          StringRef activation) {
  if (!error.isOk())
    return {};
  bool hasBias = weights.has(name + "_gate.bias") || weights.has(name + "_up.bias");
  if (gate.layout == up.layout && !gate.layout.empty() && gate.termOrder == up.termOrder && !hasBias) {
    place = name;
    SmallVector<NamedAttribute> attributes = {attr("trans_b", 1), attr("packed", StringRef(gate.layout)),
                                              attr("gated", 1), attr("activation", activation)};
    if (gate.isBlocks())
      attributes.push_back(attr("arithmetic", arithmetic));
    return op("matmul", {ordered(x, name, gate), packed(name, checkpoint::stack(gate, up), true)},
              attributes);
  }
  Value opened = matmul(x, name + "_gate", gate, {}, activation);
  return binary("mul", opened, matmul(x, name + "_up", up));
}

std::vector<Matrix> GraphBuilder::expertsOf(const std::string &weight, int64_t count, int64_t n, int64_t k) {
  if (!error.isOk())
    return {};
  auto matrices = weights.experts(weight, count, n, k);
  if (!matrices.isOk())
    fail(matrices.status());
  return matrices.isOk() ? std::move(*matrices) : std::vector<Matrix>();
}

Value GraphBuilder::experts(Value x, Value ids, const std::string &name, const std::vector<Matrix> &gate,
                            const std::vector<Matrix> &up, StringRef activation) {
  if (!error.isOk())
    return {};
  std::vector<Matrix> each = up;
  each.insert(each.end(), gate.begin(), gate.end());
  if (up.empty() || !unifyLayouts(each))
    fail({Code::Unsupported, "tensor '" + name + "': gates and their factors have different layouts"});
  else if (!each.front().termOrder.empty())
    fail({Code::Unsupported, "tensor '" + name + "': experts in act-order have no packed layout"});
  if (!error.isOk())
    return {};
  place = name;
  bool isGated = !gate.empty();
  for (size_t i = 0; isGated && i < up.size(); ++i)
    each[i] = checkpoint::stack(each[up.size() + i], each[i]);
  each.resize(up.size());
  const Matrix &one = each.front();
  SmallVector<NamedAttribute> attributes = {attr("packed", StringRef(one.layout))};
  if (one.isBlocks())
    attributes.push_back(attr("arithmetic", arithmetic));
  if (isGated)
    attributes.push_back(attr("gated", 1));
  if (!activation.empty())
    attributes.push_back(attr("activation", activation));
  return op("packed_experts", {x, stacked(name, each, isGated), ids}, attributes);
}

Value GraphBuilder::stacked(const std::string &name, const std::vector<Matrix> &matrices, bool isGated) {
  const Matrix &one = matrices.front();
  std::vector<int64_t> dims = {int64_t(matrices.size()), one.n, one.k};
  std::string key = name + ".weight";
  Weight weight;
  weight.type = DType::F32;
  weight.dims = dims;
  weight.layout = one.layout;
  weight.derive = [matrices, isGated](std::vector<std::byte> &bytes, std::string &message) {
    for (const Matrix &matrix : matrices) {
      auto made = checkpoint::packMatrix(matrix, isGated);
      if (!made.isOk()) {
        message = made.status().message();
        return false;
      }
      bytes.insert(bytes.end(), made->begin(), made->end());
    }
    return true;
  };
  store.add(key, std::move(weight));
  return factory.weight(loc(), key, DType::F32, dims, one.layout);
}

Value GraphBuilder::perHead(Value x, const std::string &name, const std::vector<Matrix> &matrices) {
  if (!error.isOk())
    return {};
  if (!matrices.front().layout.empty()) {
    std::vector<int64_t> numbers(matrices.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    Value ids = op("expand", {factory.ints(loc(), numbers), shape({"rows", std::to_string(numbers.size())})});
    return experts(x, ids, name, {}, matrices);
  }
  place = name;
  auto swapped = [&](Value value) {
    return op("transpose", {value}, {attr("perm", ArrayRef<int64_t>({1, 0, 2}))});
  };
  return swapped(op("matmul", {swapped(x), stacked(name, matrices, false)}, {attr("trans_b", 1)}));
}

std::pair<Value, Value> GraphBuilder::topK(Value x, int64_t count) {
  if (!error.isOk() || !x)
    return {};
  auto made = factory.make(loc(), "top_k", {x, factory.ints(loc(), {count})}, {attr("axis", int64_t(-1))}, 2);
  if (failed(made)) {
    fail({Code::Internal, place + ": top_k: " + factory.error()});
    return {};
  }
  return {(*made)[0], (*made)[1]};
}

Value GraphBuilder::sum(Value x, int64_t axis, bool keeps) {
  return error.isOk() ? op("reduce", {x, factory.ints(loc(), {axis})},
                           {attr("kind", "sum"), attr("keepdims", int64_t(keeps))})
                      : Value();
}

Value GraphBuilder::embed(Value indices, const std::string &weight, int64_t n, int64_t k) {
  std::optional<Matrix> matrix = matrixOf(weight, n, k);
  if (!matrix)
    return {};
  place = weight;
  Value table = packed(weight, *matrix, false);
  if (matrix->layout.empty())
    return op("gather", {table, indices}, {attr("axis", 0)});
  return op("packed_rows", {indices, table}, {attr("packed", StringRef(matrix->layout))});
}

} // namespace dspark::language

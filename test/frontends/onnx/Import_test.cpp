// Models on their way into the dialect: names, dims, graphs inside graphs, functions, and what is refused.
#include "frontends/onnx/Import.h"
#include "frontends/onnx/ModelReader.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "test/frontends/onnx/ModelBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include <gmock/gmock.h>

namespace dspark::onnx::test {
namespace {

using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::TensorProto;
using ::onnx::TypeProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Import : ::testing::Test {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  TempFolder folder;
  ImportOptions options;

  ImportResult import(const ModelProto &model) {
    return importOnnx(folder.write("m.onnx", model.SerializeAsString()), context, options);
  }
  /// The module's text after it was verified, or the report.
  std::string text(const ModelProto &model) {
    ImportResult result = import(model);
    if (!result.isOk())
      return result.report("m.onnx");
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*result.module)));
    std::string out;
    llvm::raw_string_ostream stream(out);
    result.module->print(stream);
    return out;
  }
};

/// x f32[dims] -> op -> y
ModelProto oneNode(const std::string &op, const std::vector<std::string> &dims, int64_t opset = 21) {
  ModelProto model = emptyModel(opset);
  setInfo(*model.mutable_graph()->add_input(), "x", kF32, dims);
  setInfo(*model.mutable_graph()->add_output(), "y", 0, {});
  model.mutable_graph()->mutable_output(0)->clear_type();
  addNode(*model.mutable_graph(), op, {"x"}, {"y"}, "the node");
  return model;
}

TEST_F(Import, NamesAndDims) {
  std::string module = text(oneNode("Relu", {"batch size", "3", "", "batch size"}));
  EXPECT_THAT(module, HasSubstr("dspark.dims = [\"batch_size\", \"3\", \"x_2\", \"batch_size\"]"));
  EXPECT_THAT(module, HasSubstr("dspark.name = \"x\""));
  EXPECT_THAT(module, HasSubstr("dspark.name = \"y\""));
  EXPECT_THAT(module, HasSubstr("kind = \"relu\"} : (tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32>"));
}

TEST_F(Import, LocationsNameTheNodes) {
  ModelProto model = oneNode("Relu", {"4"});
  model.mutable_graph()->mutable_node(0)->clear_name();
  ImportResult result = import(model);
  ASSERT_TRUE(result.isOk());
  std::string locations;
  llvm::raw_string_ostream stream(locations);
  result.module->walk([&](mlir::Operation *op) { stream << op->getLoc() << " "; });
  EXPECT_THAT(locations, HasSubstr("\"Relu_0\""));
}

TEST_F(Import, DimsCanBeFixed) {
  options.dims = {{"batch size", 2}, {"x_1", 5}};
  std::string module = text(oneNode("Relu", {"batch size", ""}));
  EXPECT_THAT(module, HasSubstr("tensor<2x5xf32>"));
  options.dims = {{"seq", 2}};
  EXPECT_THAT(text(oneNode("Relu", {"batch"})), HasSubstr("the model has no dim 'seq'; it has: batch"));
  options.dims = {{"batch", 0}};
  EXPECT_THAT(text(oneNode("Relu", {"batch"})), HasSubstr("at least 1"));
}

TEST_F(Import, LargeInitializersAreWeightsSmallOnesConstants) {
  ModelProto model = oneNode("Add", {"1", "4096"});
  model.mutable_graph()->mutable_node(0)->add_input("w");
  *model.mutable_graph()->add_initializer() = tensor("w", kF32, {4096}, std::string(16384, 0));
  ImportResult result = import(model);
  ASSERT_TRUE(result.isOk()) << result.report("");
  const Weight *weight = result.weights.find("w");
  ASSERT_TRUE(weight);
  EXPECT_TRUE(weight->file);
  EXPECT_THAT(text(model), HasSubstr("dspark.weight @w : tensor<4096xf32>"));

  *model.mutable_graph()->mutable_initializer(0) = tensor("w", kF32, {1}, rawBytes<float>({2.5f}));
  EXPECT_THAT(text(model), HasSubstr("dspark.constant dense<2.500000e+00> : tensor<1xf32>"));
}

TEST_F(Import, AttributesThatBecameOperands) {
  ModelProto model = oneNode("Squeeze", {"1", "3"}, 11);
  setInts(*model.mutable_graph()->mutable_node(0), "axes", {0});
  EXPECT_THAT(text(model), HasSubstr("(tensor<1x3xf32>, tensor<1xi64>) -> tensor<3xf32>"));
  model = oneNode("Clip", {"3"}, 6);
  addAttribute(*model.mutable_graph()->mutable_node(0), "min", ::onnx::AttributeProto::FLOAT).set_f(-1);
  EXPECT_THAT(text(model), HasSubstr("dspark.clip(%arg0, %0) : (tensor<3xf32>, tensor<f32>)"));
}

TEST_F(Import, OldSoftmaxFlattens) {
  std::string old = text(oneNode("Softmax", {"2", "3", "4"}, 11));
  EXPECT_THAT(old, HasSubstr("flatten"));
  EXPECT_THAT(old, HasSubstr("-> tensor<2x12xf32>"));
  EXPECT_THAT(text(oneNode("Softmax", {"2", "3", "4"}, 13)), Not(HasSubstr("flatten")));
}

TEST_F(Import, UnsortedNodesAreSorted) {
  ModelProto model = oneNode("Relu", {"3"});
  GraphProto &graph = *model.mutable_graph();
  graph.mutable_node(0)->set_input(0, "t");
  addNode(graph, "Exp", {"x"}, {"t"});
  std::string module = text(model);
  EXPECT_LT(module.find("exp"), module.find("relu"));
}

TEST_F(Import, BrokenGraphs) {
  ModelProto model = oneNode("Relu", {"3"});
  model.mutable_graph()->mutable_node(0)->set_input(0, "nowhere");
  EXPECT_THAT(text(model), HasSubstr("the node: Relu (opset 21): reads 'nowhere', which nothing makes"));

  model = oneNode("Relu", {"3"});
  model.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_THAT(text(model), HasSubstr("output 'z' is made by no node"));

  model = oneNode("Relu", {"3"});
  addNode(*model.mutable_graph(), "Exp", {"x"}, {"y"}, "again");
  EXPECT_THAT(text(model), HasSubstr("value 'y' is made by two nodes, 'the node' and 'again'"));

  model = oneNode("Add", {"3"});
  model.mutable_graph()->mutable_node(0)->add_input("b");
  addNode(*model.mutable_graph(), "Relu", {"y"}, {"b"}, "other");
  EXPECT_THAT(text(model), HasSubstr("nodes wait for each other: 'the node' <- 'other' <- 'the node'"));

  model = oneNode("Relu", {"3"});
  *model.mutable_graph()->add_initializer() = tensor("w", kF32, {1}, std::string(4, 0));
  *model.mutable_graph()->add_initializer() = tensor("w", kF32, {1}, std::string(4, 0));
  EXPECT_THAT(text(model), HasSubstr("value 'w' is made twice"));
}

TEST_F(Import, NodesThatBreakTheirOperatorsRules) {
  ModelProto model = oneNode("Relu", {"3"});
  setInt(*model.mutable_graph()->mutable_node(0), "beta", 1);
  EXPECT_THAT(text(model), HasSubstr("attribute 'beta' is not one of Relu in opset 21"));

  model = oneNode("Concat", {"3"});
  EXPECT_THAT(text(model), HasSubstr("attribute 'axis' is missing"));
  setInts(*model.mutable_graph()->mutable_node(0), "axis", {0});
  EXPECT_THAT(text(model), HasSubstr("attribute 'axis' is of type INTS; expected INT"));

  model = oneNode("Add", {"3"});
  EXPECT_THAT(text(model), HasSubstr("has 1 operands; expected 2"));

  model = oneNode("MatMul", {"3", "4"});
  model.mutable_graph()->mutable_node(0)->add_input("x");
  ImportResult result = import(model);
  EXPECT_TRUE(result.isInvalid());
  EXPECT_THAT(result.issues.at(0).operands, ElementsAre("f32[3, 4]", "f32[3, 4]"));
}

TEST_F(Import, EverythingUnsupportedIsListedAtOnce) {
  ModelProto model = oneNode("Frobnicate", {"batch", "3"});
  GraphProto &graph = *model.mutable_graph();
  graph.mutable_node(0)->mutable_output()->at(0) = "t";
  auto &branch = addNode(graph, "If", {"c"}, {"u"}, "branch");
  for (const char *side : {"then_branch", "else_branch"}) {
    GraphProto &inner = setGraph(branch, side);
    addNode(inner, "Frobnicate", {}, {"s"}, std::string("in ") + side);
    setInfo(*inner.add_output(), "s", kF32, {});
  }
  setInfo(*graph.add_input(), "c", kBool, {});
  auto &custom = addNode(graph, "Custom", {"t"}, {"y"}, "custom");
  custom.set_domain("org.example");
  addNode(graph, "Relu", {"t"}, {"fine"}, "fine");
  ImportResult result = import(model);
  EXPECT_FALSE(result.isInvalid());
  std::vector<std::string> nodes;
  for (const ImportIssue &issue : result.issues)
    nodes.push_back(issue.node);
  EXPECT_THAT(nodes, ElementsAre("the node", "in then_branch", "in else_branch", "custom"));
  EXPECT_EQ(result.issues[0].str(),
            "the node: Frobnicate (opset 21) of (f32[batch, 3]): no operator of that name is "
            "known in ai.onnx");
  EXPECT_EQ(result.issues[3].op, "org.example.Custom");
  EXPECT_FALSE(result.module);
}

TEST_F(Import, OperatorsThatAreNewerThanTheOpset) {
  EXPECT_THAT(text(oneNode("Gelu", {"3"}, 19)), HasSubstr("the operator came after opset 19"));
}

TEST_F(Import, IfReadsOuterValues) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  setInfo(*graph.add_input(), "x", kF32, {"n"});
  setInfo(*graph.add_input(), "c", kBool, {});
  auto &branch = addNode(graph, "If", {"c"}, {"y"});
  GraphProto &then = setGraph(branch, "then_branch"), &otherwise = setGraph(branch, "else_branch");
  addNode(then, "Exp", {"x"}, {"a"});
  setInfo(*then.add_output(), "a", kF32, {});
  setInfo(*otherwise.add_output(), "x", kF32, {});
  setInfo(*graph.add_output(), "y", kF32, {});
  std::string module = text(model);
  EXPECT_THAT(module, HasSubstr("dspark.if %arg1 : tensor<i1> -> tensor<?xf32>"));
  EXPECT_THAT(module, HasSubstr("dspark.yield %arg0"));
}

/// y, ys = Loop(3, "", x): x' = op(x), scan output x'
ModelProto loopModel(const std::string &op) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  setInfo(*graph.add_input(), "x", kF32, {"2"});
  *graph.add_initializer() = tensor("m", kI64, {}, rawBytes<int64_t>({3}));
  auto &loop = addNode(graph, "Loop", {"m", "", "x"}, {"y", "ys"}, "loop");
  GraphProto &body = setGraph(loop, "body");
  setInfo(*body.add_input(), "i", kI64, {});
  setInfo(*body.add_input(), "c", kBool, {});
  setInfo(*body.add_input(), "v", kF32, {});
  auto &node = addNode(body, op, {"v"}, {"w"});
  if (op == "Concat") {
    node.add_input("x");
    setInt(node, "axis", 0);
  }
  for (const char *name : {"c", "w", "w"})
    setInfo(*body.add_output(), name, kF32, {});
  setInfo(*graph.add_output(), "y", kF32, {});
  setInfo(*graph.add_output(), "ys", kF32, {});
  return model;
}

TEST_F(Import, LoopKeepsWhatEveryIterationKeeps) {
  EXPECT_THAT(text(loopModel("Exp")), HasSubstr("-> (tensor<2xf32>, tensor<?x2xf32>)"));
}

TEST_F(Import, LoopForgetsWhatIterationsChange) {
  EXPECT_THAT(text(loopModel("Concat")), HasSubstr("-> (tensor<?xf32>, tensor<?x?xf32>)"));
}

TEST_F(Import, ScanTakesTheTripCountFromItsInput) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  setInfo(*graph.add_input(), "s", kF32, {"2"});
  setInfo(*graph.add_input(), "xs", kF32, {"2", "7"});
  auto &scan = addNode(graph, "Scan", {"s", "xs"}, {"y", "ys"});
  setInt(scan, "num_scan_inputs", 1);
  setInts(scan, "scan_input_axes", {-1});
  GraphProto &body = setGraph(scan, "body");
  setInfo(*body.add_input(), "a", kF32, {});
  setInfo(*body.add_input(), "b", kF32, {});
  addNode(body, "Add", {"a", "b"}, {"sum"});
  setInfo(*body.add_output(), "sum", kF32, {});
  setInfo(*body.add_output(), "sum", kF32, {});
  setInfo(*graph.add_output(), "ys", kF32, {});
  EXPECT_THAT(text(model), HasSubstr("-> (tensor<2xf32>, tensor<7x2xf32>)"));
}

/// A function twice(x) = f(f(x)) of op `op`, called by node "call".
ModelProto functionModel(const std::string &op) {
  ModelProto model = oneNode("twice", {"3"});
  auto *import = model.add_opset_import();
  import->set_domain("fns");
  import->set_version(1);
  auto &call = *model.mutable_graph()->mutable_node(0);
  call.set_domain("fns");
  addAttribute(call, "slope", ::onnx::AttributeProto::FLOAT).set_f(0.25f);
  auto &function = *model.add_functions();
  function.set_name("twice");
  function.set_domain("fns");
  function.add_input("a");
  function.add_output("c");
  function.add_attribute("slope");
  *function.add_opset_import() = model.opset_import(0);
  for (auto [in, out] : {std::pair("a", "b"), {"b", "c"}}) {
    auto &node = *function.add_node();
    node.set_op_type(op);
    node.set_name(out);
    node.add_input(in);
    node.add_output(out);
    auto &alpha = addAttribute(node, "alpha", ::onnx::AttributeProto::FLOAT);
    alpha.set_ref_attr_name("slope");
  }
  return model;
}

TEST_F(Import, FunctionsAreInlined) {
  ModelProto model = functionModel("LeakyRelu");
  EXPECT_THAT(text(model), HasSubstr("{alpha = 2.500000e-01 : f64, kind = \"leaky_relu\"}"));
  ImportResult result = import(model);
  std::string locations;
  llvm::raw_string_ostream stream(locations);
  result.module->walk([&](mlir::Operation *op) { stream << op->getLoc() << " "; });
  EXPECT_THAT(locations, HasSubstr("the node/c"));
}

TEST_F(Import, FunctionsMayNotCallThemselves) {
  ModelProto model = functionModel("twice");
  for (auto &node : *model.mutable_functions(0)->mutable_node())
    node.set_domain("fns");
  EXPECT_THAT(text(model), HasSubstr("function 'twice' calls itself"));
}

TEST_F(Import, InputsOfOtherTypesAreRefused) {
  ModelProto model = oneNode("Relu", {"3"});
  TypeProto *type = model.mutable_graph()->mutable_input(0)->mutable_type();
  type->mutable_sequence_type();
  EXPECT_THAT(text(model), HasSubstr("input 'x': it has no type"));
  for (int i = 0; i < 5; ++i)
    type = type->mutable_sequence_type()->mutable_elem_type();
  type->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
  EXPECT_THAT(text(model), HasSubstr("input 'x': lists are nested 5 deep; at most 4 are supported"));
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sparse_tensor_type();
  EXPECT_THAT(text(model), HasSubstr("input 'x': sparse tensor types are not supported"));
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(TensorProto::FLOAT);
  EXPECT_THAT(text(model),
              HasSubstr("operand 0 of unary is !dspark.sequence<tensor<*xf32>>; expected a tensor"));
  model = oneNode("Relu", {"3"});
  model.mutable_graph()->mutable_input(0)->clear_type();
  EXPECT_THAT(text(model), HasSubstr("input 'x' has no type"));
  EXPECT_THAT(text(oneNode("Relu", {"9223372036854775807", "3"})), HasSubstr("more elements"));
}

TEST_F(Import, TerminalsAreSafeFromNames) {
  ModelProto model = oneNode("Foo\x1b[2J", {"3"});
  EXPECT_THAT(text(model), HasSubstr("Foo\\x1b[2J"));
}

} // namespace
} // namespace dspark::onnx::test

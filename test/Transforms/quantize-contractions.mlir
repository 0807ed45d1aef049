// RUN: %dspark-opt %s -dspark-quantize-contractions | %FileCheck %s
// RUN: %dspark-opt %s -dspark-quantize-contractions=mode=observe | %FileCheck %s --check-prefix=OBSERVE
// RUN: %dspark-opt %s -dspark-quantize-contractions=mode=compare | %FileCheck %s --check-prefix=COMPARE

// Nothing to do: the right side is no constant.
// CHECK-LABEL: func.func @attention
// CHECK-NOT: quantize_linear
// CHECK: dspark.matmul(%arg0, %arg1)
func.func @attention(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %y = dspark.matmul(%a, %b) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("m")
  return %y : tensor<4x4xf32>
}

// Two products with a relu between them; what is between stays f32 for those that read f32.
// CHECK-LABEL: func.func @chain
// CHECK: %[[XQ:.*]] = dspark.quantize_linear(%arg0,
// CHECK: %[[X:.*]] = dspark.dequantize_linear(%[[XQ]],
// CHECK: dspark.weight @constant.int8 : tensor<4x4xi8>
// CHECK: %[[Y:.*]] = dspark.matmul(%[[X]],
// CHECK: %[[R:.*]] = dspark.unary(%[[Y]]) {kind = "relu"}
// CHECK: %[[RQ:.*]] = dspark.quantize_linear(%[[R]],
// CHECK: %[[RD:.*]] = dspark.dequantize_linear(%[[RQ]],
// CHECK: %[[Z:.*]] = dspark.matmul(%[[RD]],
// CHECK: dspark.softmax(%[[R]])

// OBSERVE-LABEL: func.func @chain
// OBSERVE-SAME: {dspark.name = "dspark.observed#2"}
// OBSERVE: return %{{.*}}, %{{.*}}, %arg0, %{{.*}}, %{{.*}} : tensor

// COMPARE-LABEL: func.func @chain
// COMPARE-SAME: tensor<2xi1> {dspark.dims = ["2"], dspark.name = "dspark.bytes"}
// COMPARE-SAME: tensor<4xf32> {dspark.name = "dspark.errors"}
// COMPARE: %[[PLAIN:.*]] = dspark.matmul(%arg0, %{{.*}})
// COMPARE: %[[BYTES:.*]] = dspark.matmul(%{{.*}}, %{{.*}})
// COMPARE: dspark.select(%{{.*}}, %[[BYTES]], %[[PLAIN]])
func.func @chain(%a: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %w = dspark.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]]> : tensor<4x4xf32>
  %y = dspark.matmul(%a, %w) : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32> loc("first")
  %r = dspark.unary(%y) {kind = "relu"} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %z = dspark.matmul(%r, %w) : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32> loc("second")
  %s = dspark.softmax(%r) {axis = -1 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %z, %s : tensor<3x4xf32>, tensor<3x4xf32>
}

// A residual sum of two convolutions' results: its operands become bytes.
// CHECK-LABEL: func.func @residual
// CHECK: %[[A:.*]] = dspark.conv(
// CHECK: %[[AQ:.*]] = dspark.quantize_linear(%[[A]],
// CHECK: %[[AD:.*]] = dspark.dequantize_linear(%[[AQ]],
// CHECK: %[[B:.*]] = dspark.conv(
// CHECK: %[[BQ:.*]] = dspark.quantize_linear(%[[B]],
// CHECK: %[[BD:.*]] = dspark.dequantize_linear(%[[BQ]],
// CHECK: %[[S:.*]] = dspark.binary(%[[AD]], %[[BD]]) {kind = "add"}
// CHECK: %[[R:.*]] = dspark.unary(%[[S]]) {kind = "relu"}
// CHECK: dspark.quantize_linear(%[[R]],
func.func @residual(%x: tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
  %w = dspark.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>
  %a = dspark.conv(%x, %w) : (tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x3x3xf32> loc("a")
  %b = dspark.conv(%x, %w) : (tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x3x3xf32> loc("b")
  %s = dspark.binary(%a, %b) {kind = "add"} : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %r = dspark.unary(%s) {kind = "relu"} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %c = dspark.conv(%r, %w) : (tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x3x3xf32> loc("c")
  return %c : tensor<1x2x3x3xf32>
}

// What is computed from a constant has no bytes: the sum is quantised itself.
// CHECK-LABEL: func.func @of_a_constant
// CHECK: %[[S:.*]] = dspark.binary(%arg0, %{{.*}}) {kind = "add"}
// CHECK: dspark.quantize_linear(%[[S]],
// OBSERVE-LABEL: func.func @of_a_constant
// OBSERVE-SAME: {dspark.name = "dspark.observed#2"}
func.func @of_a_constant(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = dspark.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]]> : tensor<4x4xf32>
  %c = dspark.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %root = dspark.unary(%c) {kind = "sqrt"} : (tensor<4xf32>) -> tensor<4xf32>
  %s = dspark.binary(%a, %root) {kind = "add"} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %y = dspark.matmul(%s, %w) : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32> loc("m")
  return %y : tensor<3x4xf32>
}

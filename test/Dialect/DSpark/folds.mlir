// Every fold of the dialect, and what must not fold.
// RUN: %dspark-opt %s -canonicalize -split-input-file | %FileCheck %s

// CHECK-LABEL: @identity
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @identity(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = dspark.identity(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @dims_of_numbers
func.func @dims_of_numbers() -> tensor<2xi64> {
  // CHECK: dspark.constant dense<[2, 3]> : tensor<2xi64>
  %0 = dspark.dims ["2", "3"] : tensor<2xi64>
  return %0 : tensor<2xi64>
}

// CHECK-LABEL: @relu_twice
func.func @relu_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-COUNT-1: dspark.unary
  // CHECK-NOT: dspark.unary
  // CHECK: return
  %0 = dspark.unary(%x) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dspark.unary(%0) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @neg_twice
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @neg_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = dspark.unary(%x) {kind = "neg"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dspark.unary(%0) {kind = "neg"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @times_one
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @times_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return %[[X]]
  %one = dspark.constant dense<1.0> : tensor<f32>
  %0 = dspark.binary(%x, %one) {kind = "mul"} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = dspark.binary(%one, %0) {kind = "mul"} : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dspark.binary(%1, %one) {kind = "div"} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Adding +0 turns -0 into +0, so it stays; subtracting it does not.
// CHECK-LABEL: @zero
func.func @zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[SUM:.*]] = dspark.binary({{.*}}) {kind = "add"}
  // CHECK-NEXT: return %[[SUM]]
  %zero = dspark.constant dense<0.0> : tensor<f32>
  %0 = dspark.binary(%x, %zero) {kind = "sub"} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = dspark.binary(%0, %zero) {kind = "add"} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// A product that broadcasts x to a larger shape is no identity.
// CHECK-LABEL: @times_ones_broadcast
func.func @times_ones_broadcast(%x: tensor<4xf32>) -> tensor<3x4xf32> {
  // CHECK: dspark.binary
  %ones = dspark.constant dense<1.0> : tensor<3x1xf32>
  %0 = dspark.binary(%x, %ones) {kind = "mul"} : (tensor<4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: @cast_to_same
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @cast_to_same(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = dspark.cast(%x) {to = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @reshape_to_same
// CHECK-SAME: (%[[X:.*]]: tensor<2x2xf32>)
func.func @reshape_to_same(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK-NEXT: return %[[X]]
  %s = dspark.constant dense<[2, 2]> : tensor<2xi64>
  %0 = dspark.reshape(%x, %s) : (tensor<2x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// CHECK-LABEL: @expand_to_same
// CHECK-SAME: (%[[X:.*]]: tensor<2x2xf32>)
func.func @expand_to_same(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK-NEXT: return %[[X]]
  %s = dspark.constant dense<[2, 2]> : tensor<2xi64>
  %0 = dspark.expand(%x, %s) : (tensor<2x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// CHECK-LABEL: @transposes
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>) {
  %0 = dspark.transpose(%x) {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = dspark.transpose(%0) {perm = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  // CHECK: %[[Y:.*]] = dspark.transpose(%[[X]]) {perm = array<i64: 2, 1, 0>}
  %2 = dspark.transpose(%0) {perm = array<i64: 0, 2, 1>} : (tensor<4x2x3xf32>) -> tensor<4x3x2xf32>
  // CHECK-NEXT: return %[[X]], %[[Y]]
  return %1, %2 : tensor<2x3x4xf32>, tensor<4x3x2xf32>
}

// CHECK-LABEL: @concat_of_one
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @concat_of_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = dspark.concat(%x) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// RUN: %dspark-opt %s -plan-memory -split-input-file | %FileCheck %s

// Inputs belong to the caller and results outlive the function: nothing to free or to overwrite.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: in_place
  // CHECK-NOT: plan.free
  %0 = plan.launch "unary"(%x) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @chain
func.func @chain(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[A:.*]] = plan.launch "unary"(%arg0) {kind = "relu"} :
  // CHECK: %[[B:.*]] = plan.launch "binary"(%[[A]], %arg1) {kind = "add"} in_place 0
  // CHECK: plan.free %[[A]]
  // CHECK: return %[[B]]
  %0 = plan.launch "unary"(%x) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = plan.launch "binary"(%0, %y) {kind = "add"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A view keeps its operand's buffer alive.
// CHECK-LABEL: @view
func.func @view(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  // CHECK: %[[A:.*]] = plan.launch "unary"
  // CHECK-NOT: plan.free
  // CHECK: %[[V:.*]] = plan.launch "reshape"
  // CHECK: plan.launch "unary"(%[[V]])
  // CHECK: plan.free %[[A]]
  %s = plan.literal dense<[2, 2]> : tensor<2xi64>
  %0 = plan.launch "unary"(%x) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = plan.launch "reshape"(%0, %s) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %2 = plan.launch "unary"(%1) {kind = "exp"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}

// -----

// A use inside a branch counts for the branch.
// CHECK-LABEL: @branch
func.func @branch(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  // CHECK: %[[A:.*]] = plan.launch "unary"(%arg0)
  // CHECK-NEXT: plan.if
  // CHECK: plan.launch "unary"(%[[A]]) {kind = "exp"} :
  // CHECK: }
  // CHECK: plan.free %[[A]]
  %0 = plan.launch "unary"(%x) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = plan.if %c : tensor<i1> -> tensor<4xf32> {
    %2 = plan.launch "unary"(%0) {kind = "exp"} : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %2 : tensor<4xf32>
  } else {
    plan.yield %x : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

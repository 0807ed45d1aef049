// RUN: %dspark-opt %s -dspark-fuse-elementwise -split-input-file | %FileCheck %s

// One operation alone has a kernel of its own.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: dspark.fused
  %0 = dspark.unary(%x) {kind = "exp"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @chain
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32> {{.*}}, %[[B:.*]]: tensor<8xf32>)
func.func @chain(%x: tensor<?x8xf32> {dspark.dims = ["n", "8"]}, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK: %[[Y:.*]] = dspark.fused(%[[X]], %[[B]]) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK: dspark.binary
  // CHECK: dspark.constant dense<2.000000e+00>
  // CHECK: dspark.binary
  // CHECK: dspark.unary
  // CHECK: dspark.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[Y]]
  %two = dspark.constant dense<2.0> : tensor<f32>
  %0 = dspark.binary(%x, %b) {kind = "add"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = dspark.binary(%0, %two) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = dspark.unary(%1) {kind = "tanh"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// A value that is needed elsewhere is made once, outside; a smaller one is not recomputed per element.
// CHECK-LABEL: @boundaries
func.func @boundaries(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: dspark.unary(%{{.*}}) {kind = "exp"} : (tensor<8xf32>)
  // CHECK: %[[S:.*]] = dspark.binary
  // CHECK: dspark.fused(%[[S]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = dspark.unary(%b) {kind = "exp"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dspark.binary(%x, %0) {kind = "add"} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = dspark.unary(%1) {kind = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = dspark.binary(%2, %1) {kind = "mul"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Kinds without generated code keep their own kernel, so that their neighbours get native code.
// CHECK-LABEL: @kinds
func.func @kinds(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: dspark.unary(%{{.*}}) {kind = "sin"}
  // CHECK: dspark.binary(%{{.*}}, %{{.*}}) {kind = "pow"}
  // CHECK: dspark.fused
  // CHECK: {kind = "pow"}
  // CHECK: {kind = "tanh"}
  %two = dspark.constant dense<2.0> : tensor<f32>
  %0 = dspark.unary(%x) {kind = "sin"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dspark.binary(%0, %y) {kind = "pow"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = dspark.binary(%1, %two) {kind = "pow"} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = dspark.unary(%2) {kind = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

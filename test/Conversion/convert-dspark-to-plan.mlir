// RUN: %dspark-opt %s -dspark-convert-to-plan -split-input-file -verify-diagnostics | %FileCheck %s

// CHECK-LABEL: @steps
func.func @steps(%x: tensor<?x8xf32>, %k: tensor<1xi64>, %r: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x?xf32>) {
  // CHECK: %[[W:.*]] = plan.constant @w layout "panel16" : tensor<8x4xf32>
  // CHECK: %[[N:.*]] = plan.absent
  // CHECK: plan.launch "matmul"(%arg0, %[[W]], %[[N]], %arg2) {packed = "panel16"}
  // CHECK: plan.literal dense<1.000000e+00> : tensor<4xf32>
  // CHECK: plan.dims ["n"] : tensor<1xi64>
  // CHECK: plan.launch "top_k"(%arg0, %arg1) {axis = 1 : i64}
  %w = dspark.weight @w {layout = "panel16"} : tensor<8x4xf32>
  %n = dspark.none
  %0 = dspark.matmul(%x, %w, %n, %r) {packed = "panel16"} : (tensor<?x8xf32>, tensor<8x4xf32>, none, tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = dspark.constant dense<1.0> : tensor<4xf32>
  %d = dspark.dims ["n"] : tensor<1xi64>
  %v, %i = dspark.kernel "top_k"(%x, %k) {axis = 1 : i64} : (tensor<?x8xf32>, tensor<1xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>)
  return %0, %v : tensor<?x4xf32>, tensor<?x?xf32>
}

// -----

// A fused body becomes a program: five integers per instruction.
// CHECK-LABEL: @fused
func.func @fused(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: plan.launch "fused"(%arg0, %arg1) {params = array<f64: {{.*}}>, program = array<i64: 1, 0, 0, 1, 0, 0, {{[0-9]+}}, 2, 0, 0>, results = array<i64: 3>}
  %0 = dspark.fused(%x, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
  ^bb0(%f: tensor<4x8xf32>, %g: tensor<8xf32>):
    %1 = dspark.binary(%f, %g) {kind = "add"} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %2 = dspark.unary(%1) {kind = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    dspark.yield %2 : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

// A softmax in a body becomes its steps: maximum (6, 2), difference, exponential, sum (6, 0), reciprocal, product. The
// exponential is kept for the last pass.
// CHECK-LABEL: @softmax
func.func @softmax(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: plan.launch "fused"(%arg0) {kept = array<i64: 3>, params = array<f64: {{.*}}>, program = array<i64: 6, 2, 0, 0, 0, 1, 1, 0, 1, 0, 0, 2, 2, 0, 0, 6, 0, 3, 0, 0, 0, 6, 4, 0, 0, 1, 2, 3, 5, 0>, results = array<i64: 6>, row_axes = 1 : i64}
  %0 = dspark.fused(%x) {row_axes = 1 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32> {
  ^bb0(%f: tensor<4x64xf32>):
    %1 = dspark.softmax(%f) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    dspark.yield %1 : tensor<4x64xf32>
  }
  return %0 : tensor<4x64xf32>
}

// -----

// Results of fewer elements than the full shape: another operator, whose result never takes an operand's memory.
// CHECK-LABEL: @reduced
func.func @reduced(%x: tensor<4x64xf32>) -> tensor<4xf32> {
  // CHECK: plan.launch "fused_reduce"(%arg0) {params = array<f64: {{.*}}>, program = array<i64: 0, 2, 0, 0, 0, 6, 1, 1, 0, 0>, results = array<i64: 2>, row_axes = 1 : i64, shapes = array<i64: 2>}
  %0 = dspark.fused(%x) {row_axes = 1 : i64} : (tensor<4x64xf32>) -> tensor<4xf32> {
  ^bb0(%f: tensor<4x64xf32>):
    %1 = dspark.unary(%f) {kind = "exp"} : (tensor<4x64xf32>) -> tensor<4x64xf32>
    %2 = dspark.reduce(%1) {kind = "mean", axes = array<i64: -1>, keepdims = 0 : i64} : (tensor<4x64xf32>) -> tensor<4xf32>
    dspark.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @nested
func.func @nested(%c: tensor<i1>, %t: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: plan.if %arg0
  // CHECK: plan.launch "unary"
  // CHECK: plan.yield
  // CHECK: plan.loop(%arg1, %arg0, %{{.*}}) {num_carried = 1 : i64, num_scan_inputs = 0 : i64}
  %0 = dspark.if %c : tensor<i1> -> tensor<4xf32> {
    %1 = dspark.unary(%x) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
    dspark.yield %1 : tensor<4xf32>
  } else {
    dspark.yield %x : tensor<4xf32>
  }
  %2 = dspark.loop(%t, %c, %0) {num_carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %k: tensor<i1>, %s: tensor<4xf32>):
    dspark.yield %k, %s : tensor<i1>, tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// -----

func.func @no_form(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has no form in the plan dialect}}
  %0 = dspark.transfer %x "cpu" to "gpu" on "gpu" : tensor<4xf32>
  return %0 : tensor<4xf32>
}

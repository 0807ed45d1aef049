// RUN: %dspark-opt %s -dspark-fuse-epilogues -split-input-file | %FileCheck %s

// A second use needs the value before the activation.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: dspark.matmul(%arg0, %arg1) :
  // CHECK: dspark.unary
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = dspark.unary(%0) {kind = "relu"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @bias_residual_activation
func.func @bias_residual_activation(%a: tensor<?x8xf32> {dspark.dims = ["n", "8"]}, %b: tensor<8x4xf32>, %c: tensor<4xf32>,
                                    %r: tensor<?x4xf32> {dspark.dims = ["n", "4"]}) -> tensor<?x4xf32> {
  // CHECK: %[[Y:.*]] = dspark.matmul(%arg0, %arg1, %arg2, %arg3) {activation = "relu"}
  // CHECK-NEXT: return %[[Y]]
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = dspark.binary(%0, %c) {kind = "add"} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %2 = dspark.binary(%r, %1) {kind = "add"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = dspark.unary(%2) {kind = "relu"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %3 : tensor<?x4xf32>
}

// -----

// Kernels add before they activate, so an add after the activation stays.
// CHECK-LABEL: @activation_first
func.func @activation_first(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %r: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  // CHECK: dspark.conv(%arg0, %arg1) {act_alpha = 0.16666666666666666 : f64, act_beta = 5.000000e-01 : f64, activation = "hard_swish"}
  // CHECK: dspark.binary
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = dspark.unary(%0) {kind = "hard_swish"} : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %2 = dspark.binary(%1, %r) {kind = "add"} : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %2 : tensor<1x4x6x6xf32>
}

// -----

// CHECK-LABEL: @clip
func.func @clip(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  // CHECK: dspark.conv(%arg0, %arg1) {act_alpha = 0.000000e+00 : f64, act_beta = 6.000000e+00 : f64, activation = "clip"}
  %low = dspark.constant dense<0.0> : tensor<f32>
  %high = dspark.constant dense<6.0> : tensor<f32>
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = dspark.clip(%0, %low, %high) : (tensor<1x4x6x6xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}

// -----

// A residual must have the result's shape for certain: n and m may differ.
// CHECK-LABEL: @other_rows
func.func @other_rows(%a: tensor<?x8xf32> {dspark.dims = ["n", "8"]}, %b: tensor<8x4xf32>,
                      %r: tensor<?x4xf32> {dspark.dims = ["m", "4"]}) -> tensor<?x4xf32> {
  // CHECK: dspark.binary
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = dspark.binary(%0, %r) {kind = "add"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// A product of bytes whose result is f32 has the same epilogue; one whose result is bytes has none.
// CHECK-LABEL: @bytes
func.func @bytes(%a: tensor<?x8xui8> {dspark.dims = ["n", "8"]}, %s: tensor<f32>, %z: tensor<ui8>, %b: tensor<8x4xi8>,
                 %bz: tensor<i8>, %r: tensor<?x4xf32> {dspark.dims = ["n", "4"]}) -> (tensor<?x4xf32>, tensor<?x4xui8>) {
  // CHECK: %[[NONE:.*]] = dspark.none
  // CHECK: %[[Y:.*]] = dspark.qlinear_matmul(%arg0, %arg1, %arg2, %arg3, %arg1, %arg4, %[[NONE]], {{.*}}, {{.*}}, %arg5) {activation = "gelu"}
  // CHECK: %[[Q:.*]] = dspark.qlinear_matmul(%arg0, %arg1, %arg2, %arg3, %arg1, %arg4, %arg1, %arg2)
  // CHECK: %[[L:.*]] = dspark.unary(%[[Q]])
  // CHECK: return %[[Y]], %[[L]]
  %0 = dspark.qlinear_matmul(%a, %s, %z, %b, %s, %bz)
     : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %1 = dspark.binary(%0, %r) {kind = "add"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dspark.unary(%1) {kind = "gelu"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = dspark.qlinear_matmul(%a, %s, %z, %b, %s, %bz, %s, %z)
     : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  %4 = dspark.unary(%3) {kind = "relu"} : (tensor<?x4xui8>) -> tensor<?x4xui8>
  return %2, %4 : tensor<?x4xf32>, tensor<?x4xui8>
}

// RUN: %dspark-opt %s -dspark-fold-constants -canonicalize -split-input-file | %FileCheck %s

// Data is no constant.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  // CHECK: dspark.transpose(%arg0)
  %0 = dspark.transpose(%x) {perm = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// A chain folds whole: the gates of a recurrent layer in another order.
// CHECK-LABEL: @gates
func.func @gates() -> tensor<1x8x2xf32> {
  // CHECK-NEXT: %[[W:.*]] = dspark.weight @w.slice.1.concat.unsqueeze : tensor<1x8x2xf32>
  // CHECK-NEXT: return %[[W]]
  %w = dspark.weight @w : tensor<8x2xf32>
  %zero = dspark.constant dense<0> : tensor<1xi64>
  %two = dspark.constant dense<2> : tensor<1xi64>
  %end = dspark.constant dense<8> : tensor<1xi64>
  %0 = dspark.slice(%w, %zero, %two, %zero) : (tensor<8x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x2xf32>
  %1 = dspark.slice(%w, %two, %end, %zero) : (tensor<8x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x2xf32>
  %2 = dspark.concat(%1, %0) {axis = 0 : i64} : (tensor<6x2xf32>, tensor<2x2xf32>) -> tensor<8x2xf32>
  %3 = dspark.unsqueeze(%2, %zero) : (tensor<8x2xf32>, tensor<1xi64>) -> tensor<1x8x2xf32>
  return %3 : tensor<1x8x2xf32>
}

// -----

// Every part of a split is a weight.
// CHECK-LABEL: @split
func.func @split() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  // CHECK-DAG: %[[A:.*]] = dspark.weight @w.split : tensor<2x2xf32>
  // CHECK-DAG: %[[B:.*]] = dspark.weight @w.split.1 : tensor<2x2xf32>
  // CHECK: return %[[A]], %[[B]]
  %w = dspark.weight @w : tensor<4x2xf32>
  %0:2 = dspark.split(%w) {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<4x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// A tensor full of one number is a weight, and what is made of it too; one that has a dim of the input is not.
// CHECK-LABEL: @fill
func.func @fill(%n: tensor<1xi64>) -> (tensor<256x64xf32>, tensor<?xf32>) {
  // CHECK-DAG: %[[W:.*]] = dspark.weight @fill.constant_of_shape.transpose : tensor<256x64xf32>
  // CHECK-DAG: %[[Y:.*]] = dspark.kernel "constant_of_shape"(%arg0)
  // CHECK: return %[[W]], %[[Y]]
  %s = dspark.constant dense<[64, 256]> : tensor<2xi64>
  %0 = dspark.kernel "constant_of_shape"(%s) {value = 5.000000e-01 : f64} : (tensor<2xi64>) -> tensor<64x256xf32>
  %1 = dspark.transpose(%0) {perm = array<i64: 1, 0>} : (tensor<64x256xf32>) -> tensor<256x64xf32>
  %2 = dspark.kernel "constant_of_shape"(%n) {value = 5.000000e-01 : f64} : (tensor<1xi64>) -> tensor<?xf32>
  return %1, %2 : tensor<256x64xf32>, tensor<?xf32>
}

// -----

// More than the runtime should keep of them stays a step.
// CHECK-LABEL: @too_many
func.func @too_many() -> tensor<16384x16385xf32> {
  // CHECK: dspark.kernel "constant_of_shape"
  %s = dspark.constant dense<[16384, 16385]> : tensor<2xi64>
  %0 = dspark.kernel "constant_of_shape"(%s) {value = 5.000000e-01 : f64} : (tensor<2xi64>) -> tensor<16384x16385xf32>
  return %0 : tensor<16384x16385xf32>
}

// -----

// int8 weights stay int8, and a small weight is not blown up.
// CHECK-LABEL: @larger
func.func @larger() -> (tensor<4x2xf32>, tensor<64x2xf32>) {
  // CHECK: dspark.cast
  // CHECK: dspark.expand
  %q = dspark.weight @q : tensor<4x2xi8>
  %w = dspark.weight @w : tensor<1x2xf32>
  %s = dspark.constant dense<[64, 2]> : tensor<2xi64>
  %0 = dspark.cast(%q) {to = 1 : i64} : (tensor<4x2xi8>) -> tensor<4x2xf32>
  %1 = dspark.expand(%w, %s) : (tensor<1x2xf32>, tensor<2xi64>) -> tensor<64x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<64x2xf32>
}

// -----

// Filters kept in int8 are dequantised when the plan is written.
// CHECK-LABEL: @filters
func.func @filters(%x: tensor<1x2x4x4xf32>) -> (tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>) {
  // CHECK: %[[W:.*]] = dspark.weight @q.cast.binary
  // CHECK-NOT: dspark.cast
  // CHECK: %[[V:.*]] = dspark.weight @{{.*}} : tensor<3x2x1x1xf32>
  // CHECK: dspark.conv(%arg0, %[[W]])
  // CHECK: dspark.conv(%arg0, %[[V]])
  %q = dspark.weight @q : tensor<3x2x1x1xi8>
  %s = dspark.constant dense<[[[[0.5]]], [[[1.0]]], [[[2.0]]]]> : tensor<3x1x1x1xf32>
  %one = dspark.constant dense<0.25> : tensor<f32>
  %0 = dspark.cast(%q) {to = 1 : i64} : (tensor<3x2x1x1xi8>) -> tensor<3x2x1x1xf32>
  %1 = dspark.binary(%0, %s) {kind = "mul"} : (tensor<3x2x1x1xf32>, tensor<3x1x1x1xf32>) -> tensor<3x2x1x1xf32>
  %2 = dspark.dequantize_linear(%q, %one) : (tensor<3x2x1x1xi8>, tensor<f32>) -> tensor<3x2x1x1xf32>
  %3 = dspark.conv(%x, %1) : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
  %4 = dspark.conv(%x, %2) : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
  return %3, %4 : tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>
}

// -----

// Small ones too, which are constants of the text.
// CHECK-LABEL: @small_filter
func.func @small_filter(%x: tensor<1x2x4x4xf32>) -> tensor<1x1x4x4xf32> {
  // CHECK: %[[W:.*]] = dspark.weight @filter.cast.binary
  // CHECK: dspark.conv(%arg0, %[[W]])
  %q = dspark.constant dense<[[[[3]], [[-4]]]]> : tensor<1x2x1x1xi8>
  %s = dspark.constant dense<0.5> : tensor<f32>
  %0 = dspark.cast(%q) {to = 1 : i64} : (tensor<1x2x1x1xi8>) -> tensor<1x2x1x1xf32>
  %1 = dspark.binary(%0, %s) {kind = "mul"} : (tensor<1x2x1x1xf32>, tensor<f32>) -> tensor<1x2x1x1xf32>
  %2 = dspark.conv(%x, %1) : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32>
  return %2 : tensor<1x1x4x4xf32>
}

// RUN: %dspark-opt %s -dspark-fuse-quantized-contractions -canonicalize -split-input-file | %FileCheck %s

// The product of floats stays as it is.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>, %s: tensor<f32>) -> tensor<?x4xui8> {
  // CHECK: %[[P:.*]] = dspark.matmul(%arg0, %arg1)
  // CHECK: dspark.quantize_linear(%[[P]], %arg2)
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = dspark.quantize_linear(%0, %s) : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xui8>
  return %1 : tensor<?x4xui8>
}

// -----

// CHECK-LABEL: @matmul
func.func @matmul(%a: tensor<?x8xui8>, %bias: tensor<4xf32>) -> tensor<?x4xi8> {
  // CHECK: dspark.qlinear_matmul(%arg0, {{.*}}, %arg1) {activation = "relu"} : (tensor<?x8xui8>, {{.*}} -> tensor<?x4xi8>
  // CHECK-NOT: dspark.dequantize_linear
  %as = dspark.constant dense<0.5> : tensor<f32>
  %az = dspark.constant dense<3> : tensor<ui8>
  %ys = dspark.constant dense<0.25> : tensor<f32>
  %yz = dspark.constant dense<-5> : tensor<i8>
  %bs = dspark.weight @bs : tensor<4xf32>
  %bz = dspark.weight @bz : tensor<4xi8>
  %b = dspark.weight @b : tensor<8x4xi8>
  %0 = dspark.dequantize_linear(%a, %as, %az) : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  %1 = dspark.dequantize_linear(%b, %bs, %bz) {axis = 1 : i64} : (tensor<8x4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xf32>
  %2 = dspark.matmul(%0, %1) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %3 = dspark.binary(%2, %bias) {kind = "add"} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %4 = dspark.unary(%3) {kind = "relu"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %5 = dspark.quantize_linear(%4, %ys, %yz) : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  return %5 : tensor<?x4xi8>
}

// -----

// Without a quantize_linear the result is f32, and a scale per row of weights would multiply inside the sum.
// CHECK-LABEL: @float_result
func.func @float_result(%a: tensor<?x8xui8>, %as: tensor<f32>, %bs: tensor<f32>, %rows: tensor<8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: dspark.qlinear_matmul({{.*}} -> tensor<?x4xf32>
  // CHECK: dspark.matmul(
  %b = dspark.weight @b : tensor<8x4xi8>
  %0 = dspark.dequantize_linear(%a, %as) : (tensor<?x8xui8>, tensor<f32>) -> tensor<?x8xf32>
  %1 = dspark.dequantize_linear(%b, %bs) : (tensor<8x4xi8>, tensor<f32>) -> tensor<8x4xf32>
  %2 = dspark.matmul(%0, %1) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %3 = dspark.dequantize_linear(%b, %rows) {axis = 0 : i64} : (tensor<8x4xi8>, tensor<8xf32>) -> tensor<8x4xf32>
  %4 = dspark.matmul(%0, %3) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %2, %4 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @conv
func.func @conv(%x: tensor<1x3x8x8xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<1x4x4x4xui8> {
  // CHECK-DAG: %[[B:.*]] = dspark.weight @constant.bias : tensor<4xf32>
  // CHECK: dspark.qlinear_conv(%arg0, %arg1, %arg2, {{.*}}, %arg1, %arg2, %[[B]]) {act_alpha = 0.000000e+00 : f64, act_beta = 6.000000e+00 : f64, activation = "clip", pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>}
  %w = dspark.weight @w : tensor<4x3x3x3xi8>
  %ws = dspark.constant dense<[0.1, 0.2, 0.3, 0.4]> : tensor<4xf32>
  %b = dspark.constant dense<[1, -2, 3, -4]> : tensor<4xi32>
  %low = dspark.constant dense<0.0> : tensor<f32>
  %high = dspark.constant dense<6.0> : tensor<f32>
  %0 = dspark.dequantize_linear(%x, %s, %z) : (tensor<1x3x8x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x8x8xf32>
  %1 = dspark.dequantize_linear(%w, %ws) {axis = 0 : i64} : (tensor<4x3x3x3xi8>, tensor<4xf32>) -> tensor<4x3x3x3xf32>
  %2 = dspark.dequantize_linear(%b, %ws) {axis = 0 : i64} : (tensor<4xi32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = dspark.conv(%0, %1, %2) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>}
     : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
  %4 = dspark.clip(%3, %low, %high) : (tensor<1x4x4x4xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x4x4xf32>
  %5 = dspark.quantize_linear(%4, %s, %z) : (tensor<1x4x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x4x4x4xui8>
  return %5 : tensor<1x4x4x4xui8>
}

// -----

// Scales found while the model runs: the product of both goes into the matmul.
// CHECK-LABEL: @dynamic
func.func @dynamic(%x: tensor<?x8xf32>, %bias: tensor<4xf32>) -> tensor<?x4xf32> {
  // CHECK: %[[Q:.*]]:3 = dspark.kernel "dynamic_quantize_linear"(%arg0)
  // CHECK: dspark.qlinear_matmul(%[[Q]]#0, %[[Q]]#1, %[[Q]]#2, {{.*}}, %arg1) : {{.*}} -> tensor<?x4xf32>
  // CHECK-NOT: dspark.cast
  %w = dspark.weight @w : tensor<8x4xi8>
  %ws = dspark.constant dense<0.5> : tensor<f32>
  %wz = dspark.constant dense<0> : tensor<i8>
  %q:3 = dspark.kernel "dynamic_quantize_linear"(%x) : (tensor<?x8xf32>) -> (tensor<?x8xui8>, tensor<f32>, tensor<ui8>)
  %0 = dspark.kernel "matmul_integer"(%q#0, %w, %q#2, %wz) : (tensor<?x8xui8>, tensor<8x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<?x4xi32>
  %1 = dspark.cast(%0) {to = 1 : i64} : (tensor<?x4xi32>) -> tensor<?x4xf32>
  %2 = dspark.binary(%q#1, %ws) {kind = "mul"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %3 = dspark.binary(%1, %2) {kind = "mul"} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %4 = dspark.binary(%3, %bias) {kind = "add"} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %4 : tensor<?x4xf32>
}


// -----

// A bias in units of the sums, which dynamically quantised exports add before the cast; one that is not per channel stays.
// CHECK-LABEL: @whole_bias
func.func @whole_bias(%x: tensor<1x3x?xui8>, %xs: tensor<f32>, %xz: tensor<ui8>, %bias: tensor<1x4x1xi32>, %each: tensor<1x4x2xi32>) -> (tensor<1x4x?xf32>, tensor<1x4x2xf32>) {
  // CHECK: %[[B:.*]] = dspark.reshape(%arg3, {{.*}} -> tensor<4xi32>
  // CHECK: dspark.qlinear_conv(%arg0, %arg1, %arg2, {{.*}}, %[[B]]) {pads = array<i64: 1, 1>} {{.*}} -> tensor<1x4x?xf32>
  // CHECK: dspark.kernel "conv_integer"
  // CHECK: dspark.binary({{.*}}, %arg4) {kind = "add"}
  %w = dspark.weight @w : tensor<4x3x3xui8>
  %ws = dspark.constant dense<0.5> : tensor<f32>
  %wz = dspark.constant dense<120> : tensor<ui8>
  %scale = dspark.binary(%xs, %ws) {kind = "mul"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = dspark.kernel "conv_integer"(%x, %w, %xz, %wz) {pads = array<i64: 1, 1>} : (tensor<1x3x?xui8>, tensor<4x3x3xui8>, tensor<ui8>, tensor<ui8>) -> tensor<1x4x?xi32>
  %1 = dspark.binary(%0, %bias) {kind = "add"} : (tensor<1x4x?xi32>, tensor<1x4x1xi32>) -> tensor<1x4x?xi32>
  %2 = dspark.cast(%1) {to = 1 : i64} : (tensor<1x4x?xi32>) -> tensor<1x4x?xf32>
  %3 = dspark.binary(%2, %scale) {kind = "mul"} : (tensor<1x4x?xf32>, tensor<f32>) -> tensor<1x4x?xf32>
  %y = dspark.weight @y : tensor<1x3x2xui8>
  %4 = dspark.kernel "conv_integer"(%y, %w, %xz, %wz) {pads = array<i64: 1, 1>} : (tensor<1x3x2xui8>, tensor<4x3x3xui8>, tensor<ui8>, tensor<ui8>) -> tensor<1x4x2xi32>
  %5 = dspark.binary(%4, %each) {kind = "add"} : (tensor<1x4x2xi32>, tensor<1x4x2xi32>) -> tensor<1x4x2xi32>
  %6 = dspark.cast(%5) {to = 1 : i64} : (tensor<1x4x2xi32>) -> tensor<1x4x2xf32>
  %7 = dspark.binary(%6, %scale) {kind = "mul"} : (tensor<1x4x2xf32>, tensor<f32>) -> tensor<1x4x2xf32>
  return %3, %7 : tensor<1x4x?xf32>, tensor<1x4x2xf32>
}

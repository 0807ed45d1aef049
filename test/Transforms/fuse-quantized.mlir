// RUN: %dspark-opt %s -dspark-fuse-quantized -canonicalize -split-input-file | %FileCheck %s

// A sum of floats stays as it is.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%a: tensor<?x8xf32>, %b: tensor<8xi8>, %s: tensor<f32>) -> tensor<?x8xui8> {
  // CHECK: dspark.binary
  // CHECK: dspark.quantize_linear
  %0 = dspark.dequantize_linear(%b, %s) : (tensor<8xi8>, tensor<f32>) -> tensor<8xf32>
  %1 = dspark.binary(%a, %0) {kind = "add"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %2 = dspark.quantize_linear(%1, %s) : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xui8>
  return %2 : tensor<?x8xui8>
}

// -----

// A sum whose other use wants floats is computed for both.
// CHECK-LABEL: @add
func.func @add(%a: tensor<?x4xi8>, %b: tensor<4xi8>) -> (tensor<?x4xi8>, tensor<?x4xf32>) {
  // CHECK-DAG: dspark.binary
  // CHECK-DAG: dspark.qlinear_binary({{.*}}) {kind = "add"} : {{.*}} -> tensor<?x4xi8>
  %s = dspark.constant dense<0.5> : tensor<f32>
  %z = dspark.constant dense<1> : tensor<i8>
  %0 = dspark.dequantize_linear(%a, %s, %z) : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %1 = dspark.dequantize_linear(%b, %s, %z) : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  %2 = dspark.binary(%0, %1) {kind = "add"} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %3 = dspark.quantize_linear(%2, %s, %z) : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  return %3, %2 : tensor<?x4xi8>, tensor<?x4xf32>
}

// -----

// x * (x + 3) / 2 is a function of one byte; another scale too; the same scale is nothing.
// CHECK-LABEL: @tables
func.func @tables(%x: tensor<?xui8>) -> (tensor<?xi8>, tensor<?xui8>, tensor<?xui8>) {
  // CHECK: %[[A:.*]] = dspark.lookup(%arg0, {{.*}}) : (tensor<?xui8>, tensor<256xi8>) -> tensor<?xi8>
  // CHECK: %[[B:.*]] = dspark.lookup(%arg0, {{.*}}) : (tensor<?xui8>, tensor<256xui8>) -> tensor<?xui8>
  // CHECK: return %[[A]], %[[B]], %arg0
  %s = dspark.constant dense<0.5> : tensor<f32>
  %t = dspark.constant dense<0.75> : tensor<f32>
  %z = dspark.constant dense<7> : tensor<ui8>
  %y = dspark.constant dense<-3> : tensor<i8>
  %three = dspark.constant dense<3.0> : tensor<f32>
  %half = dspark.constant dense<0.5> : tensor<f32>
  %0 = dspark.dequantize_linear(%x, %s, %z) : (tensor<?xui8>, tensor<f32>, tensor<ui8>) -> tensor<?xf32>
  %1 = dspark.binary(%0, %three) {kind = "add"} : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %2 = dspark.binary(%0, %1) {kind = "mul"} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %3 = dspark.binary(%2, %half) {kind = "mul"} : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %4 = dspark.quantize_linear(%3, %s, %y) : (tensor<?xf32>, tensor<f32>, tensor<i8>) -> tensor<?xi8>
  %5 = dspark.quantize_linear(%0, %t, %z) : (tensor<?xf32>, tensor<f32>, tensor<ui8>) -> tensor<?xui8>
  %6 = dspark.quantize_linear(%0, %s, %z) : (tensor<?xf32>, tensor<f32>, tensor<ui8>) -> tensor<?xui8>
  return %4, %5, %6 : tensor<?xi8>, tensor<?xui8>, tensor<?xui8>
}

// -----

// The mean over all pixels; over other axes it stays.
// CHECK-LABEL: @means
func.func @means(%x: tensor<1x4x3x3xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> (tensor<1x4x1x1xui8>, tensor<1x1x3x3xui8>) {
  // CHECK: dspark.qlinear_pool(%arg0, %arg1, %arg2, %arg1, %arg2)
  // CHECK: dspark.reduce
  %0 = dspark.dequantize_linear(%x, %s, %z) : (tensor<1x4x3x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x3x3xf32>
  %1 = dspark.reduce(%0) {kind = "mean", axes = array<i64: 2, 3>} : (tensor<1x4x3x3xf32>) -> tensor<1x4x1x1xf32>
  %2 = dspark.quantize_linear(%1, %s, %z) : (tensor<1x4x1x1xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x4x1x1xui8>
  %3 = dspark.reduce(%0) {kind = "mean", axes = array<i64: 1>} : (tensor<1x4x3x3xf32>) -> tensor<1x1x3x3xf32>
  %4 = dspark.quantize_linear(%3, %s, %z) : (tensor<1x1x3x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x3x3xui8>
  return %2, %4 : tensor<1x4x1x1xui8>, tensor<1x1x3x3xui8>
}

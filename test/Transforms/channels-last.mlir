// RUN: %dspark-opt %s -dspark-channels-last -canonicalize -split-input-file | %FileCheck %s

// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  // CHECK-NOT: dspark.transpose
  %0 = dspark.unary(%x) {kind = "relu"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}

// -----

// Between two convolutions nothing is transposed; a per-channel constant is rearranged.
// CHECK-LABEL: @chain
func.func @chain(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x4x4xf32> {
  // CHECK: %[[X:.*]] = dspark.transpose(%arg0) {perm = array<i64: 0, 2, 3, 1>}
  // CHECK: %[[A:.*]] = dspark.conv(%[[X]], %{{.*}}) {layout = "nhwc"} : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32>
  // CHECK: %[[B:.*]] = dspark.unary(%[[A]])
  // CHECK: %[[C:.*]] = dspark.binary(%[[B]], %{{.*}}) {kind = "mul"} : (tensor<1x6x6x4xf32>, tensor<1x1x1x4xf32>)
  // CHECK: %[[D:.*]] = dspark.conv(%[[C]], %{{.*}}) {layout = "nhwc"}
  // CHECK: %[[Y:.*]] = dspark.transpose(%[[D]]) {perm = array<i64: 0, 3, 1, 2>}
  // CHECK-NEXT: return %[[Y]]
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %v = dspark.weight @v : tensor<4x4x3x3xf32>
  %s = dspark.weight @s : tensor<4x1x1xf32>
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = dspark.unary(%0) {kind = "tanh"} : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %2 = dspark.binary(%1, %s) {kind = "mul"} : (tensor<1x4x6x6xf32>, tensor<4x1x1xf32>) -> tensor<1x4x6x6xf32>
  %3 = dspark.conv(%2, %v) : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %3 : tensor<1x4x4x4xf32>
}

// -----

// Reductions, concatenations and pads follow with their axes moved.
// CHECK-LABEL: @axes
func.func @axes(%x: tensor<1x3x8x8xf32>) -> (tensor<1x4xf32>, tensor<1x8x6x8xf32>) {
  // CHECK: %[[P:.*]] = dspark.constant dense<[0, 0, 1, 0, 0, 0, 1, 0]>
  // CHECK: %[[A:.*]] = dspark.conv
  // CHECK: dspark.reduce(%[[A]]) {axes = array<i64: 1, 2>, keepdims = 0 : i64, kind = "mean"} : (tensor<1x6x6x4xf32>) -> tensor<1x4xf32>
  // CHECK: %[[C:.*]] = dspark.concat(%[[A]], %[[A]]) {axis = 3 : i64}
  // CHECK: dspark.pad(%[[C]], %[[P]]) : (tensor<1x6x6x8xf32>, tensor<8xi64>) -> tensor<1x6x8x8xf32>
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %p = dspark.constant dense<[0, 0, 0, 1, 0, 0, 0, 1]> : tensor<8xi64>
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = dspark.reduce(%0) {kind = "mean", axes = array<i64: 2, 3>, keepdims = 0 : i64} : (tensor<1x4x6x6xf32>) -> tensor<1x4xf32>
  %2 = dspark.concat(%0, %0) {axis = 1 : i64} : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x8x6x6xf32>
  %3 = dspark.pad(%2, %p) : (tensor<1x8x6x6xf32>, tensor<8xi64>) -> tensor<1x8x6x8xf32>
  return %1, %3 : tensor<1x4xf32>, tensor<1x8x6x8xf32>
}

// -----

// What reads channels first is given it: the transpose stays in front of the reshape.
// CHECK-LABEL: @flattened
func.func @flattened(%x: tensor<1x3x8x8xf32>) -> tensor<1x144xf32> {
  // CHECK: %[[A:.*]] = dspark.conv
  // CHECK: %[[T:.*]] = dspark.transpose(%[[A]]) {perm = array<i64: 0, 3, 1, 2>}
  // CHECK: dspark.reshape(%[[T]]
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %s = dspark.constant dense<[1, 144]> : tensor<2xi64>
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = dspark.reshape(%0, %s) : (tensor<1x4x6x6xf32>, tensor<2xi64>) -> tensor<1x144xf32>
  return %1 : tensor<1x144xf32>
}

// -----

// Operations on bytes: scales, zero points and tables stay as they are.
// CHECK-LABEL: @bytes
func.func @bytes(%x: tensor<1x3x8x8xui8>, %s: tensor<f32>, %z: tensor<ui8>, %wz: tensor<i8>, %t: tensor<256xui8>) -> tensor<1x4x1x1xui8> {
  // CHECK: dspark.transpose(%arg0)
  // CHECK: %[[A:.*]] = dspark.qlinear_conv({{.*}}) {layout = "nhwc"} : {{.*}} -> tensor<1x6x6x4xui8>
  // CHECK: %[[L:.*]] = dspark.lookup(%[[A]], %arg4) : (tensor<1x6x6x4xui8>, tensor<256xui8>) -> tensor<1x6x6x4xui8>
  // CHECK: %[[B:.*]] = dspark.qlinear_binary(%[[A]], %arg1, %arg2, %[[L]], %arg1, %arg2, %arg1, %arg2)
  // CHECK: dspark.qlinear_pool(%[[B]], %arg1, %arg2, %arg1, %arg2) {layout = "nhwc"} : {{.*}} -> tensor<1x1x1x4xui8>
  %w = dspark.weight @w : tensor<4x3x3x3xi8>
  %0 = dspark.qlinear_conv(%x, %s, %z, %w, %s, %wz, %s, %z)
     : (tensor<1x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x3x3x3xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x6x6xui8>
  %1 = dspark.lookup(%0, %t) : (tensor<1x4x6x6xui8>, tensor<256xui8>) -> tensor<1x4x6x6xui8>
  %2 = dspark.qlinear_binary(%0, %s, %z, %1, %s, %z, %s, %z) {kind = "mul"}
     : (tensor<1x4x6x6xui8>, tensor<f32>, tensor<ui8>, tensor<1x4x6x6xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x6x6xui8>
  %3 = dspark.qlinear_pool(%2, %s, %z, %s, %z) : (tensor<1x4x6x6xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x1x1xui8>
  return %3 : tensor<1x4x1x1xui8>
}

// -----

// What is added to a product of bytes lies as its result does.
// CHECK-LABEL: @residual_of_bytes
func.func @residual_of_bytes(%x: tensor<1x3x8x8xui8>, %s: tensor<f32>, %z: tensor<ui8>, %wz: tensor<i8>, %r: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  // CHECK: %[[R:.*]] = dspark.transpose(%arg4) {perm = array<i64: 0, 2, 3, 1>}
  // CHECK: dspark.qlinear_conv({{.*}}, %[[R]]) {layout = "nhwc"} : {{.*}} -> tensor<1x6x6x4xf32>
  %w = dspark.weight @w : tensor<4x3x3x3xi8>
  %none = dspark.none
  %0 = dspark.qlinear_conv(%x, %s, %z, %w, %s, %wz, %none, %none, %none, %r)
     : (tensor<1x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x3x3x3xi8>, tensor<f32>, tensor<i8>, none, none, none, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}

// -----

// A split follows with its axis moved, and its parts meet the next convolution without a transpose.
// CHECK-LABEL: @split
func.func @split(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x4x4xf32> {
  // CHECK: dspark.transpose(%arg0)
  // CHECK: %[[A:.*]] = dspark.conv
  // CHECK: %[[S:.*]]:2 = dspark.split(%[[A]]) {axis = 3 : i64, num_outputs = 2 : i64} : (tensor<1x6x6x4xf32>) -> (tensor<1x6x6x2xf32>, tensor<1x6x6x2xf32>)
  // CHECK: %[[C:.*]] = dspark.concat(%[[S]]#1, %[[S]]#0) {axis = 3 : i64}
  // CHECK-NEXT: dspark.conv(%[[C]]
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %v = dspark.weight @v : tensor<4x4x3x3xf32>
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1:2 = dspark.split(%0) {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<1x4x6x6xf32>) -> (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>)
  %2 = dspark.concat(%1#1, %1#0) {axis = 1 : i64} : (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>) -> tensor<1x4x6x6xf32>
  %3 = dspark.conv(%2, %v) : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %3 : tensor<1x4x4x4xf32>
}

// -----

// Patches become tokens: the pixels are joined where they lie, and nothing is transposed.
// CHECK-LABEL: @tokens
func.func @tokens(%x: tensor<?x3x8x8xf32>) -> tensor<?x16x4xf32> {
  // CHECK-DAG: %[[D:.*]] = dspark.constant dense<[0, 16, 4]>
  // CHECK: %[[A:.*]] = dspark.conv
  // CHECK: %[[R:.*]] = dspark.reshape(%[[A]], %[[D]])
  // CHECK-NEXT: return %[[R]]
  %w = dspark.weight @w : tensor<4x3x2x2xf32>
  %s = dspark.constant dense<[0, 4, 16]> : tensor<3xi64>
  %0 = dspark.conv(%x, %w) {strides = array<i64: 2, 2>} : (tensor<?x3x8x8xf32>, tensor<4x3x2x2xf32>) -> tensor<?x4x4x4xf32>
  %1 = dspark.reshape(%0, %s) : (tensor<?x4x4x4xf32>, tensor<3xi64>) -> tensor<?x4x16xf32>
  %2 = dspark.transpose(%1) {perm = array<i64: 0, 2, 1>} : (tensor<?x4x16xf32>) -> tensor<?x16x4xf32>
  return %2 : tensor<?x16x4xf32>
}

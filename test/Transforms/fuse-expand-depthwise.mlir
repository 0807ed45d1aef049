// RUN: %dspark-opt %s -dspark-fuse-expand-depthwise -split-input-file | %FileCheck %s

// CHECK-LABEL: @inverted_residual
func.func @inverted_residual(%x: tensor<?x112x112x16xf32>, %b: tensor<96xf32>) -> tensor<?x56x56x96xf32> {
  // CHECK: %[[W1:.*]] = dspark.weight @w1
  // CHECK: %[[W2:.*]] = dspark.weight @w2
  // CHECK: %[[NONE:.*]] = dspark.none
  // CHECK: dspark.expand_depthwise(%arg0, %[[W1]], %arg1, %[[W2]], %[[NONE]])
  // CHECK-SAME: activation = "silu"
  // CHECK-SAME: expand_act_alpha = 0.000000e+00 : f64, expand_act_beta = 6.000000e+00 : f64, expand_activation = "clip"
  // CHECK-SAME: strides = array<i64: 2, 2>
  // CHECK-NOT: dspark.conv
  %w1 = dspark.weight @w1 {layout = "panel16"} : tensor<96x16x1x1xf32>
  %w2 = dspark.weight @w2 {layout = "depthwise"} : tensor<96x1x3x3xf32>
  %0 = dspark.conv(%x, %w1, %b) {activation = "clip", act_alpha = 0.0 : f64, act_beta = 6.0 : f64, layout = "nhwc", packed = "panel16"} : (tensor<?x112x112x16xf32>, tensor<96x16x1x1xf32>, tensor<96xf32>) -> tensor<?x112x112x96xf32>
  %1 = dspark.conv(%0, %w2) {activation = "silu", group = 96 : i64, layout = "nhwc", packed = "depthwise", pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x112x112x96xf32>, tensor<96x1x3x3xf32>) -> tensor<?x56x56x96xf32>
  return %1 : tensor<?x56x56x96xf32>
}

// -----

// Weights in bf16 stay so.
// CHECK-LABEL: @in_bf16
func.func @in_bf16(%x: tensor<1x112x112x16xf32>) -> tensor<1x112x112x96xf32> {
  // CHECK: dspark.expand_depthwise
  // CHECK-SAME: expand_packed = "bf16"
  %w1 = dspark.weight @w1 {layout = "bf16"} : tensor<96x16x1x1xf32>
  %w2 = dspark.weight @w2 {layout = "depthwise"} : tensor<96x1x3x3xf32>
  %0 = dspark.conv(%x, %w1) {layout = "nhwc", packed = "bf16"} : (tensor<1x112x112x16xf32>, tensor<96x16x1x1xf32>) -> tensor<1x112x112x96xf32>
  %1 = dspark.conv(%0, %w2) {group = 96 : i64, layout = "nhwc", packed = "depthwise", pads = array<i64: 1, 1, 1, 1>} : (tensor<1x112x112x96xf32>, tensor<96x1x3x3xf32>) -> tensor<1x112x112x96xf32>
  return %1 : tensor<1x112x112x96xf32>
}

// -----

// 7 x 7 x 96 stay in the L2 cache.
// CHECK-LABEL: @small
func.func @small(%x: tensor<1x7x7x16xf32>) -> tensor<1x7x7x96xf32> {
  // CHECK-NOT: expand_depthwise
  %w1 = dspark.weight @w1 {layout = "panel16"} : tensor<96x16x1x1xf32>
  %w2 = dspark.weight @w2 {layout = "depthwise"} : tensor<96x1x3x3xf32>
  %0 = dspark.conv(%x, %w1) {layout = "nhwc", packed = "panel16"} : (tensor<1x7x7x16xf32>, tensor<96x16x1x1xf32>) -> tensor<1x7x7x96xf32>
  %1 = dspark.conv(%0, %w2) {group = 96 : i64, layout = "nhwc", packed = "depthwise", pads = array<i64: 1, 1, 1, 1>} : (tensor<1x7x7x96xf32>, tensor<96x1x3x3xf32>) -> tensor<1x7x7x96xf32>
  return %1 : tensor<1x7x7x96xf32>
}

// -----

// Someone else reads the expanded image.
// CHECK-LABEL: @two_readers
func.func @two_readers(%x: tensor<1x?x?x16xf32>) -> (tensor<1x?x?x96xf32>, tensor<1x?x?x96xf32>) {
  // CHECK-NOT: expand_depthwise
  %w1 = dspark.weight @w1 {layout = "panel16"} : tensor<96x16x1x1xf32>
  %w2 = dspark.weight @w2 {layout = "depthwise"} : tensor<96x1x3x3xf32>
  %0 = dspark.conv(%x, %w1) {layout = "nhwc", packed = "panel16"} : (tensor<1x?x?x16xf32>, tensor<96x16x1x1xf32>) -> tensor<1x?x?x96xf32>
  %1 = dspark.conv(%0, %w2) {group = 96 : i64, layout = "nhwc", packed = "depthwise", pads = array<i64: 1, 1, 1, 1>} : (tensor<1x?x?x96xf32>, tensor<96x1x3x3xf32>) -> tensor<1x?x?x96xf32>
  return %0, %1 : tensor<1x?x?x96xf32>, tensor<1x?x?x96xf32>
}

// -----

// A stride before the depthwise part, or a residual behind it, is not the pattern.
// CHECK-LABEL: @strided
func.func @strided(%x: tensor<1x?x?x16xf32>) -> tensor<1x?x?x96xf32> {
  // CHECK-NOT: expand_depthwise
  %w1 = dspark.weight @w1 {layout = "panel16"} : tensor<96x16x1x1xf32>
  %w2 = dspark.weight @w2 {layout = "depthwise"} : tensor<96x1x3x3xf32>
  %0 = dspark.conv(%x, %w1) {layout = "nhwc", packed = "panel16", strides = array<i64: 2, 2>} : (tensor<1x?x?x16xf32>, tensor<96x16x1x1xf32>) -> tensor<1x?x?x96xf32>
  %1 = dspark.conv(%0, %w2) {group = 96 : i64, layout = "nhwc", packed = "depthwise", pads = array<i64: 1, 1, 1, 1>} : (tensor<1x?x?x96xf32>, tensor<96x1x3x3xf32>) -> tensor<1x?x?x96xf32>
  return %1 : tensor<1x?x?x96xf32>
}

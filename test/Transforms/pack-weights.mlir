// RUN: %dspark-opt %s -dspark-pack-weights -split-input-file | %FileCheck %s

// Operands that are not constant have no layout to change.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>) -> tensor<?x4xf32> {
  // CHECK: dspark.matmul(%arg0, %arg1) :
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Two products with one weight share its packed form.
// CHECK-LABEL: @matmul
func.func @matmul(%a: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: dspark.weight @w.panel16 {layout = "panel16"} : tensor<8x4xf32>
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {packed = "panel16"}
  // CHECK: dspark.weight @w.panel16 {layout = "panel16"} : tensor<8x4xf32>
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {packed = "panel16"}
  %w = dspark.weight @w : tensor<8x4xf32>
  %0 = dspark.matmul(%a, %w) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = dspark.matmul(%a, %w) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @convolutions
func.func @convolutions(%x: tensor<1x8x8x4xf32>) -> tensor<1x4x4x4xf32> {
  // CHECK: dspark.weight @d.depthwise {layout = "depthwise"}
  // CHECK: dspark.conv({{.*}}) {group = 4 : i64, layout = "nhwc", packed = "depthwise"}
  // CHECK: dspark.weight @w.panel16 {layout = "panel16"}
  // CHECK: dspark.conv({{.*}}) {layout = "nhwc", packed = "panel16"}
  %d = dspark.weight @d : tensor<4x1x3x3xf32>
  %w = dspark.weight @w : tensor<4x4x3x3xf32>
  %0 = dspark.conv(%x, %d) {group = 4 : i64, layout = "nhwc"} : (tensor<1x8x8x4xf32>, tensor<4x1x3x3xf32>) -> tensor<1x6x6x4xf32>
  %1 = dspark.conv(%0, %w) {layout = "nhwc"} : (tensor<1x6x6x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %1 : tensor<1x4x4x4xf32>
}

// -----

// Small constants are packed like weights.
// CHECK-LABEL: @constant
func.func @constant(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK-NOT: dspark.constant
  // CHECK: dspark.weight @constant.panel16 {layout = "panel16"} : tensor<2x2xf32>
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {packed = "panel16"}
  %w = dspark.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = dspark.matmul(%a, %w) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

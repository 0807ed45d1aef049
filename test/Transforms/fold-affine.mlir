// RUN: %dspark-opt %s -dspark-fold-affine -split-input-file | %FileCheck %s

// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<1x4x8x8xf32>, %y: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  // CHECK: dspark.binary
  %0 = dspark.binary(%x, %y) {kind = "add"} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}

// -----

// CHECK-LABEL: @conv_batch_norm
func.func @conv_batch_norm(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %p = dspark.weight @p : tensor<4xf32>
  // CHECK-DAG: %[[W:.*]] = dspark.weight @w.scaled : tensor<4x3x3x3xf32>
  // CHECK-DAG: %[[B:.*]] = dspark.weight @w.bias : tensor<4xf32>
  // CHECK: %[[Y:.*]] = dspark.conv(%arg0, %[[W]], %[[B]])
  // CHECK-NEXT: return %[[Y]]
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = dspark.batch_norm(%0, %p, %p, %p, %p) : (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}

// -----

// Without a convolution before it a batch norm becomes a scale and a shift per channel.
// CHECK-LABEL: @batch_norm_alone
func.func @batch_norm_alone(%x: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  %p = dspark.weight @p : tensor<4xf32>
  // CHECK: %[[S:.*]] = dspark.weight @p.scale : tensor<4x1x1xf32>
  // CHECK: %[[M:.*]] = dspark.binary(%arg0, %[[S]]) {kind = "mul"}
  // CHECK: %[[T:.*]] = dspark.weight @p.shift : tensor<4x1x1xf32>
  // CHECK: dspark.binary(%[[M]], %[[T]]) {kind = "add"}
  %0 = dspark.batch_norm(%x, %p, %p, %p, %p) : (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}

// -----

// CHECK-LABEL: @conv_scale_shift
func.func @conv_scale_shift(%x: tensor<?x3x8x8xf32>) -> tensor<?x4x6x6xf32> {
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %s = dspark.constant dense<2.0> : tensor<1xf32>
  %t = dspark.weight @t : tensor<1x4x1x1xf32>
  // CHECK-NOT: dspark.binary
  // CHECK: dspark.conv(%arg0, %{{.*}}, %{{.*}})
  %0 = dspark.conv(%x, %w) : (tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<?x4x6x6xf32>
  %1 = dspark.binary(%s, %0) {kind = "mul"} : (tensor<1xf32>, tensor<?x4x6x6xf32>) -> tensor<?x4x6x6xf32>
  %2 = dspark.binary(%1, %t) {kind = "add"} : (tensor<?x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<?x4x6x6xf32>
  return %2 : tensor<?x4x6x6xf32>
}

// -----

// A constant per row is not per channel; a result with two uses keeps its own value.
// CHECK-LABEL: @not_per_channel
func.func @not_per_channel(%x: tensor<1x3x8x8xf32>) -> (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) {
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %t = dspark.weight @t : tensor<6xf32>
  %u = dspark.constant dense<2.0> : tensor<f32>
  // CHECK: dspark.binary{{.*}}"add"
  // CHECK: dspark.binary{{.*}}"mul"
  %0 = dspark.conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = dspark.binary(%0, %t) {kind = "add"} : (tensor<1x4x6x6xf32>, tensor<6xf32>) -> tensor<1x4x6x6xf32>
  %2 = dspark.binary(%0, %u) {kind = "mul"} : (tensor<1x4x6x6xf32>, tensor<f32>) -> tensor<1x4x6x6xf32>
  return %1, %2 : tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>
}

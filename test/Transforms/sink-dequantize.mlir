// RUN: %dspark-opt %s -dspark-sink-dequantize -canonicalize -split-input-file | %FileCheck %s

// One scale per index would have to follow the indices.
// CHECK-LABEL: @scale_per_axis
func.func @scale_per_axis(%x: tensor<4x6xi8>, %s: tensor<6xf32>) -> tensor<6x4xf32> {
  // CHECK: %[[F:.*]] = dspark.dequantize_linear(%arg0, %arg1)
  // CHECK: dspark.transpose(%[[F]])
  %0 = dspark.dequantize_linear(%x, %s) : (tensor<4x6xi8>, tensor<6xf32>) -> tensor<4x6xf32>
  %1 = dspark.transpose(%0) {perm = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

// CHECK-LABEL: @chain
func.func @chain(%x: tensor<1x2x8x8xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<1x2x16xf32> {
  // CHECK: %[[P:.*]] = dspark.pool(%arg0) {{.*}} -> tensor<1x2x4x4xui8>
  // CHECK: %[[R:.*]] = dspark.reshape(%[[P]], {{.*}} -> tensor<1x2x16xui8>
  // CHECK: %[[F:.*]] = dspark.dequantize_linear(%[[R]], %arg1, %arg2)
  // CHECK: return %[[F]]
  %0 = dspark.dequantize_linear(%x, %s, %z) : (tensor<1x2x8x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x8x8xf32>
  %1 = dspark.pool(%0) {kind = "max", kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>}
     : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  %shape = dspark.constant dense<[1, 2, 16]> : tensor<3xi64>
  %2 = dspark.reshape(%1, %shape) : (tensor<1x2x4x4xf32>, tensor<3xi64>) -> tensor<1x2x16xf32>
  return %2 : tensor<1x2x16xf32>
}

// -----

// CHECK-LABEL: @concat
func.func @concat(%x: tensor<2x3xi8>, %y: tensor<2x5xi8>, %s: tensor<f32>) -> tensor<2x8xf32> {
  // CHECK: %[[C:.*]] = dspark.concat(%arg0, %arg1)
  // CHECK: dspark.dequantize_linear(%[[C]], %arg2)
  %0 = dspark.dequantize_linear(%x, %s) : (tensor<2x3xi8>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dspark.dequantize_linear(%y, %s) : (tensor<2x5xi8>, tensor<f32>) -> tensor<2x5xf32>
  %2 = dspark.concat(%0, %1) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: @concat_of_other_scales
func.func @concat_of_other_scales(%x: tensor<2x3xi8>, %y: tensor<2x5xi8>, %s: tensor<f32>, %t: tensor<f32>) -> tensor<2x8xf32> {
  // CHECK: dspark.concat({{.*}}f32>) -> tensor<2x8xf32>
  %0 = dspark.dequantize_linear(%x, %s) : (tensor<2x3xi8>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dspark.dequantize_linear(%y, %t) : (tensor<2x5xi8>, tensor<f32>) -> tensor<2x5xf32>
  %2 = dspark.concat(%0, %1) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

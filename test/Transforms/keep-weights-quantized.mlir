// RUN: %dspark-opt %s -dspark-keep-weights-quantized -canonicalize -split-input-file | %FileCheck %s

// CHECK-LABEL: @do_nothing
func.func @do_nothing(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>) -> tensor<?x4xf32> {
  // CHECK: dspark.matmul(
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @matmul
func.func @matmul(%a: tensor<?x8xf32>) -> tensor<?x4xf32> {
  // CHECK-DAG: %[[Q:.*]] = dspark.weight @q : tensor<8x4xi8>
  // CHECK-DAG: %[[S:.*]] = dspark.weight @s : tensor<4xf32>
  // CHECK: dspark.matmul_dequant(%arg0, %[[Q]], %[[S]])
  // CHECK-NOT: dspark.cast
  %q = dspark.weight @q : tensor<8x4xi8>
  %s = dspark.weight @s : tensor<4xf32>
  %f = dspark.cast(%q) {to = 1 : i64} : (tensor<8x4xi8>) -> tensor<8x4xf32>
  %b = dspark.binary(%f, %s) {kind = "mul"} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// One scale per row would have to multiply inside the sum.
// CHECK-LABEL: @scale_per_row
func.func @scale_per_row(%a: tensor<?x8xf32>) -> tensor<?x4xf32> {
  // CHECK: dspark.matmul(
  %q = dspark.weight @q : tensor<8x4xi8>
  %s = dspark.weight @s : tensor<8x1xf32>
  %f = dspark.cast(%q) {to = 1 : i64} : (tensor<8x4xi8>) -> tensor<8x4xf32>
  %b = dspark.binary(%f, %s) {kind = "mul"} : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @gather
func.func @gather(%i: tensor<?xi64>) -> tensor<?x4xf32> {
  // CHECK-DAG: %[[Q:.*]] = dspark.weight @q : tensor<100x4xi8>
  // CHECK: %[[G:.*]] = dspark.gather(%[[Q]], %arg0)
  // CHECK: %[[F:.*]] = dspark.cast(%[[G]])
  // CHECK: dspark.binary(%[[F]], %{{.*}}) {kind = "mul"}
  %q = dspark.weight @q : tensor<100x4xi8>
  %s = dspark.weight @s : tensor<100x1xf32>
  %f = dspark.cast(%q) {to = 1 : i64} : (tensor<100x4xi8>) -> tensor<100x4xf32>
  %b = dspark.binary(%f, %s) {kind = "mul"} : (tensor<100x4xf32>, tensor<100x1xf32>) -> tensor<100x4xf32>
  %0 = dspark.gather(%b, %i) {axis = 0 : i64} : (tensor<100x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

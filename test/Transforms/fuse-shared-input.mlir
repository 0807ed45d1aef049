// RUN: %dspark-opt %s -dspark-fuse-shared-input -split-input-file | %FileCheck %s

// CHECK-LABEL: @queries_keys_values
func.func @queries_keys_values(%x: tensor<?x64xf32>, %r: tensor<?x16xf32>) -> (tensor<?x64xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK: %[[B:.*]] = dspark.constant
  // CHECK: %[[Q:.*]] = dspark.weight @q
  // CHECK: %[[K:.*]] = dspark.weight @k
  // CHECK: %[[V:.*]] = dspark.weight @v
  // CHECK: %[[Y:.*]]:3 = dspark.kernel "multi_matmul"(%arg0, %[[Q]], %{{[0-9]+}}, %[[K]], %[[B]], %[[V]], %{{[0-9]+}})
  // CHECK-SAME: arithmetic = "int8", packed = "q4_1", trans_b = 1
  // CHECK-NOT: dspark.matmul
  // CHECK: %[[SUM:.*]] = dspark.binary{{.*}}(%[[Y]]#1, %arg1)
  // CHECK: return %[[Y]]#0, %[[SUM]], %[[Y]]#2
  %b = dspark.constant dense<1.0> : tensor<16xf32>
  %wq = dspark.weight @q {layout = "q4_1"} : tensor<64x64xf32>
  %q = dspark.matmul(%x, %wq) {arithmetic = "int8", packed = "q4_1", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %wk = dspark.weight @k {layout = "q4_1"} : tensor<16x64xf32>
  %k = dspark.matmul(%x, %wk, %b) {arithmetic = "int8", packed = "q4_1", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<16x64xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  %sum = dspark.binary(%k, %r) {kind = "add"} : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %wv = dspark.weight @v {layout = "q4_1"} : tensor<16x64xf32>
  %v = dspark.matmul(%x, %wv) {arithmetic = "int8", packed = "q4_1", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<16x64xf32>) -> tensor<?x16xf32>
  return %q, %sum, %v : tensor<?x64xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// Another layout, another activation, a residual, another input: nothing is left to fuse.
// CHECK-LABEL: @unlike
func.func @unlike(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NOT: multi_matmul
  %w1 = dspark.weight @w1 {layout = "q4_1"} : tensor<64x64xf32>
  %w2 = dspark.weight @w2 {layout = "q6_k"} : tensor<64x64xf32>
  %n = dspark.none
  %0 = dspark.matmul(%x, %w1) {packed = "q4_1", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %1 = dspark.matmul(%x, %w2) {packed = "q6_k", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %2 = dspark.matmul(%x, %w1) {activation = "silu", packed = "q4_1", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %3 = dspark.matmul(%x, %w1, %n, %y) {packed = "q4_1", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<64x64xf32>, none, tensor<?x64xf32>) -> tensor<?x64xf32>
  %4 = dspark.matmul(%y, %w1) {packed = "q4_1", trans_b = 1 : i64} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  return %0, %1, %2, %3, %4 : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// f32 products read their rows where they lie: there is nothing to share.
// CHECK-LABEL: @dense
func.func @dense(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NOT: multi_matmul
  %w1 = dspark.weight @w1 {layout = "panel16"} : tensor<64x64xf32>
  %w2 = dspark.weight @w2 {layout = "panel16"} : tensor<64x64xf32>
  %0 = dspark.matmul(%x, %w1) {packed = "panel16"} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %1 = dspark.matmul(%x, %w2) {packed = "panel16"} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
}

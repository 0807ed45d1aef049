// RUN: %dspark-opt %s -dspark-fuse-attention -split-input-file | %FileCheck %s

// The softmax's result is also asked for.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%q: tensor<2x4x?x16xf32>, %k: tensor<2x4x16x?xf32>, %v: tensor<2x4x?x16xf32>) -> (tensor<2x4x?x16xf32>, tensor<2x4x?x?xf32>) {
  // CHECK-NOT: attention"
  %s = dspark.matmul(%q, %k) : (tensor<2x4x?x16xf32>, tensor<2x4x16x?xf32>) -> tensor<2x4x?x?xf32>
  %p = dspark.softmax(%s) {axis = -1 : i64} : (tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = dspark.matmul(%p, %v) : (tensor<2x4x?x?xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %y, %p : tensor<2x4x?x16xf32>, tensor<2x4x?x?xf32>
}

// -----

// Heads split from the last axis: no transposes remain. The number may divide.
// CHECK-LABEL: @split_heads
func.func @split_heads(%x: tensor<2x9x64xf32>, %y: tensor<2x9x64xf32>, %z: tensor<2x9x64xf32>, %m: tensor<2x1x1x9xf32>) -> tensor<2x9x64xf32> {
  // CHECK: %[[Y:.*]] = dspark.kernel "attention"(%arg0, %arg1, %arg2, %arg3) {hidden_rows = "nan", kv_num_heads = 4 : i64, q_num_heads = 4 : i64, scale = 2.500000e-01 : f64}
  // CHECK-SAME: -> tensor<2x9x64xf32>
  // CHECK-NOT: transpose
  // CHECK-NOT: softmax
  // CHECK: dspark.reshape(%[[Y]]
  %four = dspark.constant dense<4.0> : tensor<f32>
  %heads = dspark.constant dense<[2, 9, 4, 16]> : tensor<4xi64>
  %whole = dspark.constant dense<[2, 9, 64]> : tensor<3xi64>
  %0 = dspark.reshape(%x, %heads) : (tensor<2x9x64xf32>, tensor<4xi64>) -> tensor<2x9x4x16xf32>
  %q = dspark.transpose(%0) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x9x4x16xf32>) -> tensor<2x4x9x16xf32>
  %1 = dspark.reshape(%y, %heads) : (tensor<2x9x64xf32>, tensor<4xi64>) -> tensor<2x9x4x16xf32>
  %k = dspark.transpose(%1) {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x9x4x16xf32>) -> tensor<2x4x16x9xf32>
  %2 = dspark.reshape(%z, %heads) : (tensor<2x9x64xf32>, tensor<4xi64>) -> tensor<2x9x4x16xf32>
  %v = dspark.transpose(%2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x9x4x16xf32>) -> tensor<2x4x9x16xf32>
  %s = dspark.matmul(%q, %k) : (tensor<2x4x9x16xf32>, tensor<2x4x16x9xf32>) -> tensor<2x4x9x9xf32>
  %t = dspark.binary(%s, %four) {kind = "div"} : (tensor<2x4x9x9xf32>, tensor<f32>) -> tensor<2x4x9x9xf32>
  %u = dspark.binary(%t, %m) {kind = "add"} : (tensor<2x4x9x9xf32>, tensor<2x1x1x9xf32>) -> tensor<2x4x9x9xf32>
  %p = dspark.softmax(%u) {axis = 3 : i64} : (tensor<2x4x9x9xf32>) -> tensor<2x4x9x9xf32>
  %o = dspark.matmul(%p, %v) : (tensor<2x4x9x9xf32>, tensor<2x4x9x16xf32>) -> tensor<2x4x9x16xf32>
  %3 = dspark.transpose(%o) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x4x9x16xf32>) -> tensor<2x9x4x16xf32>
  %4 = dspark.reshape(%3, %whole) : (tensor<2x9x4x16xf32>, tensor<3xi64>) -> tensor<2x9x64xf32>
  return %4 : tensor<2x9x64xf32>
}

// -----

// Scale on both factors, where(c, S, number) for a mask, NaN made 0.
// CHECK-LABEL: @masked_by_where
func.func @masked_by_where(%q: tensor<1x4x9x16xf32>, %k: tensor<1x4x9x16xf32>, %v: tensor<1x4x9x8xf32>, %c: tensor<1x1x9x9xi1>) -> tensor<1x4x9x8xf32> {
  // CHECK: %[[M:.*]] = dspark.select(%arg3
  // CHECK: %[[Y:.*]] = dspark.kernel "attention"(%arg0, %arg1, %arg2, %[[M]]) {scale = 2.500000e-01 : f64}
  // CHECK-NEXT: return %[[Y]]
  %half = dspark.constant dense<0.5> : tensor<f32>
  %zero = dspark.constant dense<0.0> : tensor<f32>
  %never = dspark.constant dense<0xFF800000> : tensor<f32>
  %kt = dspark.transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x9x16xf32>) -> tensor<1x4x16x9xf32>
  %q2 = dspark.binary(%q, %half) {kind = "mul"} : (tensor<1x4x9x16xf32>, tensor<f32>) -> tensor<1x4x9x16xf32>
  %k2 = dspark.binary(%kt, %half) {kind = "mul"} : (tensor<1x4x16x9xf32>, tensor<f32>) -> tensor<1x4x16x9xf32>
  %s = dspark.matmul(%q2, %k2) : (tensor<1x4x9x16xf32>, tensor<1x4x16x9xf32>) -> tensor<1x4x9x9xf32>
  %w = dspark.select(%c, %s, %never) : (tensor<1x1x9x9xi1>, tensor<1x4x9x9xf32>, tensor<f32>) -> tensor<1x4x9x9xf32>
  %p = dspark.softmax(%w) {axis = -1 : i64} : (tensor<1x4x9x9xf32>) -> tensor<1x4x9x9xf32>
  %n = dspark.unary(%p) {kind = "isnan"} : (tensor<1x4x9x9xf32>) -> tensor<1x4x9x9xi1>
  %g = dspark.select(%n, %zero, %p) : (tensor<1x4x9x9xi1>, tensor<f32>, tensor<1x4x9x9xf32>) -> tensor<1x4x9x9xf32>
  %o = dspark.matmul(%g, %v) : (tensor<1x4x9x9xf32>, tensor<1x4x9x8xf32>) -> tensor<1x4x9x8xf32>
  return %o : tensor<1x4x9x8xf32>
}

// -----

// attention reads a mask with one column as one that ends there.
// CHECK-LABEL: @mask_of_one_column
func.func @mask_of_one_column(%q: tensor<1x4x9x16xf32>, %k: tensor<1x4x16x9xf32>, %v: tensor<1x4x9x8xf32>, %m: tensor<9x1xf32>) -> tensor<1x4x9x8xf32> {
  // CHECK-NOT: attention"
  %s = dspark.matmul(%q, %k) : (tensor<1x4x9x16xf32>, tensor<1x4x16x9xf32>) -> tensor<1x4x9x9xf32>
  %u = dspark.binary(%s, %m) {kind = "add"} : (tensor<1x4x9x9xf32>, tensor<9x1xf32>) -> tensor<1x4x9x9xf32>
  %p = dspark.softmax(%u) {axis = -1 : i64} : (tensor<1x4x9x9xf32>) -> tensor<1x4x9x9xf32>
  %o = dspark.matmul(%p, %v) : (tensor<1x4x9x9xf32>, tensor<1x4x9x8xf32>) -> tensor<1x4x9x8xf32>
  return %o : tensor<1x4x9x8xf32>
}

// -----

// Softmax over the queries is no attention.
// CHECK-LABEL: @other_axis
func.func @other_axis(%q: tensor<1x4x9x16xf32>, %k: tensor<1x4x9x16xf32>, %v: tensor<1x4x9x8xf32>) -> tensor<1x4x9x8xf32> {
  // CHECK-NOT: attention"
  %kt = dspark.transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x9x16xf32>) -> tensor<1x4x16x9xf32>
  %s = dspark.matmul(%q, %kt) : (tensor<1x4x9x16xf32>, tensor<1x4x16x9xf32>) -> tensor<1x4x9x9xf32>
  %p = dspark.softmax(%s) {axis = 2 : i64} : (tensor<1x4x9x9xf32>) -> tensor<1x4x9x9xf32>
  %o = dspark.matmul(%p, %v) : (tensor<1x4x9x9xf32>, tensor<1x4x9x8xf32>) -> tensor<1x4x9x8xf32>
  return %o : tensor<1x4x9x8xf32>
}

// -----

// Keys of one head for all: the batches differ.
// CHECK-LABEL: @shared_keys
func.func @shared_keys(%q: tensor<1x4x9x16xf32>, %k: tensor<1x1x9x16xf32>, %v: tensor<1x1x9x8xf32>) -> tensor<1x4x9x8xf32> {
  // CHECK-NOT: attention"
  %kt = dspark.transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x1x9x16xf32>) -> tensor<1x1x16x9xf32>
  %s = dspark.matmul(%q, %kt) : (tensor<1x4x9x16xf32>, tensor<1x1x16x9xf32>) -> tensor<1x4x9x9xf32>
  %p = dspark.softmax(%s) {axis = -1 : i64} : (tensor<1x4x9x9xf32>) -> tensor<1x4x9x9xf32>
  %o = dspark.matmul(%p, %v) : (tensor<1x4x9x9xf32>, tensor<1x1x9x8xf32>) -> tensor<1x4x9x8xf32>
  return %o : tensor<1x4x9x8xf32>
}

// -----

// A batch of heads in three dims.
// CHECK-LABEL: @three_dims
func.func @three_dims(%q: tensor<12x9x16xf32>, %k: tensor<12x9x16xf32>, %v: tensor<12x9x16xf32>) -> tensor<12x9x16xf32> {
  // CHECK: dspark.kernel "attention"(%arg0, %arg1, %arg2) {hidden_rows = "nan", kv_num_heads = 1 : i64, q_num_heads = 1 : i64, scale = 1.000000e+00 : f64}
  %kt = dspark.transpose(%k) {perm = array<i64: 0, 2, 1>} : (tensor<12x9x16xf32>) -> tensor<12x16x9xf32>
  %s = dspark.matmul(%q, %kt) : (tensor<12x9x16xf32>, tensor<12x16x9xf32>) -> tensor<12x9x9xf32>
  %p = dspark.softmax(%s) {axis = -1 : i64} : (tensor<12x9x9xf32>) -> tensor<12x9x9xf32>
  %o = dspark.matmul(%p, %v) : (tensor<12x9x9xf32>, tensor<12x9x16xf32>) -> tensor<12x9x16xf32>
  return %o : tensor<12x9x16xf32>
}

// -----

// A mask cut from a longer one: only the run can tell that its rows and columns are those of the scores.
// CHECK-LABEL: @mask_of_unproven_size
func.func @mask_of_unproven_size(%q: tensor<1x4x?x16xf32> {dspark.dims = ["1", "4", "s", "16"]}, %k: tensor<1x4x?x16xf32> {dspark.dims = ["1", "4", "s", "16"]}, %c: tensor<1x1x?x?xi1> {dspark.dims = ["1", "1", "a", "b"]}) -> tensor<1x4x?x16xf32> {
  // CHECK: %[[D:.*]] = dspark.dims ["s", "s"]
  // CHECK: %[[M:.*]] = dspark.expand(%{{.*}}, %[[D]])
  // CHECK: dspark.kernel "attention"(%arg0, %arg1, %arg1, %[[M]])
  %never = dspark.constant dense<-1.0e+30> : tensor<f32>
  %kt = dspark.transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x?x16xf32>) -> tensor<1x4x16x?xf32>
  %s = dspark.matmul(%q, %kt) : (tensor<1x4x?x16xf32>, tensor<1x4x16x?xf32>) -> tensor<1x4x?x?xf32>
  %w = dspark.select(%c, %s, %never) : (tensor<1x1x?x?xi1>, tensor<1x4x?x?xf32>, tensor<f32>) -> tensor<1x4x?x?xf32>
  %p = dspark.softmax(%w) {axis = -1 : i64} : (tensor<1x4x?x?xf32>) -> tensor<1x4x?x?xf32>
  %o = dspark.matmul(%p, %k) : (tensor<1x4x?x?xf32>, tensor<1x4x?x16xf32>) -> tensor<1x4x?x16xf32>
  return %o : tensor<1x4x?x16xf32>
}

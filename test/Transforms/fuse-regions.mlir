// RUN: %dspark-opt %s -dspark-fuse-regions -split-input-file | %FileCheck %s

// One operation alone has a kernel of its own.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: dspark.fused
  %0 = dspark.unary(%x) {kind = "exp"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @chain
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32> {{.*}}, %[[B:.*]]: tensor<8xf32>)
func.func @chain(%x: tensor<?x8xf32> {dspark.dims = ["n", "8"]}, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK: %[[Y:.*]] = dspark.fused(%[[X]], %[[B]]) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK: dspark.binary
  // CHECK: dspark.constant dense<2.000000e+00>
  // CHECK: dspark.binary
  // CHECK: dspark.unary
  // CHECK: dspark.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[Y]]
  %two = dspark.constant dense<2.0> : tensor<f32>
  %0 = dspark.binary(%x, %b) {kind = "add"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = dspark.binary(%0, %two) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = dspark.unary(%1) {kind = "tanh"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// A region's results are f32: conditions are computed in one only where all that need them are in it.
// CHECK-LABEL: @condition
func.func @condition(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xi1> {
  // CHECK-NOT: dspark.fused
  %0 = dspark.unary(%x) {kind = "abs"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dspark.compare(%0, %y) {kind = "gt"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  return %1 : tensor<4x8xi1>
}

// CHECK-LABEL: @condition_needed_twice
func.func @condition_needed_twice(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi1>) {
  // CHECK: %[[C:.*]] = dspark.compare
  // CHECK: %[[Y:.*]] = dspark.fused(%[[C]], %{{.*}}) : (tensor<4x8xi1>, tensor<4x8xf32>{{.*}}) -> tensor<4x8xf32>
  // CHECK: return %[[Y]], %[[C]]
  %0 = dspark.compare(%x, %y) {kind = "gt"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %1 = dspark.select(%0, %x, %y) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = dspark.unary(%1) {kind = "abs"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2, %0 : tensor<4x8xf32>, tensor<4x8xi1>
}

// -----

// A smaller value is not recomputed per element. One that is needed after the region is a second result of it.
// CHECK-LABEL: @boundaries
func.func @boundaries(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[E:.*]] = dspark.unary(%{{.*}}) {kind = "exp"} : (tensor<8xf32>)
  // CHECK: %[[Y:.*]]:2 = dspark.fused(%{{.*}}, %[[E]]) : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  // CHECK: return %[[Y]]#1, %[[Y]]#0
  %0 = dspark.unary(%b) {kind = "exp"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dspark.binary(%x, %0) {kind = "add"} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = dspark.unary(%1) {kind = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = dspark.binary(%2, %1) {kind = "mul"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A value that an operation in front of the last one needs is made outside.
// CHECK-LABEL: @needed_before
func.func @needed_before(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[S:.*]] = dspark.unary
  // CHECK: %[[P:.*]] = dspark.matmul(%[[S]],
  // CHECK: dspark.fused(%[[P]], %[[S]])
  %0 = dspark.unary(%x) {kind = "exp"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dspark.matmul(%0, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = dspark.unary(%0) {kind = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = dspark.binary(%1, %2) {kind = "add"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// Kinds without generated code keep their own kernel, so that their neighbours get native code.
// CHECK-LABEL: @kinds
func.func @kinds(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: dspark.unary(%{{.*}}) {kind = "sin"}
  // CHECK: dspark.binary(%{{.*}}, %{{.*}}) {kind = "pow"}
  // CHECK: dspark.fused
  // CHECK: {kind = "pow"}
  // CHECK: {kind = "tanh"}
  %two = dspark.constant dense<2.0> : tensor<f32>
  %0 = dspark.unary(%x) {kind = "sin"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dspark.binary(%0, %y) {kind = "pow"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = dspark.binary(%1, %two) {kind = "pow"} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = dspark.unary(%2) {kind = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// Scale and mask in front of a softmax: rows of the last axis, the mask broadcast over heads.
// CHECK-LABEL: @masked_softmax
func.func @masked_softmax(%x: tensor<?x12x?x?xf32> {dspark.dims = ["b", "12", "t", "t"]},
                          %m: tensor<?x1x1x?xf32> {dspark.dims = ["b", "1", "1", "t"]}) -> tensor<?x12x?x?xf32> {
  // CHECK: %[[Y:.*]] = dspark.fused(%{{.*}}, %{{.*}}) {row_axes = 1 : i64}
  // CHECK: dspark.binary
  // CHECK: dspark.binary
  // CHECK: dspark.softmax
  // CHECK: return %[[Y]]
  %c = dspark.constant dense<8.0> : tensor<f32>
  %0 = dspark.binary(%x, %c) {kind = "div"} : (tensor<?x12x?x?xf32>, tensor<f32>) -> tensor<?x12x?x?xf32>
  %1 = dspark.binary(%0, %m) {kind = "add"} : (tensor<?x12x?x?xf32>, tensor<?x1x1x?xf32>) -> tensor<?x12x?x?xf32>
  %2 = dspark.softmax(%1) {axis = -1 : i64} : (tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32>
  return %2 : tensor<?x12x?x?xf32>
}

// -----

// A lone reduction has a kernel of its own, and so have those of other axes than the last, of short and of huge rows.
// CHECK-LABEL: @stays
func.func @stays(%x: tensor<64x64xf32>, %s: tensor<64x4xf32>, %h: tensor<2x100000xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x4xf32>, tensor<2x1xf32>) {
  // CHECK-NOT: dspark.fused
  %0 = dspark.softmax(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dspark.unary(%x) {kind = "exp"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dspark.softmax(%1) {axis = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dspark.unary(%s) {kind = "exp"} : (tensor<64x4xf32>) -> tensor<64x4xf32>
  %4 = dspark.softmax(%3) : (tensor<64x4xf32>) -> tensor<64x4xf32>
  %5 = dspark.unary(%h) {kind = "exp"} : (tensor<2x100000xf32>) -> tensor<2x100000xf32>
  %6 = dspark.reduce(%5) {kind = "sum", axes = array<i64: 1>} : (tensor<2x100000xf32>) -> tensor<2x1xf32>
  return %0, %2, %4, %6 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x4xf32>, tensor<2x1xf32>
}

// -----

// l2 normalisation: the sum's axes become an attribute, numbers per row are computed inside.
// CHECK-LABEL: @normalise
func.func @normalise(%x: tensor<?x384xf32> {dspark.dims = ["n", "384"]}) -> tensor<?x384xf32> {
  // CHECK: %[[Y:.*]] = dspark.fused(%{{.*}}) {row_axes = 1 : i64} : (tensor<?x384xf32>) -> tensor<?x384xf32>
  // CHECK: dspark.reduce(%{{.*}}) {axes = array<i64: -1>, kind = "l2"} : (tensor<?x384xf32>) -> tensor<?x1xf32>
  // CHECK: dspark.clip
  // CHECK: {kind = "div"}
  // CHECK: return %[[Y]]
  %axes = dspark.constant dense<[1]> : tensor<1xi64>
  %e = dspark.constant dense<1.0e-12> : tensor<f32>
  %none = dspark.none
  %0 = dspark.reduce(%x, %axes) {kind = "l2"} : (tensor<?x384xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %1 = dspark.clip(%0, %e, %none) : (tensor<?x1xf32>, tensor<f32>, none) -> tensor<?x1xf32>
  %2 = dspark.binary(%x, %1) {kind = "div"} : (tensor<?x384xf32>, tensor<?x1xf32>) -> tensor<?x384xf32>
  return %2 : tensor<?x384xf32>
}

// -----

// The residual sum is a second result; the mean of each row, without its axis, is the only one of the last region.
// CHECK-LABEL: @norm_and_pool
func.func @norm_and_pool(%a: tensor<8x32x64xf32>, %b: tensor<8x32x64xf32>, %s: tensor<64xf32>)
    -> (tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8xf32>) {
  // CHECK: %[[P:.*]] = dspark.fused(%{{.*}}) {row_axes = 2 : i64} : (tensor<8x32x64xf32>) -> tensor<8xf32>
  // CHECK: dspark.unary(%{{.*}}) {kind = "abs"}
  // CHECK: dspark.reduce
  // CHECK: dspark.unary(%{{.*}}) {kind = "sqrt"} : (tensor<8xf32>)
  // CHECK: %[[Y:.*]]:2 = dspark.fused(%{{.*}}, %{{.*}}, %{{.*}}) {row_axes = 1 : i64}
  // CHECK: return %[[Y]]#0, %[[Y]]#1, %[[P]]
  %p = dspark.unary(%a) {kind = "abs"} : (tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  %q = dspark.reduce(%p) {kind = "mean", axes = array<i64: 1, 2>, keepdims = 0 : i64} : (tensor<8x32x64xf32>) -> tensor<8xf32>
  %r = dspark.unary(%q) {kind = "sqrt"} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = dspark.binary(%a, %b) {kind = "add"} : (tensor<8x32x64xf32>, tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  %1 = dspark.layer_norm(%0, %s) : (tensor<8x32x64xf32>, tensor<64xf32>) -> tensor<8x32x64xf32>
  return %1, %0, %r : tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8xf32>
}

// -----

// An operand that lacks one of several row axes would have a row that is neither whole nor one number.
// CHECK-LABEL: @partial_rows
func.func @partial_rows(%x: tensor<2x16x16xf32>, %b: tensor<16x1xf32>) -> tensor<2xf32> {
  // CHECK-NOT: dspark.fused
  %0 = dspark.binary(%x, %b) {kind = "add"} : (tensor<2x16x16xf32>, tensor<16x1xf32>) -> tensor<2x16x16xf32>
  %1 = dspark.reduce(%0) {kind = "max", axes = array<i64: 1, 2>, keepdims = 0 : i64} : (tensor<2x16x16xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

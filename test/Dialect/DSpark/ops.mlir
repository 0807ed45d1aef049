// Every operation prints as it parses.
// RUN: %dspark-opt %s | %dspark-opt | %FileCheck %s

// CHECK-LABEL: @sources
func.func @sources() -> (tensor<2xi64>, tensor<4x3x3x3xf32>, tensor<3xi64>, tensor<i64>) {
  // CHECK: dspark.constant dense<[1, -1]> : tensor<2xi64>
  %0 = dspark.constant dense<[1, -1]> : tensor<2xi64>
  // CHECK: dspark.weight @conv1.weight : tensor<4x3x3x3xf32>
  %1 = dspark.weight @conv1.weight : tensor<4x3x3x3xf32>
  // CHECK: dspark.dims ["batch", "2*seq + 1", "64"] : tensor<3xi64>
  %2 = dspark.dims ["batch", "2*seq + 1", "64"] : tensor<3xi64>
  // CHECK: dspark.dims ["floordiv(seq, 2)"] : tensor<i64>
  %3 = dspark.dims ["floordiv(seq, 2)"] : tensor<i64>
  return %0, %1, %2, %3 : tensor<2xi64>, tensor<4x3x3x3xf32>, tensor<3xi64>, tensor<i64>
}

// CHECK-LABEL: @elementwise
func.func @elementwise(%x: tensor<?x8xf32>, %y: tensor<8xf32>, %c: tensor<?x8xi1>) -> tensor<?x8xi32> {
  // CHECK: dspark.unary(%{{.*}}) {alpha = 1.000000e-01 : f64, kind = "leaky_relu"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = dspark.unary(%x) {kind = "leaky_relu", alpha = 0.1} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: dspark.binary(%{{.*}}, %{{.*}}) {kind = "add"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = dspark.binary(%0, %y) {kind = "add"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK: dspark.compare
  %2 = dspark.compare(%1, %y) {kind = "lt"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xi1>
  // CHECK: dspark.select
  %3 = dspark.select(%2, %0, %1) : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: %[[NONE:.*]] = dspark.none
  %n = dspark.none
  %h = dspark.constant dense<6.0> : tensor<f32>
  // CHECK: dspark.clip(%{{.*}}, %[[NONE]], %{{.*}}) : (tensor<?x8xf32>, none, tensor<f32>) -> tensor<?x8xf32>
  %4 = dspark.clip(%3, %n, %h) : (tensor<?x8xf32>, none, tensor<f32>) -> tensor<?x8xf32>
  // CHECK: dspark.cast(%{{.*}}) {to = 6 : i64} : (tensor<?x8xf32>) -> tensor<?x8xi32>
  %5 = dspark.cast(%4) {to = 6 : i64} : (tensor<?x8xf32>) -> tensor<?x8xi32>
  return %5 : tensor<?x8xi32>
}

// CHECK-LABEL: @contractions
func.func @contractions(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %a: tensor<?x64xf32>, %b: tensor<64x8xf32>,
                        %q: tensor<64x8xi8>, %s: tensor<f32>) {
  // CHECK: dspark.conv(%{{.*}}, %{{.*}}) {pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>}
  %0 = dspark.conv(%x, %w) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>}
     : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32>
  // CHECK: dspark.pool(%{{.*}}) {kernel_shape = array<i64: 2, 2>, kind = "max", strides = array<i64: 2, 2>}
  %1 = dspark.pool(%0) {kind = "max", kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>}
     : (tensor<1x4x4x4xf32>) -> tensor<1x4x2x2xf32>
  // CHECK: dspark.matmul(%{{.*}}, %{{.*}}) {activation = "relu"}
  %2 = dspark.matmul(%a, %b) {activation = "relu"} : (tensor<?x64xf32>, tensor<64x8xf32>) -> tensor<?x8xf32>
  // CHECK: dspark.matmul_dequant
  %3 = dspark.matmul_dequant(%a, %q, %s) : (tensor<?x64xf32>, tensor<64x8xi8>, tensor<f32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: @generic
func.func @generic(%x: tensor<4x8xf32>, %k: tensor<1xi64>) {
  // CHECK: dspark.kernel "top_k"(%{{.*}}, %{{.*}}) {axis = 1 : i64} : (tensor<4x8xf32>, tensor<1xi64>) -> (tensor<4x?xf32>, tensor<4x?xi64>)
  %v, %i = dspark.kernel "top_k"(%x, %k) {axis = 1 : i64}
         : (tensor<4x8xf32>, tensor<1xi64>) -> (tensor<4x?xf32>, tensor<4x?xi64>)
  return
}

// CHECK-LABEL: @regions
func.func @regions(%x: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<i1>, %t: tensor<i64>) {
  // CHECK: dspark.fused(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = dspark.fused(%x, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
  ^bb0(%f: tensor<4x8xf32>, %g: tensor<8xf32>):
    %1 = dspark.binary(%f, %g) {kind = "add"} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %2 = dspark.unary(%1) {kind = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    dspark.yield %2 : tensor<4x8xf32>
  }
  // CHECK: dspark.fused(%{{.*}}) {row_axes = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4xf32>) {
  %rows:3 = dspark.fused(%x) {row_axes = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4xf32>) {
  ^bb0(%f: tensor<4x8xf32>):
    %s = dspark.softmax(%f) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %m = dspark.reduce(%f) {kind = "mean", axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %l = dspark.reduce(%f) {kind = "max", axes = array<i64: 1>, keepdims = 0 : i64} : (tensor<4x8xf32>) -> tensor<4xf32>
    dspark.yield %s, %m, %l : tensor<4x8xf32>, tensor<4x1xf32>, tensor<4xf32>
  }
  // CHECK: dspark.region "cpu" "f32"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  %3 = dspark.region "cpu" "f32"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%r: tensor<4x8xf32>):
    dspark.yield %r : tensor<4x8xf32>
  }
  // CHECK: dspark.transfer %{{.*}} "cpu" to "gpu" on "gpu" : tensor<4x8xf32>
  %4 = dspark.transfer %3 "cpu" to "gpu" on "gpu" : tensor<4x8xf32>
  // CHECK: dspark.if %{{.*}} : tensor<i1> -> tensor<?x8xf32> {
  %5 = dspark.if %c : tensor<i1> -> tensor<?x8xf32> {
    dspark.yield %4 : tensor<4x8xf32>
  // CHECK: } else {
  } else {
    %6 = dspark.concat(%x, %x) {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    dspark.yield %6 : tensor<8x8xf32>
  }
  // CHECK: dspark.loop(%{{.*}}, %{{.*}}, %{{.*}}) {num_carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<?x4x8xf32>) {
  %7, %8 = dspark.loop(%t, %c, %x) {num_carried = 1 : i64}
         : (tensor<i64>, tensor<i1>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<?x4x8xf32>) {
  ^bb0(%iter: tensor<i64>, %cond: tensor<i1>, %carried: tensor<4x8xf32>):
    dspark.yield %cond, %carried, %carried : tensor<i1>, tensor<4x8xf32>, tensor<4x8xf32>
  }
  return
}

// CHECK-LABEL: @lists
// CHECK-SAME: !dspark.sequence<tensor<?xf32>>
// CHECK-SAME: !dspark.map<tensor<?x!dspark.string>, tensor<?xi64>>
func.func @lists(%s: !dspark.sequence<tensor<?xf32>>, %m: !dspark.map<tensor<?x!dspark.string>, tensor<?xi64>>,
                 %x: tensor<4xf32>, %c: tensor<i1>) -> !dspark.optional<tensor<?xf32>> {
  // CHECK: dspark.list "insert"(%{{.*}}, %{{.*}}) : (!dspark.sequence<tensor<?xf32>>, tensor<4xf32>) -> !dspark.sequence<tensor<?xf32>>
  %0 = dspark.list "insert"(%s, %x) : (!dspark.sequence<tensor<?xf32>>, tensor<4xf32>) -> !dspark.sequence<tensor<?xf32>>
  // CHECK: dspark.list "concat"(%{{.*}}) {axis = 0 : i64} : (!dspark.sequence<tensor<?xf32>>) -> tensor<?xf32>
  %1 = dspark.list "concat"(%0) {axis = 0 : i64} : (!dspark.sequence<tensor<?xf32>>) -> tensor<?xf32>
  // CHECK: dspark.if %{{.*}} : tensor<i1> -> !dspark.optional<tensor<?xf32>> {
  %2 = dspark.if %c : tensor<i1> -> !dspark.optional<tensor<?xf32>> {
    %3 = dspark.list "construct"(%x) : (tensor<4xf32>) -> !dspark.optional<tensor<4xf32>>
    dspark.yield %3 : !dspark.optional<tensor<4xf32>>
  } else {
    %4 = dspark.list "construct"() : () -> !dspark.optional<tensor<?xf32>>
    dspark.yield %4 : !dspark.optional<tensor<?xf32>>
  }
  return %2 : !dspark.optional<tensor<?xf32>>
}

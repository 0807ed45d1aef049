// Phases run one after another on text, as dspark-compile runs them.
// RUN: %dspark-opt %s -dspark-phase-canonicalize -dspark-phase-fuse -dspark-phase-layout -dspark-phase-regions -dspark-phase-pack -dspark-phase-schedule | %FileCheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<?x3x8x8xf32> {dspark.dims = ["batch", "3", "8", "8"], dspark.name = "x"})
    -> (tensor<?x?xf32> {dspark.name = "y"}) {
  // CHECK: plan.launch "transpose"(%arg0) {perm = array<i64: 0, 2, 3, 1>}
  // CHECK: plan.constant @w.scaled.panel16 layout "panel16"
  // CHECK: plan.launch "conv"({{.*}}) {activation = "relu", layout = "nhwc", packed = "panel16"}
  // CHECK: plan.launch "transpose"
  // CHECK: plan.launch "reshape"
  %w = dspark.weight @w : tensor<4x3x3x3xf32>
  %p = dspark.weight @p : tensor<4xf32>
  %0 = dspark.conv(%x, %w) : (tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<?x4x6x6xf32>
  %1 = dspark.batch_norm(%0, %p, %p, %p, %p) : (tensor<?x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4x6x6xf32>
  %2 = dspark.unary(%1) {kind = "relu"} : (tensor<?x4x6x6xf32>) -> tensor<?x4x6x6xf32>
  %s = dspark.shape(%2) : (tensor<?x4x6x6xf32>) -> tensor<4xi64>
  %i = dspark.constant dense<0> : tensor<1xi64>
  %b = dspark.gather(%s, %i) {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64>
  %m = dspark.constant dense<-1> : tensor<1xi64>
  %t = dspark.concat(%b, %m) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %3 = dspark.reshape(%2, %t) : (tensor<?x4x6x6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %3 : tensor<?x?xf32>
}

// Every operation prints as it parses.
// RUN: %dspark-opt %s | %dspark-opt | %FileCheck %s

// CHECK-LABEL: @steps
func.func @steps(%x: tensor<?x4xf32>, %c: tensor<i1>, %t: tensor<i64>) -> tensor<?x4xf32> {
  // CHECK: plan.constant @w layout "panel16" : tensor<4x4xf32>
  %w = plan.constant @w layout "panel16" : tensor<4x4xf32>
  // CHECK: plan.literal dense<1> : tensor<1xi64>
  %l = plan.literal dense<1> : tensor<1xi64>
  // CHECK: plan.dims ["batch", "4"] : tensor<2xi64>
  %d = plan.dims ["batch", "4"] : tensor<2xi64>
  // CHECK: plan.absent
  %n = plan.absent
  // CHECK: plan.launch "matmul"(%{{.*}}, %{{.*}}) {packed = "panel16"} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %0 = plan.launch "matmul"(%x, %w) {packed = "panel16"} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  // CHECK: plan.launch "unary"(%{{.*}}) {kind = "relu"} in_place 0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = plan.launch "unary"(%0) {kind = "relu"} in_place 0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: plan.free %{{.*}} : tensor<?x4xf32>
  plan.free %0 : tensor<?x4xf32>
  // CHECK: plan.transfer %{{.*}} "cpu" to "gpu" : tensor<?x4xf32>
  %2 = plan.transfer %1 "cpu" to "gpu" : tensor<?x4xf32>
  // CHECK: plan.if %{{.*}} : tensor<i1> -> tensor<?x4xf32> {
  %3 = plan.if %c : tensor<i1> -> tensor<?x4xf32> {
    plan.yield %2 : tensor<?x4xf32>
  } else {
    plan.yield %x : tensor<?x4xf32>
  }
  // CHECK: plan.loop(%{{.*}}, %{{.*}}, %{{.*}}) {num_carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<?x4xf32>) -> tensor<?x4xf32> {
  %4 = plan.loop(%t, %c, %3) {num_carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<?x4xf32>) -> tensor<?x4xf32> {
  ^bb0(%i: tensor<i64>, %k: tensor<i1>, %s: tensor<?x4xf32>):
    plan.yield %k, %s : tensor<i1>, tensor<?x4xf32>
  }
  return %4 : tensor<?x4xf32>
}

// RUN: %dspark-opt %s -dspark-fold-shapes -split-input-file | %FileCheck %s

// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<4xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  // CHECK: dspark.reshape(%{{.*}}, %arg1)
  %0 = dspark.reshape(%x, %s) : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: @shape_gather_concat_reshape
func.func @shape_gather_concat_reshape(%x: tensor<?x?x12x64xf32> {dspark.dims = ["batch", "seq", "12", "64"]}) -> tensor<?x?x?xf32> {
  // CHECK: %[[DIMS:.*]] = dspark.dims ["batch", "seq", "768"] : tensor<3xi64>
  // CHECK-NEXT: %[[R:.*]] = dspark.reshape(%arg0, %[[DIMS]]) : (tensor<?x?x12x64xf32>, tensor<3xi64>) -> tensor<?x?x768xf32>
  // CHECK-NEXT: return %[[R]]
  %s = dspark.shape(%x) : (tensor<?x?x12x64xf32>) -> tensor<4xi64>
  %i = dspark.constant dense<[0, 1]> : tensor<2xi64>
  %bs = dspark.gather(%s, %i) {axis = 0 : i64} : (tensor<4xi64>, tensor<2xi64>) -> tensor<2xi64>
  %c = dspark.constant dense<768> : tensor<1xi64>
  %t = dspark.concat(%bs, %c) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %0 = dspark.reshape(%x, %t) : (tensor<?x?x12x64xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// CHECK-LABEL: @arithmetic
func.func @arithmetic(%x: tensor<?xf32> {dspark.dims = ["seq"]}) -> tensor<1xi64> {
  // CHECK: %[[DIMS:.*]] = dspark.dims ["(seq*2) + 1"] : tensor<1xi64>
  // CHECK: return %[[DIMS]]
  %s = dspark.shape(%x) : (tensor<?xf32>) -> tensor<1xi64>
  %two = dspark.constant dense<2> : tensor<i64>
  %one = dspark.constant dense<1> : tensor<i64>
  %0 = dspark.binary(%s, %two) {kind = "mul"} : (tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %1 = dspark.binary(%0, %one) {kind = "add"} : (tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  return %1 : tensor<1xi64>
}

// -----

// A branch on a known rank is taken at compile time, and the result's type follows.
// CHECK-LABEL: @known_branch
func.func @known_branch(%x: tensor<1x?xf32> {dspark.dims = ["1", "n"]}) -> tensor<*xf32> {
  // CHECK-NOT: dspark.if
  // CHECK: %[[S:.*]] = dspark.squeeze(%arg0{{.*}}) : {{.*}} -> tensor<?xf32>
  // CHECK: return %[[S]] : tensor<?xf32>
  %s = dspark.shape(%x) : (tensor<1x?xf32>) -> tensor<2xi64>
  %zero = dspark.constant dense<0> : tensor<i64>
  %one = dspark.constant dense<1> : tensor<i64>
  %d = dspark.gather(%s, %zero) {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %c = dspark.compare(%d, %one) {kind = "eq"} : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %0 = dspark.if %c : tensor<i1> -> tensor<*xf32> {
    %axes = dspark.constant dense<0> : tensor<1xi64>
    %q = dspark.squeeze(%x, %axes) : (tensor<1x?xf32>, tensor<1xi64>) -> tensor<?xf32>
    dspark.yield %q : tensor<?xf32>
  } else {
    dspark.yield %x : tensor<1x?xf32>
  }
  return %0 : tensor<*xf32>
}

// -----

// A dim that only a run can tell is no expression over the inputs' symbols.
// CHECK-LABEL: @data_dependent
func.func @data_dependent(%x: tensor<?xf32> {dspark.dims = ["n"]}) -> tensor<1xi64> {
  // CHECK: dspark.shape
  %i = dspark.kernel "nonzero"(%x) : (tensor<?xf32>) -> tensor<1x?xi64>
  %s = dspark.shape(%i) {start = 1 : i64} : (tensor<1x?xi64>) -> tensor<1xi64>
  return %s : tensor<1xi64>
}

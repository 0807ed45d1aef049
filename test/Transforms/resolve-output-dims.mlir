// RUN: %dspark-opt %s -dspark-resolve-output-dims | %FileCheck %s

// CHECK-LABEL: @outputs
// CHECK-SAME: -> (tensor<?x?xf32> {dspark.dims = ["batch", "seq + 2"]}, tensor<1x?xi64> {dspark.dims = ["1", "?"]})
func.func @outputs(%x: tensor<?x?xf32> {dspark.dims = ["batch", "seq"]}, %v: tensor<?xf32> {dspark.dims = ["n"]})
    -> (tensor<?x?xf32>, tensor<1x?xi64>) {
  %p = dspark.constant dense<[0, 1, 0, 1]> : tensor<4xi64>
  %0 = dspark.pad(%x, %p) : (tensor<?x?xf32>, tensor<4xi64>) -> tensor<?x?xf32>
  %1 = dspark.kernel "nonzero"(%v) : (tensor<?xf32>) -> tensor<1x?xi64>
  return %0, %1 : tensor<?x?xf32>, tensor<1x?xi64>
}

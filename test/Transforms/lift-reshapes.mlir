// RUN: %dspark-opt %s -dspark-lift-reshapes -canonicalize -split-input-file | %FileCheck %s

// Here the reshape regroups the rows.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<2x6x8xf32>) -> tensor<3x4x5xf32> {
  // CHECK: dspark.reshape
  // CHECK: dspark.matmul
  // CHECK: dspark.reshape
  %w = dspark.weight @w : tensor<8x5xf32>
  %flat = dspark.constant dense<[12, 8]> : tensor<2xi64>
  %back = dspark.constant dense<[3, 4, 5]> : tensor<3xi64>
  %0 = dspark.reshape(%x, %flat) : (tensor<2x6x8xf32>, tensor<2xi64>) -> tensor<12x8xf32>
  %1 = dspark.matmul(%0, %w) : (tensor<12x8xf32>, tensor<8x5xf32>) -> tensor<12x5xf32>
  %2 = dspark.reshape(%1, %back) : (tensor<12x5xf32>, tensor<3xi64>) -> tensor<3x4x5xf32>
  return %2 : tensor<3x4x5xf32>
}

// -----

// CHECK-LABEL: @projection
func.func @projection(%x: tensor<2x6x8xf32>) -> tensor<2x6x5xf32> {
  // CHECK: %[[Y:.*]] = dspark.matmul(%arg0, %{{.*}}, %{{.*}}) : (tensor<2x6x8xf32>, tensor<8x5xf32>, tensor<5xf32>) -> tensor<2x6x5xf32>
  // CHECK-NEXT: return %[[Y]]
  %w = dspark.weight @w : tensor<8x5xf32>
  %b = dspark.weight @b : tensor<5xf32>
  %flat = dspark.constant dense<[-1, 8]> : tensor<2xi64>
  %back = dspark.constant dense<[2, 6, 5]> : tensor<3xi64>
  %0 = dspark.reshape(%x, %flat) : (tensor<2x6x8xf32>, tensor<2xi64>) -> tensor<12x8xf32>
  %1 = dspark.matmul(%0, %w, %b) : (tensor<12x8xf32>, tensor<8x5xf32>, tensor<5xf32>) -> tensor<12x5xf32>
  %2 = dspark.reshape(%1, %back) : (tensor<12x5xf32>, tensor<3xi64>) -> tensor<2x6x5xf32>
  return %2 : tensor<2x6x5xf32>
}

// -----

// The flat rows have another use, so both forms would be computed.
// CHECK-LABEL: @used_twice
func.func @used_twice(%x: tensor<2x6x8xf32>) -> (tensor<12x5xf32>, tensor<2x6x5xf32>) {
  // CHECK: dspark.reshape
  // CHECK: dspark.matmul
  // CHECK: dspark.reshape
  %w = dspark.weight @w : tensor<8x5xf32>
  %flat = dspark.constant dense<[12, 8]> : tensor<2xi64>
  %back = dspark.constant dense<[2, 6, 5]> : tensor<3xi64>
  %0 = dspark.reshape(%x, %flat) : (tensor<2x6x8xf32>, tensor<2xi64>) -> tensor<12x8xf32>
  %1 = dspark.matmul(%0, %w) : (tensor<12x8xf32>, tensor<8x5xf32>) -> tensor<12x5xf32>
  %2 = dspark.reshape(%1, %back) : (tensor<12x5xf32>, tensor<3xi64>) -> tensor<2x6x5xf32>
  return %1, %2 : tensor<12x5xf32>, tensor<2x6x5xf32>
}

// RUN: %dspark-opt %s -dspark-raise-activations -split-input-file | %FileCheck %s

// CHECK-LABEL: @do_nothing
func.func @do_nothing(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: dspark.binary
  %0 = dspark.binary(%x, %x) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @hard_swish
func.func @hard_swish(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %[[Y:.*]] = dspark.unary(%arg0) {kind = "hard_swish"}
  // CHECK-NEXT: return %[[Y]]
  %zero = dspark.constant dense<0.0> : tensor<f32>
  %three = dspark.constant dense<3.0> : tensor<f32>
  %six = dspark.constant dense<6.0> : tensor<f32>
  %0 = dspark.binary(%x, %three) {kind = "add"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %1 = dspark.clip(%0, %zero, %six) : (tensor<?x8xf32>, tensor<f32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = dspark.binary(%x, %1) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = dspark.binary(%2, %six) {kind = "div"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// Another number is another function.
// CHECK-LABEL: @not_hard_swish
func.func @not_hard_swish(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NOT: hard_swish
  %zero = dspark.constant dense<0.0> : tensor<f32>
  %three = dspark.constant dense<3.0> : tensor<f32>
  %six = dspark.constant dense<6.5> : tensor<f32>
  %0 = dspark.binary(%x, %three) {kind = "add"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %1 = dspark.clip(%0, %zero, %six) : (tensor<?x8xf32>, tensor<f32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = dspark.binary(%x, %1) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = dspark.binary(%2, %six) {kind = "div"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @hard_sigmoid
func.func @hard_sigmoid(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: dspark.unary(%arg0) {alpha = 0.16666666666666666 : f64, beta = 5.000000e-01 : f64, kind = "hard_sigmoid"}
  %zero = dspark.constant dense<0.0> : tensor<f32>
  %three = dspark.constant dense<3.0> : tensor<f32>
  %six = dspark.constant dense<6.0> : tensor<f32>
  %0 = dspark.binary(%x, %three) {kind = "add"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %1 = dspark.clip(%0, %zero, %six) : (tensor<?x8xf32>, tensor<f32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = dspark.binary(%1, %six) {kind = "div"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @silu
func.func @silu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: dspark.unary(%arg0) {kind = "silu"}
  %0 = dspark.unary(%x) {kind = "sigmoid"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = dspark.binary(%x, %0) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @gelu
func.func @gelu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %[[Y:.*]] = dspark.unary(%arg0) {kind = "gelu"}
  // CHECK-NEXT: return %[[Y]]
  %root = dspark.constant dense<1.41421354> : tensor<f32>
  %one = dspark.constant dense<1.0> : tensor<f32>
  %half = dspark.constant dense<0.5> : tensor<f32>
  %0 = dspark.binary(%x, %root) {kind = "div"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %1 = dspark.unary(%0) {kind = "erf"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = dspark.binary(%1, %one) {kind = "add"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %3 = dspark.binary(%x, %2) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = dspark.binary(%3, %half) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @layer_norm
func.func @layer_norm(%x: tensor<?x16x64xf32> {dspark.dims = ["n", "16", "64"]}, %g: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<?x16x64xf32> {
  // CHECK: %[[Y:.*]] = dspark.layer_norm(%arg0, %arg1, %arg2) {axis = -1 : i64, epsilon = {{.*}}, kind = "layer"}
  // CHECK-NEXT: return %[[Y]]
  %two = dspark.constant dense<2.0> : tensor<f32>
  %eps = dspark.constant dense<1.0e-5> : tensor<f32>
  %0 = dspark.reduce(%x) {kind = "mean", axes = array<i64: -1>} : (tensor<?x16x64xf32>) -> tensor<?x16x1xf32>
  %1 = dspark.binary(%x, %0) {kind = "sub"} : (tensor<?x16x64xf32>, tensor<?x16x1xf32>) -> tensor<?x16x64xf32>
  %2 = dspark.binary(%1, %two) {kind = "pow"} : (tensor<?x16x64xf32>, tensor<f32>) -> tensor<?x16x64xf32>
  %3 = dspark.reduce(%2) {kind = "mean", axes = array<i64: -1>} : (tensor<?x16x64xf32>) -> tensor<?x16x1xf32>
  %4 = dspark.binary(%3, %eps) {kind = "add"} : (tensor<?x16x1xf32>, tensor<f32>) -> tensor<?x16x1xf32>
  %5 = dspark.unary(%4) {kind = "sqrt"} : (tensor<?x16x1xf32>) -> tensor<?x16x1xf32>
  %6 = dspark.binary(%1, %5) {kind = "div"} : (tensor<?x16x64xf32>, tensor<?x16x1xf32>) -> tensor<?x16x64xf32>
  %7 = dspark.binary(%6, %g) {kind = "mul"} : (tensor<?x16x64xf32>, tensor<64xf32>) -> tensor<?x16x64xf32>
  %8 = dspark.binary(%7, %b) {kind = "add"} : (tensor<?x16x64xf32>, tensor<64xf32>) -> tensor<?x16x64xf32>
  return %8 : tensor<?x16x64xf32>
}

// -----

// GPT-2's approximation, its cube a power or a product.
// CHECK-LABEL: @gelu_tanh
func.func @gelu_tanh(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK: %[[A:.*]] = dspark.unary(%arg0) {kind = "gelu_tanh"}
  // CHECK: %[[B:.*]] = dspark.unary(%arg0) {kind = "gelu_tanh"}
  // CHECK: return %[[A]], %[[B]]
  %three = dspark.constant dense<3.0> : tensor<f32>
  %cubic = dspark.constant dense<0.044715> : tensor<f32>
  %scale = dspark.constant dense<0.797884583> : tensor<f32>
  %half = dspark.constant dense<0.5> : tensor<f32>
  %one = dspark.constant dense<1.0> : tensor<f32>
  %0 = dspark.binary(%x, %three) {kind = "pow"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %1 = dspark.binary(%0, %cubic) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = dspark.binary(%x, %1) {kind = "add"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = dspark.binary(%2, %scale) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %4 = dspark.unary(%3) {kind = "tanh"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %5 = dspark.binary(%4, %one) {kind = "add"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %6 = dspark.binary(%x, %half) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %7 = dspark.binary(%6, %5) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %8 = dspark.binary(%x, %x) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %9 = dspark.binary(%8, %x) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %10 = dspark.binary(%9, %cubic) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %11 = dspark.binary(%10, %x) {kind = "add"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %12 = dspark.binary(%11, %scale) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %13 = dspark.unary(%12) {kind = "tanh"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %14 = dspark.binary(%one, %13) {kind = "add"} : (tensor<f32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %15 = dspark.binary(%x, %14) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %16 = dspark.binary(%15, %half) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %7, %16 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A square instead of the cube.
// CHECK-LABEL: @not_gelu_tanh
func.func @not_gelu_tanh(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NOT: gelu
  %two = dspark.constant dense<2.0> : tensor<f32>
  %cubic = dspark.constant dense<0.044715> : tensor<f32>
  %scale = dspark.constant dense<0.797884583> : tensor<f32>
  %half = dspark.constant dense<0.5> : tensor<f32>
  %one = dspark.constant dense<1.0> : tensor<f32>
  %0 = dspark.binary(%x, %two) {kind = "pow"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %1 = dspark.binary(%0, %cubic) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %2 = dspark.binary(%x, %1) {kind = "add"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = dspark.binary(%2, %scale) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %4 = dspark.unary(%3) {kind = "tanh"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %5 = dspark.binary(%4, %one) {kind = "add"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %6 = dspark.binary(%x, %half) {kind = "mul"} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %7 = dspark.binary(%6, %5) {kind = "mul"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %7 : tensor<?x8xf32>
}

// Every diagnostic of the dialect. The label before each case is the constraint in PlanOps.td.
// RUN: %dspark-opt %s -split-input-file -verify-diagnostics

// constant_c1
func.func @constant_c1() {
  // expected-error @+1 {{expected a static type, found 'tensor<?xf32>'}}
  %0 = plan.constant @w : tensor<?xf32>
  return
}

// -----

// launch_c1
func.func @launch_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{the operator catalogue has no 'frobnicate'}}
  %0 = plan.launch "frobnicate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// launch_c2: no such operand
func.func @launch_c2_operand(%x: tensor<4xf32>) {
  // expected-error @+1 {{in_place expected an operand number below 1, found 1}}
  %0 = plan.launch "unary"(%x) {kind = "relu"} in_place 1 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// launch_c2: another size
func.func @launch_c2_size(%x: tensor<4xf32>) {
  // expected-error @+1 {{in_place expected operand and result of one size}}
  %0 = plan.launch "cast"(%x) {to = 11 : i64} in_place 0 : (tensor<4xf32>) -> tensor<4xf64>
  return
}

// -----

// transfer_c1
func.func @transfer_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected two devices, found 'gpu' twice}}
  %0 = plan.transfer %x "gpu" to "gpu" : tensor<4xf32>
  return
}

// -----

// free_c1
func.func @free_c1(%x: tensor<4xf32>) {
  %0 = plan.launch "unary"(%x) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{a freed value is used later by plan.launch}}
  plan.free %0 : tensor<4xf32>
  %1 = plan.launch "unary"(%0) {kind = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// if_c1
func.func @if_c1(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{expected 1 yielded values, found 0}}
  %0 = plan.if %c : tensor<i1> -> tensor<4xf32> {
    plan.yield %x : tensor<4xf32>
  } else {
    plan.yield
  }
  return
}

// -----

// loop_c1
func.func @loop_c1(%t: tensor<i64>, %c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{expected 2 yielded values, found 1}}
  %0 = plan.loop(%t, %c, %x) : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %k: tensor<i1>, %s: tensor<4xf32>):
    plan.yield %k : tensor<i1>
  }
  return
}

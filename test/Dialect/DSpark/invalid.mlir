// Every diagnostic of the dialect. The label before each case is the constraint in DSparkOps.td.
// RUN: %dspark-opt %s -split-input-file -verify-diagnostics

// constant_c2
func.func @constant_c2() {
  // expected-error @+1 {{expected at most 8192 bytes, found 12288; use dspark.weight}}
  %0 = dspark.constant dense<1.0> : tensor<3072xf32>
  return
}

// -----

// weight_c1
func.func @weight_c1() {
  // expected-error @+1 {{expected a static type, found 'tensor<?xf32>'}}
  %0 = dspark.weight @w : tensor<?xf32>
  return
}

// -----

// weight_c2
func.func @weight_c2() {
  // expected-error @+1 {{unknown layout 'tiles'}}
  %0 = dspark.weight @w {layout = "tiles"} : tensor<4xf32>
  return
}

// -----

// dims_c1
func.func @dims_c1() {
  // expected-error @+1 {{expected tensor<2xi64>, found 'tensor<3xi64>'}}
  %0 = dspark.dims ["a", "b"] : tensor<3xi64>
  return
}

// -----

// dims_c2
func.func @dims_c2() {
  // expected-error @+1 {{cannot parse dim expression '2*'}}
  %0 = dspark.dims ["2*"] : tensor<1xi64>
  return
}

// -----

// Operands that the shape function refuses.
func.func @operands(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+1 {{'dspark.matmul' op}}
  %0 = dspark.matmul(%a, %b) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

// A result type that the shape function contradicts.
func.func @result(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @+1 {{result 0 expected f32[2, 5] from its operands, found 'tensor<2x6xf32>'}}
  %0 = dspark.matmul(%a, %b) : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x6xf32>
  return
}

// -----

// kernel_c1: not in the catalogue
func.func @kernel_c1_unknown(%a: tensor<2xf32>) {
  // expected-error @+1 {{the operator catalogue has no 'frobnicate'}}
  %0 = dspark.kernel "frobnicate"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// kernel_c1: has a typed operation
func.func @kernel_c1_typed(%a: tensor<2xf32>) {
  // expected-error @+1 {{expected dspark.identity, the typed operation of that name}}
  %0 = dspark.kernel "identity"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// fused_c1
func.func @fused_c1(%a: tensor<2xf32>) {
  // expected-error @+1 {{block argument 0 expected 'tensor<2xf32>', found 'tensor<3xf32>'}}
  %0 = dspark.fused(%a) : (tensor<2xf32>) -> tensor<3xf32> {
  ^bb0(%x: tensor<3xf32>):
    dspark.yield %x : tensor<3xf32>
  }
  return
}

// -----

// fused_c2
func.func @fused_c2(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{the body holds elementwise operations and reductions of rows only, found dspark.transpose}}
  %0 = dspark.fused(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32> {
  ^bb0(%x: tensor<2x3xf32>):
    %y = dspark.transpose(%x) {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    dspark.yield %y : tensor<3x2xf32>
  }
  return
}

// -----

// fused_c3
func.func @fused_c3(%a: tensor<2xf32>) {
  // expected-error @+1 {{expected 1 yielded values, found 0}}
  %0 = dspark.fused(%a) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%x: tensor<2xf32>):
    dspark.yield
  }
  return
}

// -----

// fused_c4
func.func @fused_c4(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{result 0 expected the operands' broadcast shape}}
  %0 = dspark.fused(%a, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%x: tensor<2x3xf32>, %y: tensor<3xf32>):
    dspark.yield %y : tensor<3xf32>
  }
  return
}

// -----

// fused_c4: rows of more axes than there are
func.func @fused_c4_axes(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{expected row_axes from 0 to 2, found 3}}
  %0 = dspark.fused(%a) {row_axes = 3 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%x: tensor<2x3xf32>):
    dspark.yield %x : tensor<2x3xf32>
  }
  return
}

// -----

// fused_c5
func.func @fused_c5(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{expected reductions over the last row_axes = 1 axes, found dspark.reduce over 2}}
  %0 = dspark.fused(%a) {row_axes = 1 : i64} : (tensor<2x3xf32>) -> tensor<1x1xf32> {
  ^bb0(%x: tensor<2x3xf32>):
    %y = dspark.reduce(%x) {kind = "sum", axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<1x1xf32>
    dspark.yield %y : tensor<1x1xf32>
  }
  return
}

// -----

// fused_c5: a softmax is a reduction too
func.func @fused_c5_softmax(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{expected reductions over the last row_axes = 0 axes, found dspark.softmax over 1}}
  %0 = dspark.fused(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%x: tensor<2x3xf32>):
    %y = dspark.softmax(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    dspark.yield %y : tensor<2x3xf32>
  }
  return
}

// -----

// region_c1
func.func @region_c1(%a: tensor<2xf32>) {
  // expected-error @+1 {{expected 1 block arguments, found 0}}
  %0 = dspark.region "cpu" "f32"(%a) : (tensor<2xf32>) -> tensor<2xf32> {
    %c = dspark.constant dense<1.0> : tensor<2xf32>
    dspark.yield %c : tensor<2xf32>
  }
  return
}

// -----

// region_c2
func.func @region_c2(%a: tensor<2xf32>) {
  // expected-error @+1 {{yielded value 0 expected 'tensor<3xf32>', found 'tensor<2xf32>'}}
  %0 = dspark.region "cpu" "f32"(%a) : (tensor<2xf32>) -> tensor<3xf32> {
  ^bb0(%x: tensor<2xf32>):
    dspark.yield %x : tensor<2xf32>
  }
  return
}

// -----

// transfer_c1
func.func @transfer_c1(%a: tensor<2xf32>) {
  // expected-error @+1 {{expected two devices, found 'cpu' twice}}
  %0 = dspark.transfer %a "cpu" to "cpu" on "cpu" : tensor<2xf32>
  return
}

// -----

// transfer_c2
func.func @transfer_c2(%a: tensor<2xf32>) {
  // expected-error @+1 {{expected executor 'cpu' or 'gpu', found 'npu'}}
  %0 = dspark.transfer %a "cpu" to "gpu" on "npu" : tensor<2xf32>
  return
}

// -----

// if_c1
func.func @if_c1(%c: tensor<2xi1>, %a: tensor<2xf32>) {
  // expected-error @+1 {{expected one i1 element as condition, found 'tensor<2xi1>'}}
  %0 = dspark.if %c : tensor<2xi1> -> tensor<2xf32> {
    dspark.yield %a : tensor<2xf32>
  } else {
    dspark.yield %a : tensor<2xf32>
  }
  return
}

// -----

// if_c2: number of values
func.func @if_c2_count(%c: tensor<i1>, %a: tensor<2xf32>) {
  // expected-error @+1 {{expected 1 yielded values, found 0}}
  %0 = dspark.if %c : tensor<i1> -> tensor<2xf32> {
    dspark.yield %a : tensor<2xf32>
  } else {
    dspark.yield
  }
  return
}

// -----

// if_c2: element types
func.func @if_c2_type(%c: tensor<i1>, %a: tensor<2xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{yielded value 0 expected elements of 'f32', found 'tensor<2xi64>'}}
  %0 = dspark.if %c : tensor<i1> -> tensor<2xf32> {
    dspark.yield %a : tensor<2xf32>
  } else {
    dspark.yield %b : tensor<2xi64>
  }
  return
}

// -----

// loop_c1
func.func @loop_c1(%t: tensor<i64>, %c: tensor<i1>, %a: tensor<2xf32>) {
  // expected-error @+1 {{expected 3 block arguments, found 2}}
  %0 = dspark.loop(%t, %c, %a) {num_carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %x: tensor<i1>):
    dspark.yield %x, %a : tensor<i1>, tensor<2xf32>
  }
  return
}

// -----

// loop_c2
func.func @loop_c2(%t: tensor<i64>, %c: tensor<i1>, %a: tensor<2xf32>) {
  // expected-error @+1 {{expected 2 yielded values, found 1}}
  %0 = dspark.loop(%t, %c, %a) {num_carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %x: tensor<i1>, %y: tensor<2xf32>):
    dspark.yield %x : tensor<i1>
  }
  return
}

// -----

// loop_c3
func.func @loop_c3(%t: tensor<i64>, %c: tensor<i1>, %a: tensor<2xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{expected at most 1 carried values, found 2}}
  %0 = dspark.loop(%t, %c, %a, %b) {num_carried = 2 : i64}
     : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %x: tensor<i1>, %y: tensor<2xf32>, %z: tensor<2xf32>):
    dspark.yield %x, %y : tensor<i1>, tensor<2xf32>
  }
  return
}

// -----

// loop: too few operands
func.func @loop_operands(%t: tensor<i64>) {
  // expected-error @+1 {{expected trip count, condition and 1 carried operands, found 1}}
  %0 = dspark.loop(%t) {num_carried = 1 : i64} : (tensor<i64>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %x: tensor<i1>, %y: tensor<2xf32>):
    dspark.yield %x, %y : tensor<i1>, tensor<2xf32>
  }
  return
}

// -----

// list_c1
func.func @list_c1(%s: !dspark.sequence<tensor<2xf32>>) {
  // expected-error @+1 {{has no operation 'shuffle' on lists}}
  %0 = dspark.list "shuffle"(%s) : (!dspark.sequence<tensor<2xf32>>) -> !dspark.sequence<tensor<2xf32>>
  return
}

// -----

// list_c2
func.func @list_c2(%s: !dspark.sequence<tensor<2xf32>>) {
  // expected-error @+1 {{expected 2 to 3 operands, found 1}}
  %0 = dspark.list "insert"(%s) : (!dspark.sequence<tensor<2xf32>>) -> !dspark.sequence<tensor<2xf32>>
  return
}

// -----

// if_c2, of lists
func.func @if_lists(%c: tensor<i1>, %s: !dspark.sequence<tensor<2xf32>>, %x: tensor<2xf32>) {
  // expected-error @+1 {{yielded value 0 expected a value of '!dspark.sequence<tensor<2xf32>>', found 'tensor<2xf32>'}}
  %0 = dspark.if %c : tensor<i1> -> !dspark.sequence<tensor<2xf32>> {
    dspark.yield %s : !dspark.sequence<tensor<2xf32>>
  } else {
    dspark.yield %x : tensor<2xf32>
  }
  return
}

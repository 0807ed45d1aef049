// RUN: %dspark-opt %s -dspark-pack-weights -split-input-file | %FileCheck %s

// Operands that are not constant have no layout to change.
// CHECK-LABEL: @do_nothing
func.func @do_nothing(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>) -> tensor<?x4xf32> {
  // CHECK: dspark.matmul(%arg0, %arg1) :
  %0 = dspark.matmul(%a, %b) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Two products with one weight share its packed form.
// CHECK-LABEL: @matmul
func.func @matmul(%a: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: dspark.weight @w.panel16 {layout = "panel16"} : tensor<8x4xf32>
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {packed = "panel16"}
  // CHECK: dspark.weight @w.panel16 {layout = "panel16"} : tensor<8x4xf32>
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {packed = "panel16"}
  %w = dspark.weight @w : tensor<8x4xf32>
  %0 = dspark.matmul(%a, %w) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = dspark.matmul(%a, %w) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @convolutions
func.func @convolutions(%x: tensor<1x8x8x4xf32>) -> tensor<1x4x4x4xf32> {
  // CHECK: dspark.weight @d.depthwise {layout = "depthwise"}
  // CHECK: dspark.conv({{.*}}) {group = 4 : i64, layout = "nhwc", packed = "depthwise"}
  // CHECK: dspark.weight @w.panel16 {layout = "panel16"}
  // CHECK: dspark.conv({{.*}}) {layout = "nhwc", packed = "panel16"}
  %d = dspark.weight @d : tensor<4x1x3x3xf32>
  %w = dspark.weight @w : tensor<4x4x3x3xf32>
  %0 = dspark.conv(%x, %d) {group = 4 : i64, layout = "nhwc"} : (tensor<1x8x8x4xf32>, tensor<4x1x3x3xf32>) -> tensor<1x6x6x4xf32>
  %1 = dspark.conv(%0, %w) {layout = "nhwc"} : (tensor<1x6x6x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %1 : tensor<1x4x4x4xf32>
}

// -----

// Small constants are packed like weights.
// CHECK-LABEL: @constant
func.func @constant(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK-NOT: dspark.constant
  // CHECK: dspark.weight @constant.panel16 {layout = "panel16"} : tensor<2x2xf32>
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {packed = "panel16"}
  %w = dspark.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = dspark.matmul(%a, %w) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

// Bytes: 2 columns of 3 terms are one panel of 4 terms and 16 columns, and 16 sums.
// CHECK-LABEL: @bytes
func.func @bytes(%a: tensor<?x3xui8>, %x: tensor<1x8x8x4xui8>, %s: tensor<f32>, %z: tensor<ui8>, %wz: tensor<i8>) -> (tensor<?x2xf32>, tensor<1x6x6x4xf32>) {
  // CHECK: dspark.weight @b.panel16k4 {layout = "panel16k4"} : tensor<3x2xi8>
  // CHECK: dspark.qlinear_matmul({{.*}}) {packed = "panel16k4"}
  // CHECK: dspark.weight @d.depthwise {layout = "depthwise"} : tensor<4x1x3x3xi8>
  // CHECK: dspark.qlinear_conv({{.*}}) {group = 4 : i64, layout = "nhwc", packed = "depthwise"}
  %b = dspark.weight @b : tensor<3x2xi8>
  %d = dspark.weight @d : tensor<4x1x3x3xi8>
  %0 = dspark.qlinear_matmul(%a, %s, %z, %b, %s, %wz) : (tensor<?x3xui8>, tensor<f32>, tensor<ui8>, tensor<3x2xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2xf32>
  %1 = dspark.qlinear_conv(%x, %s, %z, %d, %s, %wz) {group = 4 : i64, layout = "nhwc"}
     : (tensor<1x8x8x4xui8>, tensor<f32>, tensor<ui8>, tensor<4x1x3x3xi8>, tensor<f32>, tensor<i8>) -> tensor<1x6x6x4xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<1x6x6x4xf32>
}

// -----

// 16-bit weights keep their type; rows that are transposed are not read by those kernels.
// CHECK-LABEL: @halves
func.func @halves(%a: tensor<8x8xbf16>) -> tensor<8x4xbf16> {
  // CHECK: dspark.weight @w.bf16 {layout = "bf16"} : tensor<8x4xbf16>
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {packed = "bf16"}
  // CHECK: dspark.matmul(%arg0, %{{.*}}) {trans_a = 1 : i64}
  %w = dspark.weight @w : tensor<8x4xbf16>
  %v = dspark.weight @v : tensor<8x4xbf16>
  %0 = dspark.matmul(%a, %w) : (tensor<8x8xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
  %1 = dspark.matmul(%a, %v) {trans_a = 1 : i64} : (tensor<8x8xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
  %2 = dspark.binary(%0, %1) {kind = "add"} : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
  return %2 : tensor<8x4xbf16>
}

// -----

// Both matrices of a recurrent layer, or none.
// CHECK-LABEL: @recurrent
func.func @recurrent(%x: tensor<?x1x5xf32>, %h: tensor<1x8x2xf32>) -> (tensor<?x1x1x2xf32>, tensor<?x1x1x2xf32>) {
  // CHECK: %[[W:.*]] = dspark.weight @w.panel16 {layout = "panel16"} : tensor<1x8x5xf32>
  // CHECK: %[[R:.*]] = dspark.weight @r.panel16 {layout = "panel16"} : tensor<1x8x2xf32>
  // CHECK: dspark.lstm(%arg0, %[[W]], %[[R]]) {packed = "panel16"}
  // CHECK: dspark.lstm(%arg0, %{{.*}}, %arg1) :
  %w = dspark.weight @w : tensor<1x8x5xf32>
  %r = dspark.weight @r : tensor<1x8x2xf32>
  %0 = dspark.lstm(%x, %w, %r) : (tensor<?x1x5xf32>, tensor<1x8x5xf32>, tensor<1x8x2xf32>) -> tensor<?x1x1x2xf32>
  %1 = dspark.lstm(%x, %w, %h) : (tensor<?x1x5xf32>, tensor<1x8x5xf32>, tensor<1x8x2xf32>) -> tensor<?x1x1x2xf32>
  return %0, %1 : tensor<?x1x1x2xf32>, tensor<?x1x1x2xf32>
}

// -----

// CHECK-LABEL: @recurrent_bytes
func.func @recurrent_bytes(%x: tensor<?x1x5xf32>, %s: tensor<1xf32>, %z: tensor<1xi8>) -> tensor<?x1x1x2xf32> {
  // CHECK: dspark.weight @w.panel16k4 {layout = "panel16k4"} : tensor<1x5x8xi8>
  // CHECK: dspark.weight @r.panel16k4 {layout = "panel16k4"} : tensor<1x2x8xi8>
  // CHECK: dspark.kernel "dynamic_quantize_lstm"({{.*}}) {packed = "panel16k4"}
  %none = dspark.none
  %w = dspark.weight @w : tensor<1x5x8xi8>
  %r = dspark.weight @r : tensor<1x2x8xi8>
  %0 = dspark.kernel "dynamic_quantize_lstm"(%x, %w, %r, %none, %none, %none, %none, %none, %s, %z, %s, %z)
     : (tensor<?x1x5xf32>, tensor<1x5x8xi8>, tensor<1x2x8xi8>, none, none, none, none, none, tensor<1xf32>, tensor<1xi8>, tensor<1xf32>, tensor<1xi8>) -> tensor<?x1x1x2xf32>
  return %0 : tensor<?x1x1x2xf32>
}

#include "tools/dspark-bench/Sweep.h"
#include "kernels/common/bf16_speed.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace dspark {
namespace {

std::string format(const char *pattern, auto... values) {
  char text[320];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

using Cases = std::vector<KernelCase>;
using Shape = std::array<int, 2>; // K, N

void addProducts(Cases &cases) {
  constexpr Shape kShapes[] = {{384, 384}, {384, 1536}, {1536, 384}, {120, 480}, {96, 24}, {768, 768}};
  for (int m : {1, 3, 8, 40, 128, 320})
    for (auto [k, n] : kShapes) {
      cases.push_back({format("matmul packed=panel16 | f32[%d,%d] *f32[%d,%d] *f32[%d]", m, k, k, n, n)});
      if (k < 100 || (k == 384 && n == 384 && m == 3))
        continue;
      cases.push_back(
          {format("matmul_dequant packed=panel16 | f32[%d,%d] *i8[%d,%d] *f32[%d]", m, k, k, n, n)});
      for (const char *layout : {"int8_grow_f32", "int8_g32_f32", "bf16", "f16"})
        for (const char *arithmetic : {"", " arithmetic=int8"})
          if (m != 3 && m != 40 && (*arithmetic == 0 || layout[0] == 'i'))
            cases.push_back({format("matmul trans_b=1 packed=%s%s | f32[%d,%d] *f32[%d,%d]", layout,
                                    arithmetic, m, k, n, k)});
      if (multipliesBf16() && m != 3)
        cases.push_back(
            {format("matmul trans_b=1 packed=bf16 arithmetic=bf16 | f32[%d,%d] *f32[%d,%d]", m, k, n, k)});
    }
  for (int m : {1, 16, 64, 128})
    cases.push_back({format("matmul | f32[4,%d,64] f32[4,64,%d]", m, m)});
  for (int m : {1, 8, 128})
    cases.push_back(
        {format("qlinear_matmul packed=panel16k4 | u8[%d,384] f32[] u8[] *i8[384,1536] *f32[] *i8[] "
                "f32[] u8[]",
                m)});
}

void addConvolutions(Cases &cases) {
  struct Conv {
    int height, width, in, out, kernel, stride;
  };
  constexpr Conv kDense[] = {
      {60, 80, 64, 64, 1, 1},  {15, 20, 512, 256, 1, 1}, {80, 80, 16, 32, 1, 1},  {160, 160, 8, 16, 1, 1},
      {24, 160, 32, 64, 1, 1}, {1, 1, 128, 512, 1, 1},   {3, 80, 240, 480, 1, 1}, {40, 40, 48, 24, 1, 1},
      {28, 28, 64, 64, 3, 1},  {14, 14, 256, 256, 3, 1}, {60, 60, 24, 24, 3, 1},  {40, 40, 96, 24, 3, 1},
      {80, 80, 12, 12, 3, 1},  {160, 160, 3, 16, 3, 2},  {48, 160, 3, 32, 3, 2},  {40, 40, 64, 128, 3, 2},
      {1, 1, 16, 64, 1, 1},    {1, 1, 64, 16, 1, 1},     {1, 1, 480, 120, 1, 1},  {1, 1, 24, 8, 1, 1},
      {1, 200, 1, 32, 1, 1},   {40, 20, 12, 48, 1, 1},   {20, 20, 96, 96, 5, 1},  {80, 80, 16, 8, 5, 1},
      {40, 60, 8, 1, 3, 1},    {30, 30, 96, 96, 9, 1},
  };
  for (const char *layout : {"panel16", "bf16"})
    for (const Conv &c : kDense)
      if (layout[0] == 'p' || multipliesBf16())
        cases.push_back(
            {format("conv packed=%s layout=nhwc strides=%d,%d pads=%d,%d,%d,%d activation=relu | "
                    "f32[1,%d,%d,%d] *f32[%d,%d,%d,%d] *f32[%d]",
                    layout, c.stride, c.stride, c.kernel / 2, c.kernel / 2, c.kernel / 2, c.kernel / 2,
                    c.height, c.width, c.in, c.out, c.in, c.kernel, c.kernel, c.out)});
  for (auto [size, channels, kernel, stride] : {std::array{80, 32, 3, 1},
                                                {80, 48, 3, 2},
                                                {40, 96, 5, 1},
                                                {20, 240, 5, 1},
                                                {10, 480, 5, 1},
                                                {12, 120, 3, 1},
                                                {160, 16, 3, 2},
                                                {40, 192, 5, 2},
                                                {10, 192, 5, 2},
                                                {40, 96, 7, 1},
                                                {10, 96, 7, 1},
                                                {6, 480, 3, 1},
                                                {80, 24, 5, 1},
                                                {20, 96, 3, 2}})
    cases.push_back({format("conv packed=depthwise layout=nhwc strides=%d,%d pads=%d,%d,%d,%d group=%d | "
                            "f32[1,%d,%d,%d] *f32[%d,1,%d,%d] *f32[%d]",
                            stride, stride, kernel / 2, kernel / 2, kernel / 2, kernel / 2, channels, size,
                            size, channels, channels, kernel, kernel, channels)});
  for (auto [size, in, channels, kernel, stride] : {std::array{56, 24, 144, 3, 1},
                                                    {28, 32, 192, 3, 2},
                                                    {14, 96, 576, 3, 1},
                                                    {40, 24, 96, 5, 1},
                                                    {80, 16, 64, 3, 2},
                                                    {20, 96, 192, 5, 2}})
    for (const char *layout : {"panel16", "bf16"})
      if (layout[0] == 'p' || multipliesBf16())
        cases.push_back(
            {format("expand_depthwise packed=depthwise expand_packed=%s layout=nhwc strides=%d,%d "
                    "pads=%d,%d,%d,%d group=%d activation=relu expand_activation=relu | "
                    "f32[1,%d,%d,%d] *f32[%d,%d,1,1] *f32[%d] *f32[%d,1,%d,%d] *f32[%d]",
                    layout, stride, stride, kernel / 2, kernel / 2, kernel / 2, kernel / 2, channels, size,
                    size, in, channels, in, channels, channels, kernel, kernel, channels)});
  for (auto [size, in, out] : {std::array{40, 24, 24}, {80, 24, 1}, {20, 64, 16}})
    cases.push_back({format("conv_transpose packed=panel16 layout=nhwc strides=2,2 | f32[1,%d,%d,%d] "
                            "*f32[%d,%d,2,2] *f32[%d]",
                            size, size, in, in, out, out)});
}

// On bytes: scales and zero points of one element but for weights' scales.
void addByteCases(Cases &cases) {
  for (auto [size, in, out, kernel, group] : {std::array{56, 64, 64, 1, 1},
                                              {28, 256, 128, 1, 1},
                                              {7, 512, 2048, 1, 1},
                                              {14, 1024, 256, 1, 1},
                                              {80, 16, 32, 1, 1},
                                              {28, 64, 64, 3, 1},
                                              {14, 256, 256, 3, 1},
                                              {40, 24, 48, 3, 1},
                                              {80, 32, 32, 3, 32},
                                              {40, 96, 96, 5, 96},
                                              {10, 480, 480, 3, 480}})
    cases.push_back(
        {format("qlinear_conv packed=%s layout=nhwc group=%d pads=%d,%d,%d,%d | u8[1,%d,%d,%d] f32[] "
                "u8[] *i8[%d,%d,%d,%d] *f32[%d] *i8[] f32[] u8[]",
                group > 1 ? "depthwise" : "panel16k4", group, kernel / 2, kernel / 2, kernel / 2, kernel / 2,
                size, size, in, out, in / group, kernel, kernel, out)});
  for (auto [rows, size] : {std::array{1, 384}, {128, 384}, {512, 768}, {3136, 256}}) {
    cases.push_back({format("quantize_linear | f32[%d,%d] f32[] u8[]", rows, size)});
    cases.push_back({format("dequantize_linear | u8[%d,%d] f32[] u8[]", rows, size)});
    cases.push_back({format("lookup | u8[%d,%d] *u8[256]", rows, size)});
    cases.push_back({format("qlinear_binary kind=add | u8[%d,%d] f32[] u8[] u8[%d,%d] f32[] u8[] f32[] u8[]",
                            rows, size, rows, size)});
  }
}

void addRows(Cases &cases) {
  for (auto [rows, size] : {std::array{1000, 2}, {8000, 4}, {20000, 7}, {4000, 16}, {2000, 49}})
    cases.push_back({format("reduce kind=mean axes=1 | f32[%d,%d]", rows, size)});
  for (auto [rows, size] : {std::array{1, 384}, {16, 384}, {128, 384}, {40, 120}, {512, 768}, {2000, 64}}) {
    cases.push_back({format("layer_norm | f32[%d,%d] *f32[%d] *f32[%d]", rows, size, size, size)});
    cases.push_back({format("softmax | f32[%d,%d]", rows, size)});
    cases.push_back({format("reduce kind=mean axes=1 | f32[%d,%d]", rows, size)});
    cases.push_back({format("reduce kind=mean axes=0 | f32[%d,%d]", rows, size)});
    cases.push_back({format("binary kind=add | f32[%d,%d] f32[%d,%d]", rows, size, rows, size)});
    cases.push_back({format("binary kind=mul | f32[%d,%d] f32[%d]", rows, size, size)});
    cases.push_back({format("transpose perm=1,0 | f32[%d,%d]", rows, size)});
    cases.push_back({format("transpose perm=1,0,2 | f32[%d,4,%d]", rows, size)});
    if (rows > 1)
      cases.push_back({format("transpose perm=0,2,1 | f32[3,%d,%d]", rows, size)});
    cases.push_back({format("concat axis=0 | f32[%d,%d] f32[%d,%d]", rows, size, rows, size)});
    cases.push_back({format("binary kind=mul | f32[%d,%d] f32[%d,1]", rows, size, rows)});
    cases.push_back({format("reduce kind=mean axes=1 | f32[4,%d,%d]", rows, size)});
    cases.push_back({format("cast to=1 | i64[%d,%d]", rows, size)});
    cases.push_back({format("concat axis=1 | f32[%d,%d] f32[%d,%d]", rows, size, rows, size)});
    cases.push_back({format("gather | *f32[2000,%d] i64[%d]", size, rows)});
    for (const char *kind : {"erf", "sigmoid", "relu", "tanh", "exp", "sqrt", "hard_swish"})
      if (rows > 1)
        cases.push_back({format("unary kind=%s | f32[%d,%d]", kind, rows, size)});
  }
  for (auto [heads, length] : {std::array{12, 1}, {12, 16}, {12, 64}, {12, 128}, {4, 200}})
    for (const char *arithmetic : {"", " arithmetic=bf16"})
      if (!*arithmetic || (multipliesBf16() && length > 1))
        cases.push_back({format("attention%s | f32[1,%d,%d,32] f32[1,%d,%d,32] f32[1,%d,%d,32]", arithmetic,
                                heads, length, heads, length, heads, length)});
  for (int length : {16, 64, 128})
    cases.push_back(
        {format("attention q_num_heads=12 kv_num_heads=12 | f32[1,%d,384] f32[1,%d,384] f32[1,%d,384] "
                "f32[1,1,1,%d]",
                length, length, length, length)});
  for (auto [size, channels] : {std::array{20, 96}, {80, 24}, {7, 480}}) {
    cases.push_back({format("pool kind=max layout=nhwc kernel_shape=2,2 strides=2,2 | f32[1,%d,%d,%d]", size,
                            size, channels)});
    cases.push_back({format("pool kind=average layout=nhwc kernel_shape=3,3 strides=1,1 | f32[1,%d,%d,%d]",
                            size, size, channels)});
    for (int batch : {1, 4}) {
      cases.push_back({format("reduce kind=mean axes=1,2 | f32[%d,%d,%d,%d]", batch, size, size, channels)});
      cases.push_back({format("binary kind=mul | f32[%d,%d,%d,%d] f32[%d,1,1,%d]", batch, size, size,
                              channels, batch, channels)});
      cases.push_back({format("transpose perm=1,0,2,3 | f32[1,%d,%d,%d]", batch, size * size, channels)});
    }
  }
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double leastSeconds(CaseRunner &runner, double seconds) {
  double least = 1e300;
  runner.run();
  for (double end = now() + seconds, start = now(); start < end || least == 1e300;) {
    runner.run();
    double stop = now();
    least = std::min(least, stop - start);
    start = stop;
  }
  return least;
}

} // namespace

std::vector<KernelCase> sweepCases() {
  Cases cases;
  addProducts(cases);
  addConvolutions(cases);
  addByteCases(cases);
  addRows(cases);
  return cases;
}

StatusOr<SweepResult> runSweep(const std::vector<KernelCase> &cases, Isa isa, int passes,
                               double secondsPerTurn) {
  std::vector<std::vector<double>> times(cases.size());
  SweepResult result;
  result.samples.resize(cases.size());
  for (int pass = 0; pass < passes; ++pass)
    for (size_t i = 0; i < cases.size(); ++i) {
      DSPARK_ASSIGN_OR_RETURN(auto runner, CaseRunner::create(cases[i], isa));
      times[i].push_back(leastSeconds(*runner, secondsPerTurn));
      if (pass == passes - 1)
        result.samples[i] = runner->sample(*std::min_element(times[i].begin(), times[i].end()));
    }
  std::vector<double> spreads;
  for (std::vector<double> &t : times) {
    std::sort(t.begin(), t.end());
    spreads.push_back(t.size() > 1 ? t[1] / t[0] - 1 : 0);
  }
  std::sort(spreads.begin(), spreads.end());
  if (!spreads.empty()) {
    result.spread = spreads[spreads.size() / 2];
    result.p90Spread = spreads[size_t(double(spreads.size() - 1) * 0.9)];
  }
  return result;
}

} // namespace dspark

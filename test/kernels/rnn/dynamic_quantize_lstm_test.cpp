// dynamic_quantize_lstm: every row against the definition. What becomes of a hidden state when it is rounded
// to a byte may hang on its last bit, so each step is computed from the kernel's own state before it: then
// bytes and sums are the very same, and what is left are the roundings of f32.
#include "kernels/quant/byte_scale.h"
#include "runtime/format/PackedLayout.h"
#include "test/kernels/byte_tensor.h"

namespace dspark {
namespace {

using namespace test;

struct Case {
  int64_t steps, batch, input, hidden;
  const char *direction = "forward";
  DType weights = DType::I8;
  bool perColumn = false, zeros = false, bias = false, lengths = false, initial = false, peephole = false;

  int64_t dirs() const { return std::string_view(direction) == "bidirectional" ? 2 : 1; }
  int64_t width() const { return 4 * hidden; }
};

std::vector<Tensor> operandsOf(const Case &k, std::mt19937 &rng) {
  int64_t D = k.dirs(), W = k.width();
  std::vector<Tensor> in(12);
  in[0] = uniform({k.steps, k.batch, k.input}, rng);
  auto bytes = [&](std::vector<int64_t> dims) {
    return filled<uint8_t>(k.weights, std::move(dims), [&] { return uint8_t(rng()); });
  };
  in[1] = bytes({D, k.input, W});
  in[2] = bytes({D, k.hidden, W});
  if (k.bias)
    in[3] = uniform({D, 2 * W}, rng);
  if (k.lengths)
    in[4] = filled<int32_t>(DType::I32, {k.batch}, [&] { return int32_t(rng() % uint32_t(k.steps + 1)); });
  for (size_t i : {5, 6})
    if (k.initial)
      in[i] = uniform({D, k.batch, k.hidden}, rng);
  if (k.peephole)
    in[7] = uniform({D, 3 * k.hidden}, rng);
  std::vector<int64_t> parameters = k.perColumn ? std::vector{D, W} : std::vector{D};
  for (size_t i : {8, 10}) {
    // Weighted sums of the order of 1.
    double depth = double(std::max<int64_t>(i == 8 ? k.input : k.hidden, 1));
    std::uniform_real_distribution<float> scale(0.5f, 1.5f);
    in[i] = filled<float>(DType::F32, parameters, [&] { return scale(rng) / 100 / std::sqrt(depth); });
    if (k.zeros)
      in[i + 1] = bytes(parameters);
  }
  return in;
}

// One row of the left side: what its floats are after rounding, in units of the scale.
struct RoundedRow {
  std::vector<int64_t> values;
  double scale;

  RoundedRow(const float *x, int64_t n, ByteScale s) : scale(s.scale) {
    for (int64_t i = 0; i < n; ++i) {
      float value = std::nearbyint(x[i] / s.scale) + float(s.zero);
      values.push_back(int64_t(std::clamp(value, 0.0f, 255.0f)) - s.zero);
    }
  }
  // Times column j of matrix `at` of direction d.
  double dot(const std::vector<Tensor> &in, const Case &k, size_t at, int64_t d, int64_t j) const {
    const Tensor &scales = in[at == 1 ? 8 : 10], &zeros = in[at == 1 ? 9 : 11];
    int64_t n = int64_t(values.size()), parameter = k.perColumn ? d * k.width() + j : d, sum = 0;
    int64_t zero = zeros.type == DType::Undefined ? 0 : byteAt(zeros, parameter);
    for (int64_t i = 0; i < n; ++i)
      sum += values[size_t(i)] * (byteAt(in[at], (d * n + i) * k.width() + j) - zero);
    return double(sum) * scale * double(scales.as<float>()[parameter]);
  }
};

ByteScale scaleOf(const float *x, int64_t n) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return ByteScale::of(low, high);
}

// One row of the batch in one direction: each step from the state `y` says there was before it.
void checkRow(const Case &k, const std::vector<Tensor> &in, const std::vector<Tensor> &out, int64_t d,
              int64_t b, const std::string &what) {
  int64_t H = k.hidden, D = k.dirs(), state = (d * k.batch + b) * H;
  int64_t length = k.lengths ? in[4].as<int32_t>()[b] : k.steps;
  bool backwards = d == 1 || std::string_view(k.direction) == "reverse";
  auto real = [&](size_t at, int64_t i) {
    return in[at].type == DType::Undefined ? 0.0 : double(in[at].as<float>()[i]);
  };
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<float> inputs;
  for (int64_t t = 0; t < length; ++t) {
    const float *x = in[0].as<float>() + (t * k.batch + b) * k.input;
    inputs.insert(inputs.end(), x, x + k.input);
  }
  ByteScale inputScale = scaleOf(inputs.data(), int64_t(inputs.size()));
  std::vector<float> h(static_cast<size_t>(H));
  std::vector<double> c(static_cast<size_t>(H));
  for (int64_t i = 0; i < H; ++i) {
    h[size_t(i)] = float(real(5, state + i));
    c[size_t(i)] = real(6, state + i);
  }
  for (int64_t s = 0; s < k.steps; ++s) {
    int64_t t = s < length && backwards ? length - 1 - s : s;
    const float *y = out[0].as<float>() + ((t * D + d) * k.batch + b) * H;
    if (s >= length) {
      for (int64_t i = 0; i < H; ++i)
        ASSERT_EQ(y[i], 0) << what << " beyond the end";
      continue;
    }
    RoundedRow x(inputs.data() + t * k.input, k.input, inputScale), before(h.data(), H, scaleOf(h.data(), H));
    for (int64_t i = 0; i < H; ++i) {
      double largest = 1;
      auto gate = [&](int64_t g) {
        int64_t j = g * H + i, bias = d * 2 * k.width() + j;
        double fromX = x.dot(in, k, 1, d, j), fromH = before.dot(in, k, 2, d, j);
        largest = std::max({largest, std::fabs(fromX), std::fabs(fromH)});
        return fromX + fromH + real(3, bias) + real(3, bias + k.width());
      };
      auto peephole = [&](int64_t which) { return real(7, (d * 3 + which) * H + i); };
      double &cell = c[size_t(i)];
      double inGate = sigmoid(gate(0) + peephole(0) * cell), forget = sigmoid(gate(2) + peephole(2) * cell);
      cell = forget * cell + inGate * std::tanh(gate(3));
      double want = sigmoid(gate(1) + peephole(1) * cell) * std::tanh(cell);
      // A gate's argument is a sum of six terms that are products of roundings; the functions are within 4
      // ulp and no steeper than 1. The cell's errors add up over the steps.
      ASSERT_NEAR(double(y[i]), want, 24 * double(s + 1) * largest / (1 << 24))
          << what << " step " << s << " unit " << i;
    }
    std::copy(y, y + H, h.begin());
  }
  for (int64_t i = 0; i < H; ++i) {
    ASSERT_EQ(out[1].as<float>()[state + i], h[size_t(i)]) << what << " y_h";
    ASSERT_NEAR(double(out[2].as<float>()[state + i]), c[size_t(i)], 1e-5 * double(k.steps + 1))
        << what << " y_c";
  }
}

AttrList attrsOf(const Case &k, bool packed) {
  AttrList attrs;
  attrs.set("direction", k.direction).set("hidden_size", k.hidden).set("packed", packed ? "panel16k4" : "");
  return attrs;
}

std::vector<Tensor> packedOperands(const Case &k, const std::vector<Tensor> &in) {
  std::vector<Tensor> operands = in;
  for (size_t i : {1, 2}) {
    MatrixWeight weight{k.dirs(), i == 1 ? k.input : k.hidden, k.width(), false, 1, k.weights == DType::I8};
    operands[i].bytes.assign(*packedBytes("panel16k4", weight), std::byte(0xff));
    EXPECT_TRUE(packWeight("panel16k4", weight, in[i].bytes, operands[i].bytes).isOk());
  }
  return operands;
}

void check(const Case &k) {
  std::mt19937 rng(11);
  std::vector<Tensor> in = operandsOf(k, rng), packed = packedOperands(k, in);
  for (const Kernel *row : rowsOf("dynamic_quantize_lstm")) {
    std::vector<Tensor> out = runRow(*row, in, attrsOf(k, false), 3),
                        other = runRow(*row, packed, attrsOf(k, true), 3);
    ASSERT_EQ(out.size(), 3u);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(out[i].bytes, other[i].bytes) << row->name << " packed, result " << i;
    for (int64_t d = 0; d < k.dirs(); ++d)
      for (int64_t b = 0; b < k.batch; ++b)
        checkRow(k, in, out, d, b, std::string(row->name) + " " + k.direction);
  }
}

TEST(DynamicQuantizeLstm, Forms) {
  for (const char *direction : {"forward", "reverse", "bidirectional"})
    for (DType type : {DType::I8, DType::U8}) {
      check({.steps = 3, .batch = 1, .input = 300, .hidden = 40, .direction = direction, .weights = type});
      check({.steps = 5,
             .batch = 3,
             .input = 7,
             .hidden = 5,
             .direction = direction,
             .weights = type,
             .perColumn = true,
             .zeros = true,
             .bias = true,
             .lengths = true,
             .initial = true,
             .peephole = true});
      check({.steps = 2,
             .batch = 14,
             .input = 17,
             .hidden = 33,
             .direction = direction,
             .weights = type,
             .zeros = true,
             .initial = true});
    }
  check({.steps = 60, .batch = 2, .input = 260, .hidden = 8, .bias = true}); // tiles of many rows
  check({.steps = 0, .batch = 2, .input = 3, .hidden = 4, .initial = true});
  check({.steps = 2, .batch = 0, .input = 3, .hidden = 4});
  check({.steps = 2, .batch = 2, .input = 0, .hidden = 4, .bias = true});
}

// A row gives the same bits whatever is beside it, NaN included.
TEST(DynamicQuantizeLstm, RowsAreIndependent) {
  Case all = {.steps = 4, .batch = 15, .input = 37, .hidden = 21, .bias = true, .initial = true};
  std::mt19937 rng(5);
  std::vector<Tensor> in = operandsOf(all, rng);
  in[0].as<float>()[all.input + 3] = NAN; // of row 1
  Case one = all;
  one.batch = 1;
  for (const Kernel *row : rowsOf("dynamic_quantize_lstm")) {
    std::vector<Tensor> together = runRow(*row, in, attrsOf(all, false), 3);
    for (int64_t b : {0, 2, 14}) {
      std::vector<Tensor> alone = in;
      alone[0] = zeros(DType::F32, {one.steps, 1, one.input});
      for (int64_t t = 0; t < one.steps; ++t)
        std::copy_n(in[0].as<float>() + (t * all.batch + b) * all.input, all.input,
                    alone[0].as<float>() + t * all.input);
      for (size_t i : {5, 6}) {
        alone[i] = zeros(DType::F32, {1, 1, one.hidden});
        std::copy_n(in[i].as<float>() + b * all.hidden, all.hidden, alone[i].as<float>());
      }
      std::vector<Tensor> out = runRow(*row, alone, attrsOf(one, false), 3);
      for (int64_t t = 0; t < one.steps; ++t)
        EXPECT_EQ(0, std::memcmp(out[0].as<float>() + t * one.hidden,
                                 together[0].as<float>() + (t * all.batch + b) * all.hidden,
                                 size_t(one.hidden) * sizeof(float)))
            << row->name << " row " << b << " step " << t;
    }
  }
}

TEST(DynamicQuantizeLstm, Refusals) {
  std::mt19937 rng(1);
  Case k = {.steps = 2, .batch = 1, .input = 3, .hidden = 2};
  std::vector<Tensor> in = operandsOf(k, rng);
  EXPECT_EQ("", refusal("dynamic_quantize_lstm", in));
  std::vector<Tensor> bad = in;
  bad[8] = {};
  EXPECT_NE("", refusal("dynamic_quantize_lstm", bad));
  bad = in;
  bad[10] = uniform({1, 7}, rng);
  EXPECT_NE("", refusal("dynamic_quantize_lstm", bad));
  bad = in;
  bad[9] = zeros(DType::U8, {1}); // the weights are signed
  EXPECT_NE("", refusal("dynamic_quantize_lstm", bad));
  bad = in;
  bad[2] = zeros(DType::I8, {1, 8, 2}); // lstm's order
  EXPECT_NE("", refusal("dynamic_quantize_lstm", bad));
}

} // namespace
} // namespace dspark

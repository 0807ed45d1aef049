// lstm, gru and rnn: every row and ISA level against the recurrences in f64. Errors of a step are about those
// of a sum of (input + hidden) products; gates squash them, and a few steps add up.
#include "runtime/format/PackedLayout.h"
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using namespace test;

struct Case {
  const char *op;
  int64_t steps, batch, input, hidden;
  const char *direction = "forward";
  bool bias = false, lengths = false, initial = false, peephole = false, batchFirst = false, linear = false,
       coupled = false;
  double clip = 0;

  int64_t gates() const { return std::string_view(op) == "lstm" ? 4 : std::string_view(op) == "gru" ? 3 : 1; }
  int64_t dirs() const { return std::string_view(direction) == "bidirectional" ? 2 : 1; }
};

using Vec = std::vector<double>;
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Expected {
  Vec y, yh, yc;
};

Expected recur(const Case &k, std::vector<Tensor> &in) {
  int64_t G = k.gates(), H = k.hidden, I = k.input, D = k.dirs(), W = G * H;
  auto f = [&](size_t operand, int64_t i) {
    return in[operand].type == DType::Undefined ? 0.0 : double(in[operand].as<float>()[i]);
  };
  auto clip = [&](double x) { return k.clip > 0 ? std::clamp(x, -k.clip, k.clip) : x; };
  Expected e;
  e.y.assign(size_t(k.steps * D * k.batch * H), 0);
  e.yh.assign(size_t(D * k.batch * H), 0);
  e.yc = e.yh;
  for (int64_t d = 0; d < D; ++d)
    for (int64_t b = 0; b < k.batch; ++b) {
      int64_t state = (k.batchFirst ? b * D + d : d * k.batch + b) * H;
      Vec h(static_cast<size_t>(H)), c(static_cast<size_t>(H));
      for (int64_t i = 0; i < H; ++i) {
        h[size_t(i)] = f(5, state + i);
        c[size_t(i)] = G == 4 ? f(6, state + i) : 0;
      }
      int64_t length = k.lengths ? in[4].as<int32_t>()[b] : k.steps;
      bool backwards = d == 1 || std::string_view(k.direction) == "reverse";
      for (int64_t s = 0; s < length; ++s) {
        int64_t t = backwards ? length - 1 - s : s,
                x = (k.batchFirst ? b * k.steps + t : t * k.batch + b) * I;
        auto fromX = [&](int64_t g, int64_t i) {
          double sum = f(3, d * 2 * W + g * H + i);
          for (int64_t q = 0; q < I; ++q)
            sum += f(1, (d * W + g * H + i) * I + q) * f(0, x + q);
          return sum;
        };
        auto fromH = [&](int64_t g, int64_t i, const Vec &v) {
          double sum = f(3, d * 2 * W + W + g * H + i);
          for (int64_t q = 0; q < H; ++q)
            sum += f(2, (d * W + g * H + i) * H + q) * v[size_t(q)];
          return sum;
        };
        Vec next = h, reset = h;
        for (int64_t i = 0; i < H && G == 3; ++i)
          reset[size_t(i)] = sigmoid(clip(fromX(1, i) + fromH(1, i, h)));
        Vec gated = h;
        for (size_t i = 0; i < h.size(); ++i)
          gated[i] *= reset[i];
        for (int64_t i = 0; i < H; ++i) {
          double &out = next[size_t(i)], &cell = c[size_t(i)];
          auto both = [&](int64_t g) { return fromX(g, i) + fromH(g, i, h); };
          if (G == 1) {
            out = std::tanh(clip(both(0)));
          } else if (G == 3) {
            double z = sigmoid(clip(both(0)));
            double third = k.linear ? reset[size_t(i)] * fromH(2, i, h) : fromH(2, i, gated);
            out = (1 - z) * std::tanh(clip(fromX(2, i) + third)) + z * h[size_t(i)];
          } else {
            auto p = [&](int64_t which) { return k.peephole ? f(7, (d * 3 + which) * H + i) : 0; };
            double gateI = sigmoid(clip(both(0) + p(0) * cell));
            double forget = k.coupled ? 1 - gateI : sigmoid(clip(both(2) + p(2) * cell));
            cell = forget * cell + gateI * std::tanh(clip(both(3)));
            out = sigmoid(clip(both(1) + p(1) * cell)) * std::tanh(cell);
          }
        }
        h = next;
        int64_t y = (k.batchFirst ? (b * k.steps + t) * D + d : (t * D + d) * k.batch + b) * H;
        std::copy(h.begin(), h.end(), e.y.begin() + y);
      }
      std::copy(h.begin(), h.end(), e.yh.begin() + state);
      std::copy(c.begin(), c.end(), e.yc.begin() + state);
    }
  return e;
}

void expectNear(const Tensor &got, const Vec &want, double bound, const std::string &what) {
  ASSERT_EQ(size_t(got.elements()), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(double(got.as<float>()[i]), want[i], bound) << what << " element " << i;
}

void check(const Case &k) {
  std::mt19937 rng(9);
  int64_t D = k.dirs(), W = k.gates() * k.hidden;
  bool isLstm = k.gates() == 4;
  auto small = [&](std::vector<int64_t> dims, double range) {
    Tensor t = uniform(std::move(dims), rng);
    for (int64_t i = 0; i < t.elements(); ++i)
      t.as<float>()[i] *= float(range);
    return t;
  };
  std::vector<Tensor> in(isLstm ? 8 : 6);
  in[0] = uniform(
      k.batchFirst ? std::vector{k.batch, k.steps, k.input} : std::vector{k.steps, k.batch, k.input}, rng);
  in[1] = small({D, W, k.input}, 1 / std::sqrt(double(k.input)));
  in[2] = small({D, W, k.hidden}, 1 / std::sqrt(double(k.hidden)));
  if (k.bias)
    in[3] = small({D, 2 * W}, 0.5);
  if (k.lengths)
    in[4] = filled<int32_t>(DType::I32, {k.batch}, [&] { return int32_t(rng() % uint32_t(k.steps + 1)); });
  for (size_t i = 5; k.initial && i < (isLstm ? 7u : 6u); ++i)
    in[i] =
        uniform(k.batchFirst ? std::vector{k.batch, D, k.hidden} : std::vector{D, k.batch, k.hidden}, rng);
  if (k.peephole)
    in[7] = uniform({D, 3 * k.hidden}, rng);
  Expected want = recur(k, in);
  double bound = double(k.steps) * double(k.input + k.hidden + 20) / (1 << 24);

  for (const Kernel *row : rowsOf(k.op))
    for (bool packed : {false, true}) {
      if (packed && std::string_view(row->name).find("reference") != std::string_view::npos)
        continue;
      std::vector<Tensor> operands = in;
      for (size_t i : {1, 2}) {
        MatrixWeight weight{D, i == 1 ? k.input : k.hidden, W, true, 4};
        if (packed) {
          operands[i].bytes.assign(*packedBytes("panel16", weight), std::byte(0xff));
          ASSERT_TRUE(packWeight("panel16", weight, in[i].bytes, operands[i].bytes).isOk());
        }
      }
      AttrList attrs;
      attrs.set("direction", k.direction).set("hidden_size", k.hidden).set("layout", k.batchFirst);
      attrs.set("linear_before_reset", k.linear)
          .set("input_forget", k.coupled)
          .set("packed", packed ? "panel16" : "");
      if (k.clip > 0)
        attrs.setFloat("clip", k.clip);
      std::vector<Tensor> out = runRow(*row, operands, attrs, isLstm ? 3 : 2);
      ASSERT_GE(out.size(), 2u);
      std::string what = std::string(row->name) + (packed ? " packed " : " ") + k.direction;
      expectNear(out[0], want.y, bound, what + " y");
      expectNear(out[1], want.yh, bound, what + " y_h");
      if (isLstm)
        expectNear(out[2], want.yc, 4 * bound, what + " y_c");
    }
}

TEST(Rnn, Forms) {
  for (const char *op : {"lstm", "gru", "rnn"})
    for (const char *direction : {"forward", "reverse", "bidirectional"}) {
      check({op, 1, 1, 128, 128, direction, true});
      check({op, 5, 3, 7, 5, direction, true, true, true});
      check({op, 4, 14, 10, 33, direction, false, true, false, false, true});
      check({op, 3, 2, 300, 20, direction, true, false, true, false, true});
      check({op, 0, 2, 3, 4, direction, true, false, true});
    }
}

TEST(Rnn, Options) {
  Case lstm = {"lstm", 6, 2, 5, 11, "bidirectional", true, true, true, true};
  check(lstm);
  lstm.clip = 0.3;
  check(lstm);
  lstm.coupled = true;
  check(lstm);
  for (int64_t hidden : {5, 8, 11, 24}) {
    Case gru = {"gru", 6, 3, 5, hidden, "bidirectional", true, true, true};
    gru.linear = true;
    check(gru);
    gru.bias = false;
    check(gru);
    gru.clip = 0.3;
    check(gru);
  }
}

// Other functions than the defaults, against the scalar row of the same operator.
TEST(Rnn, ActivationFunctions) {
  std::mt19937 rng(4);
  std::vector<const Kernel *> rows = rowsOf("rnn");
  for (const char *name : {"Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid",
                           "Elu", "Softsign", "Softplus", "Sigmoid"}) {
    std::vector<Tensor> in = {uniform({3, 2, 4}, rng), uniform({1, 9, 4}, rng), uniform({1, 9, 9}, rng)};
    AttrList attrs;
    attrs.set("activations", name).setFloat("activation_alpha", 0.3).setFloat("activation_beta", 0.7);
    Tensor want = runRow(*rows.back(), in, attrs, 2)[0];
    for (const Kernel *row : rows) {
      Tensor y = runRow(*row, in, attrs, 2)[0];
      for (int64_t i = 0; i < y.elements(); ++i)
        ASSERT_NEAR(y.as<float>()[i], want.as<float>()[i],
                    3 * 60.0 / (1 << 24) * (1 + std::fabs(want.as<float>()[i])))
            << row->name << " " << name;
    }
  }
}

} // namespace
} // namespace dspark

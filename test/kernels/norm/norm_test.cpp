// Softmax and normalisations: every row and ISA level against f64.
//
// Tolerances: softmax is exp (4 ulp), a sum (260 eps, see reduce_test) and two roundings, relative to the
// result; normalised values add the error of the mean to that of the inverse deviation, both relative to the
// row's deviation, so the bound is absolute in units of the scale.
#include "kernels/common/element.h"
#include "test/kernels/kernel_case.h"
#include <cmath>

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);

Tensor as(DType type, const Tensor &x) {
  Tensor t = zeros(type, x.dims);
  dispatchFloat(type, [&]<typename T>() {
    for (int64_t k = 0; k < x.elements(); ++k)
      t.as<T>()[k] = T(x.as<float>()[k]);
  });
  return t;
}
double at(const Tensor &x, int64_t k) {
  double value = 0;
  dispatchFloat(x.type, [&]<typename T>() { value = double(x.as<T>()[k]); });
  return value;
}
// One rounding to the type.
double roundingOf(DType type) {
  return type == DType::F16 ? 1.0 / (1 << 11) : type == DType::BF16 ? 1.0 / (1 << 8) : kEps;
}

bool takes(const Kernel &row, std::vector<Tensor> &in, const AttrList &attrs, size_t results = 1) {
  std::vector<Tensor> out = inferResults(row.op, in, attrs, results);
  std::vector<TensorView> inViews, outViews;
  for (Tensor &t : in)
    inViews.push_back(t.view());
  for (Tensor &t : out)
    outViews.push_back(t.view());
  KernelCall call{inViews, outViews, attrs.view(), nullptr, nullptr};
  return !row.accepts || row.accepts(call);
}

TEST(Softmax, EveryRowAxisAndType) {
  std::mt19937 rng(1);
  int runs = 0;
  for (std::vector<int64_t> dims :
       {std::vector<int64_t>{3, 7, 1}, {2, 5, 33}, {1, 6625, 1}, {4, 3, 130}, {2, 1, 9}})
    for (const char *kind : {"softmax", "log_softmax"})
      for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
        Tensor x = uniform(dims, rng);
        for (int64_t k = 0; k < x.elements(); ++k)
          x.as<float>()[k] *= 20;
        x = as(type, x);
        AttrList attrs;
        attrs.set("axis", 1).set("kind", kind);
        std::vector<Tensor> in = {x};
        for (const Kernel *row : rowsOf("softmax")) {
          if (!takes(*row, in, attrs))
            continue;
          ++runs;
          Tensor y = runRow(*row, in, attrs)[0];
          for (int64_t line = 0; line < dims[0] * dims[2]; ++line) {
            int64_t first = line / dims[2] * dims[1] * dims[2] + line % dims[2];
            double top = -INFINITY, sum = 0;
            for (int64_t i = 0; i < dims[1]; ++i)
              top = std::max(top, at(x, first + i * dims[2]));
            for (int64_t i = 0; i < dims[1]; ++i)
              sum += std::exp(at(x, first + i * dims[2]) - top);
            for (int64_t i = 0; i < dims[1]; ++i) {
              double shifted = at(x, first + i * dims[2]) - top;
              bool isLog = std::string_view(kind) == "log_softmax";
              double want = isLog ? shifted - std::log(sum) : std::exp(shifted) / sum;
              // exp of a shifted value of magnitude 40 carries the shift's rounding, 40 eps, too.
              double bound = isLog ? 300 * kEps + 2 * kEps * std::fabs(want) : 350 * kEps * want + 1e-37;
              bound += roundingOf(type) * std::fabs(want) + (type == DType::F16 ? 1e-7 : 0);
              ASSERT_NEAR(at(y, first + i * dims[2]), want, bound)
                  << row->name << " " << kind << " line " << line;
            }
          }
        }
      }
  EXPECT_GT(runs, 60);
}

TEST(Softmax, HardmaxTakesTheFirst) {
  Tensor x = floats({1, 3, 3, 0}, {1, 4});
  Tensor y = zeros(DType::F32, {1, 4});
  AttrList attrs;
  attrs.set("kind", "hardmax");
  std::vector<Tensor> in = {x};
  for (const Kernel *row : rowsOf("softmax"))
    if (takes(*row, in, attrs)) {
      y = runRow(*row, in, attrs)[0];
      EXPECT_EQ(std::vector<float>(y.as<float>(), y.as<float>() + 4), (std::vector<float>{0, 1, 0, 0}));
    }
}

TEST(LayerNorm, RowsTypesAndBroadcasts) {
  std::mt19937 rng(3);
  struct Case {
    std::vector<int64_t> dims, scale;
    int64_t axis;
  };
  int runs = 0;
  for (const Case &c : {Case{{5, 384}, {384}, -1},
                        {{3, 7}, {7}, -1},
                        {{2, 3, 5}, {3, 5}, 1},
                        {{2, 3, 5}, {5}, 1},
                        {{2, 3, 5}, {2, 3, 5}, 2},
                        {{1, 9000}, {1}, -1}})
    for (const char *kind : {"layer", "rms"})
      for (DType type : {DType::F32, DType::F64, DType::F16}) {
        bool isRms = std::string_view(kind) == "rms";
        Tensor x = as(type, uniform(c.dims, rng)), scale = uniform(c.scale, rng),
               bias = uniform(c.scale, rng);
        if (type != DType::F16) // whose scale may be f32: ONNX lets the types differ
          scale = as(type, scale), bias = as(type, bias);
        AttrList attrs;
        attrs.set("axis", c.axis).set("kind", kind).setFloat("epsilon", 1e-3);
        std::vector<Tensor> in = {x, scale, bias};
        int64_t rank = int64_t(c.dims.size()), axis = c.axis < 0 ? c.axis + rank : c.axis, size = 1;
        for (int64_t d = axis; d < rank; ++d)
          size *= c.dims[size_t(d)];
        for (const Kernel *row : rowsOf("layer_norm")) {
          if (!takes(*row, in, attrs, 3))
            continue;
          ++runs;
          std::vector<Tensor> y = runRow(*row, in, attrs, 3);
          for (int64_t r = 0; r < x.elements() / size; ++r) {
            double mean = 0, square = 0;
            for (int64_t i = 0; i < size && !isRms; ++i)
              mean += at(x, r * size + i) / double(size);
            for (int64_t i = 0; i < size; ++i)
              square += (at(x, r * size + i) - mean) * (at(x, r * size + i) - mean) / double(size);
            double inverse = 1 / std::sqrt(square + 1e-3);
            ASSERT_NEAR(at(y[1], r), mean, 300 * kEps);
            ASSERT_NEAR(at(y[2], r), inverse, 300 * kEps * inverse);
            for (int64_t i = 0; i < size; ++i) {
              int64_t k = r * size + i, s = k % scale.elements();
              double want = (at(x, k) - mean) * inverse * at(scale, s) + at(bias, s);
              double bound = 600 * kEps * (2 + std::fabs(want)) + roundingOf(type) * std::fabs(want);
              ASSERT_NEAR(at(y[0], k), want, bound) << row->name << " " << kind << " element " << k;
            }
          }
        }
      }
  EXPECT_GT(runs, 40);
}

// Batch, instance and group normalisation have one form: (x - shift) * factor + bias per channel.
TEST(ChannelNorm, EveryRow) {
  std::mt19937 rng(5);
  for (std::vector<int64_t> dims : {std::vector<int64_t>{2, 6, 5, 7}, {3, 6}, {2, 6, 1000}})
    for (std::string_view op : {"batch_norm", "instance_norm", "group_norm"}) {
      if (dims.size() < 3 && op == "instance_norm")
        continue;
      int64_t inner = 1, groups = op == "instance_norm" ? 6 : 2, channels = 6;
      for (size_t d = 2; d < dims.size(); ++d)
        inner *= dims[d];
      Tensor x = uniform(dims, rng), scale = uniform({6}, rng), bias = uniform({6}, rng),
             mean = uniform({6}, rng);
      Tensor variance = uniform({6}, rng);
      for (int64_t c = 0; c < 6; ++c)
        variance.as<float>()[c] = std::fabs(variance.as<float>()[c]) + 0.1f;
      std::vector<Tensor> in = {x, scale, bias};
      if (op == "batch_norm")
        in.insert(in.end(), {mean, variance});
      AttrList attrs;
      attrs.set("num_groups", 2).setFloat("epsilon", 1e-2);
      for (const Kernel *row : rowsOf(op)) {
        Tensor y = runRow(*row, in, attrs)[0];
        int64_t perGroup = channels / groups * inner;
        for (int64_t k = 0; k < x.elements(); ++k) {
          int64_t c = k / inner % channels, first = k / perGroup * perGroup;
          double m = double(mean.as<float>()[c]), v = double(variance.as<float>()[c]);
          if (op != "batch_norm") {
            m = v = 0;
            for (int64_t i = first; i < first + perGroup; ++i)
              m += at(x, i) / double(perGroup);
            for (int64_t i = first; i < first + perGroup; ++i)
              v += (at(x, i) - m) * (at(x, i) - m) / double(perGroup);
          }
          double factor = at(scale, c) / std::sqrt(v + 1e-2), want = (at(x, k) - m) * factor + at(bias, c);
          ASSERT_NEAR(at(y, k), want, 600 * kEps * (2 + 2 * std::fabs(factor) + std::fabs(want)))
              << row->name << " element " << k;
        }
      }
    }
}

TEST(OtherNorms, Definitions) {
  Tensor x = floats({1, 2, 3, 4}, {1, 4, 1});
  AttrList lrn;
  lrn.set("size", 3).setFloat("alpha", 3).setFloat("beta", 1).setFloat("bias", 1);
  Tensor y = runOp("lrn", {x}, lrn)[0];
  const double squares[] = {5, 14, 29, 25};
  for (int64_t c = 0; c < 4; ++c)
    EXPECT_NEAR(y.as<float>()[c], double(c + 1) / (1 + squares[c]), 1e-7);
  y = runOp("lp_norm", {floats({3, 4, 0, 0}, {2, 2})})[0];
  EXPECT_EQ(std::vector<float>(y.as<float>(), y.as<float>() + 4), (std::vector<float>{0.6f, 0.8f, 0, 0}));
  y = runOp("mean_variance_norm", {floats({1, 3, 5, 9}, {2, 2})}, AttrList().set("axes", 1))[0];
  for (int64_t k = 0; k < 4; ++k)
    EXPECT_NEAR(y.as<float>()[k], k % 2 ? 1 : -1, 1e-6);
}

} // namespace
} // namespace dspark

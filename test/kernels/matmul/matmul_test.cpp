// matmul and matmul_dequant: every row and ISA level against a f64 sum. A sum of K products in f32, each
// rounded once, differs by at most about K * eps * sum|a b|; the epilogue adds a few more roundings.
#include "kernels/matmul/scalar_activation.h"
#include "runtime/format/PackedLayout.h"
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);

struct Case {
  int64_t m, n, k;
  bool transA = false, transB = false, packed = false, bias = false, residual = false;
  const char *activation = "";
  bool isBytes = false;
};

// op(A)[m, k] and op(B)[k, n] from row-major operands.
struct Reference {
  std::vector<double> value, bound;
};

Reference product(const Case &c, const float *a, auto &&b, const Tensor *bias, const Tensor *residual) {
  Reference ref;
  for (int64_t m = 0; m < c.m; ++m)
    for (int64_t n = 0; n < c.n; ++n) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        double term = double(a[c.transA ? k * c.m + m : m * c.k + k]) * b(k, n);
        sum += term;
        magnitude += std::fabs(term);
      }
      if (bias)
        sum += double(bias->as<float>()[n]);
      if (residual)
        sum += double(residual->as<float>()[m * c.n + n]);
      ref.value.push_back(sum);
      ref.bound.push_back(double(c.k + 4) * kEps * (magnitude + std::fabs(sum) + 1));
    }
  return ref;
}

// Rows that take everything in f32: not those whose B is in few bits (packed_test.cpp has those), nor tiles,
// which ask for more (gemm_tiles_test.cpp).
std::vector<const Kernel *> denseRows() {
  std::vector<const Kernel *> rows = rowsOf("matmul");
  std::erase_if(rows, [](const Kernel *row) {
    return row->isa == Isa::Amx || std::string_view(row->name).starts_with("matmul_packed");
  });
  return rows;
}

Activation activationNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kActivationNames); ++i)
    if (kActivationNames[i] == name)
      return Activation(i);
  return Activation::None;
}

// The activations used have slopes of at most 1.13, and are good to a few ulp themselves.
void expectClose(const Reference &ref, const Tensor &y, const char *activation, const std::string &what) {
  for (size_t i = 0; i < ref.value.size(); ++i) {
    double want = activateScalar<double>(activationNamed(activation), ref.value[i], 1.0 / 6, 0.5);
    double bound = 1.2 * ref.bound[i] + 8 * kEps * (std::fabs(want) + std::fabs(ref.value[i]));
    ASSERT_NEAR(double(y.as<float>()[i]), want, bound) << what << " element " << i;
  }
}

std::string describe(const Kernel &row, const Case &c) {
  return std::string(row.name) + " " + std::to_string(c.m) + "x" + std::to_string(c.n) + "x" +
         std::to_string(c.k) + (c.transA ? " transA" : "") + (c.transB ? " transB" : "") +
         (c.packed ? " packed " : " ") + c.activation;
}

Tensor packMatrix(const Tensor &b, MatrixWeight weight, const char *layout) {
  Tensor packed = b;
  packed.bytes.assign(*packedBytes(layout, weight), std::byte(0xff));
  EXPECT_TRUE(packWeight(layout, weight, b.bytes, packed.bytes).isOk());
  return packed;
}

void checkMatmul(const Kernel &row, const Case &c) {
  std::mt19937 rng(1);
  std::vector<Tensor> in(4);
  in[0] = uniform(c.transA ? std::vector{c.k, c.m} : std::vector{c.m, c.k}, rng);
  Tensor b = uniform(c.transB ? std::vector{c.n, c.k} : std::vector{c.k, c.n}, rng);
  in[1] = c.packed ? packMatrix(b, {1, c.k, c.n, c.transB, 4}, "panel16") : b;
  if (c.bias)
    in[2] = uniform({c.n}, rng);
  if (c.residual)
    in[3] = uniform({c.m, c.n}, rng);
  AttrList attrs;
  attrs.set("trans_a", c.transA).set("trans_b", c.transB).set("packed", c.packed ? "panel16" : "");
  attrs.set("activation", c.activation).setFloat("act_alpha", 1.0 / 6).setFloat("act_beta", 0.5);
  std::vector<Tensor> out = runRow(row, in, attrs);
  ASSERT_EQ(out.size(), 1u);
  auto element = [&](int64_t k, int64_t n) {
    return double(b.as<float>()[c.transB ? n * c.k + k : k * c.n + n]);
  };
  Reference ref =
      product(c, in[0].as<float>(), element, c.bias ? &in[2] : nullptr, c.residual ? &in[3] : nullptr);
  expectClose(ref, out[0], c.activation, describe(row, c));
}

TEST(Matmul, AwkwardSizes) {
  const int64_t sizes[][3] = {{1, 1, 1},     {1, 16, 7},     {1, 100, 33},  {2, 17, 64},    {3, 48, 5},
                              {5, 31, 129},  {6, 16, 300},   {7, 33, 513},  {13, 8, 40},    {25, 24, 16},
                              {64, 130, 70}, {193, 40, 400}, {400, 65, 20}, {3, 200, 1000}, {0, 5, 3},
                              {4, 0, 3},     {3, 5, 0}};
  for (const Kernel *row : denseRows())
    for (auto [m, n, k] : sizes)
      for (int form = 0; form < 8; ++form)
        checkMatmul(
            *row, {m, n, k, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0, form % 3 == 0, form % 3 != 1});
}

TEST(Matmul, Activations) {
  for (const Kernel *row : denseRows())
    for (std::string_view activation : kActivationNames)
      checkMatmul(*row, {9, 21, 30, false, false, true, true, true, activation.data()});
}

// A row must have the same bits whatever rows are computed beside it, however B is stored, and for any cut.
TEST(Matmul, RowsDoNotDependOnTheirNumber) {
  std::mt19937 rng(2);
  for (const Kernel *row : denseRows())
    for (int64_t k : {37, 600}) {
      std::vector<Tensor> in(2);
      in[0] = uniform({230, k}, rng);
      in[1] = uniform({k, 70}, rng);
      AttrList plain, packed;
      packed.set("packed", "panel16");
      std::vector<Tensor> all = runRow(*row, in, plain);
      std::vector<Tensor> packedIn = {in[0], packMatrix(in[1], {1, k, 70, false, 4}, "panel16")};
      EXPECT_EQ(runRow(*row, packedIn, packed, 1, 1)[0].bytes, all[0].bytes) << row->name;
      for (int64_t rows : {1, 2, 5, 6, 13}) {
        std::vector<Tensor> some = {in[0], in[1]};
        some[0].dims[0] = rows;
        some[0].bytes.resize(size_t(rows * k) * 4);
        Tensor few = runRow(*row, some, plain)[0];
        EXPECT_EQ(std::memcmp(few.bytes.data(), all[0].bytes.data(), few.bytes.size()), 0)
            << row->name << " rows " << rows;
      }
    }
}

TEST(Matmul, BatchesBroadcast) {
  std::mt19937 rng(3);
  struct Shapes {
    std::vector<int64_t> a, b;
  };
  for (const Kernel *row : denseRows())
    for (const Shapes &s : std::vector<Shapes>{{{2, 3, 4, 5}, {5, 6}},
                                               {{2, 1, 4, 5}, {3, 5, 6}},
                                               {{4, 5}, {3, 5, 6}},
                                               {{5}, {2, 5, 6}},
                                               {{2, 4, 5}, {5}},
                                               {{5}, {5}}}) {
      std::vector<Tensor> in = {uniform(s.a, rng), uniform(s.b, rng)};
      Tensor y = runRow(*row, in, {})[0];
      // Walks the result's elements; missing batch dims count as 1.
      int64_t m = s.a.size() < 2 ? 1 : s.a[s.a.size() - 2], n = s.b.size() < 2 ? 1 : s.b.back();
      auto batchIndex = [&](const std::vector<int64_t> &dims, int64_t i, int64_t inner) {
        int64_t d1 = dims.size() > 2 ? dims[dims.size() - 3] : 1, d0 = dims.size() > 3 ? dims[0] : 1;
        return (d0 == 1 ? 0 : i / inner) * d1 + (d1 == 1 ? 0 : i % inner);
      };
      int64_t inner =
          std::max(s.a.size() > 2 ? s.a[s.a.size() - 3] : 1, s.b.size() > 2 ? s.b[s.b.size() - 3] : 1);
      for (int64_t i = 0; i < y.elements(); ++i) {
        int64_t batch = i / (m * n), r = i / n % m, c = i % n;
        double want = 0;
        for (int64_t k = 0; k < 5; ++k)
          want += double(in[0].as<float>()[(batchIndex(s.a, batch, inner) * m + r) * 5 + k]) *
                  double(in[1].as<float>()[(batchIndex(s.b, batch, inner) * 5 + k) * n + c]);
        ASSERT_NEAR(double(y.as<float>()[i]), want, 9 * kEps * 5) << row->name << " element " << i;
      }
    }
}

TEST(Matmul, IntegersWrapAndHalvesRoundOnce) {
  const Kernel *row = nullptr;
  for (const Kernel *r : denseRows())
    row = std::string_view(r->name) == "matmul_reference" ? r : row;
  ASSERT_TRUE(row);
  std::vector<Tensor> in = {zeros(DType::I32, {1, 2}), zeros(DType::I32, {2, 1})};
  in[0].as<int32_t>()[0] = 1 << 30;
  in[0].as<int32_t>()[1] = 3;
  in[1].as<int32_t>()[0] = 4;
  in[1].as<int32_t>()[1] = -5;
  EXPECT_EQ(runRow(*row, in, {})[0].as<int32_t>()[0], -15);
}

TEST(MatmulDequant, AgreesWithWidenedWeights) {
  for (const Kernel *row : rowsOf("matmul_dequant"))
    for (DType type : {DType::I8, DType::U8})
      for (int form = 0; form < 8; ++form)
        for (int64_t m : {1, 3, 50}) {
          std::mt19937 rng(4);
          Case c = {m, 37, 90, false, (form & 1) != 0, (form & 2) != 0, true, (form & 1) != 0, "relu"};
          bool perColumn = (form & 4) != 0;
          std::vector<Tensor> in(6);
          in[0] = uniform({c.m, c.k}, rng);
          Tensor b = filled<uint8_t>(type, c.transB ? std::vector{c.n, c.k} : std::vector{c.k, c.n}, rng);
          in[1] = c.packed ? packMatrix(b, {1, c.k, c.n, c.transB, 1}, "panel16") : b;
          in[2] = uniform(perColumn ? std::vector{c.n} : std::vector<int64_t>{}, rng);
          if (perColumn)
            in[3] = filled<uint8_t>(type, {c.n}, rng);
          in[4] = uniform({c.n}, rng);
          if (c.residual)
            in[5] = uniform({c.m, c.n}, rng);
          AttrList attrs;
          attrs.set("trans_b", c.transB).set("packed", c.packed ? "panel16" : "").set("activation", "relu");
          std::vector<Tensor> out = runRow(*row, in, attrs);
          ASSERT_EQ(out.size(), 1u);
          auto byteAt = [&](const Tensor &t, int64_t i) {
            return type == DType::I8 ? double(t.as<int8_t>()[i]) : double(t.as<uint8_t>()[i]);
          };
          auto element = [&](int64_t k, int64_t n) {
            double zero = perColumn ? byteAt(in[3], n) : 0;
            return (byteAt(b, c.transB ? n * c.k + k : k * c.n + n) - zero) *
                   double(in[2].as<float>()[perColumn ? n : 0]);
          };
          Reference ref = product(c, in[0].as<float>(), element, &in[4], c.residual ? &in[5] : nullptr);
          expectClose(ref, out[0], "relu", describe(*row, c));
        }
}

} // namespace
} // namespace dspark

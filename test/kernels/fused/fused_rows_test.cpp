// Fused programs that reduce rows: the interpreter against an f64 evaluation of the whole tensor, the fixed
// order of folds to the bit, and refusal of programs and shapes that break a rule.
#include "kernels/common/catalogue.h"
#include "kernels/elementwise/scalar.h"
#include "test/kernels/fused/fused_case.h"
#include <cstring>
#include <functional>

namespace dspark::test {
namespace {

using Reduce = FusedReduce;

Program &reduce(Program &p, Reduce kind, int64_t a) { return p.add(kReduceOp, int64_t(kind), a); }

/// y = softmax(x / 8 + mask) by rows of the last axis; x is input 0, the mask input 1.
Program maskedSoftmax(bool keepsExponentials) {
  Program p;
  p.add(kConstantOp, 0, 0, 0, 0, 0.125);                                                               // 2
  p.add(kBinaryOp, int64_t(BinaryKind::k_mul), 0, 2).add(kBinaryOp, int64_t(BinaryKind::k_add), 3, 1); // 3, 4
  reduce(p, Reduce::Max, 4);                                                                           // 5
  p.add(kBinaryOp, int64_t(BinaryKind::k_sub), 4, 5).add(kUnaryOp, int64_t(UnaryKind::k_exp), 6);      // 6, 7
  reduce(p, Reduce::Sum, 7);                                                                           // 8
  p.add(kUnaryOp, int64_t(UnaryKind::k_reciprocal), 8).add(kBinaryOp, int64_t(BinaryKind::k_mul), 7, 9);
  p.results = {10};
  p.rowAxes = {1};
  if (keepsExponentials)
    p.kept = {7};
  return p;
}

/// s = a + b and its layer norm, times c: inputs 0 a, 1 b, 2 c.
Program residualNorm() {
  Program p;
  p.add(kBinaryOp, int64_t(BinaryKind::k_add), 0, 1); // 3: s
  reduce(p, Reduce::Mean, 3);                         // 4
  p.add(kBinaryOp, int64_t(BinaryKind::k_sub), 3, 4); // 5
  p.add(kBinaryOp, int64_t(BinaryKind::k_mul), 5, 5); // 6
  reduce(p, Reduce::Mean, 6);                         // 7
  p.add(kConstantOp, 0, 0, 0, 0, 1e-5).add(kBinaryOp, int64_t(BinaryKind::k_add), 7, 8);
  p.add(kUnaryOp, int64_t(UnaryKind::k_rsqrt), 9);
  p.add(kBinaryOp, int64_t(BinaryKind::k_mul), 5, 10).add(kBinaryOp, int64_t(BinaryKind::k_mul), 11, 2);
  p.results = {12, 3};
  p.rowAxes = {1};
  p.kept = {3};
  return p;
}

/// The mean of |x| without the row axes, and max(x) * u with them; inputs 0 x, 1 u, one number per row.
Program statistics(int64_t axes) {
  Program p;
  p.add(kUnaryOp, int64_t(UnaryKind::k_abs), 0); // 2
  reduce(p, Reduce::Mean, 2);                    // 3
  reduce(p, Reduce::Max, 0);                     // 4
  p.add(kBinaryOp, int64_t(BinaryKind::k_mul), 4, 1);
  p.results = {3, 5};
  p.shapes = {int64_t(FusedShape::Dropped), int64_t(FusedShape::Kept)};
  p.rowAxes = {axes};
  return p;
}

Tensor scaled(const std::vector<int64_t> &dims, float limit, std::mt19937 &rng) {
  Tensor t = uniform(dims, rng);
  for (int64_t i = 0; i < t.elements(); ++i)
    t.as<float>()[i] *= limit;
  return t;
}

/// Every value over the full shape, in f64.
std::vector<std::vector<double>> evaluate(const Program &p, std::vector<Tensor> &in) {
  std::vector<int64_t> dims = resultDims(in);
  int64_t total = 1, length = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    total *= dims[i];
    length *= dims.size() - i <= size_t(p.rowAxes[0]) ? dims[i] : 1;
  }
  std::vector<std::vector<double>> values;
  for (Tensor &t : in) {
    values.emplace_back();
    for (int64_t k = 0; k < total; ++k) {
      int64_t at = indexOf(dims, t.dims, k);
      values.back().push_back(t.type == DType::Bool ? double(t.as<uint8_t>()[at])
                                                    : double(t.as<float>()[at]));
    }
  }
  for (size_t i = 0; i < p.words.size() / kFusedStride; ++i) {
    const int64_t *w = &p.words[i * kFusedStride];
    std::vector<double> y;
    for (int64_t k = 0; k < total; ++k) {
      auto v = [&](int operand) { return values[size_t(w[2 + operand])][size_t(k)]; };
      switch (FusedCategory(w[0])) {
      case FusedCategory::Unary:
        y.push_back(unaryValue(UnaryKind(w[1]), v(0), p.params[2 * i], p.params[2 * i + 1]));
        break;
      case FusedCategory::Binary:
        y.push_back(binaryValue(BinaryKind(w[1]), v(0), v(1)));
        break;
      case FusedCategory::Reduce: {
        const double *row = &values[size_t(w[2])][size_t(k / length * length)];
        double sum = 0, top = -INFINITY, low = INFINITY;
        for (int64_t j = 0; j < length; ++j) {
          sum += row[j];
          top = std::isnan(row[j]) || row[j] > top ? row[j] : top;
          low = std::isnan(row[j]) || row[j] < low ? row[j] : low;
        }
        y.push_back(Reduce(w[1]) == Reduce::Sum    ? sum
                    : Reduce(w[1]) == Reduce::Mean ? sum / double(length)
                    : Reduce(w[1]) == Reduce::Max  ? top
                                                   : low);
        break;
      }
      default:
        y.push_back(float(p.params[2 * i]));
      }
    }
    values.push_back(y);
  }
  return values;
}

/// The results of a row of the catalogue, with the dims that the shape function gives.
std::vector<Tensor> runProgram(const Kernel &row, const Program &p, std::vector<Tensor> &in,
                               uint32_t step = 1) {
  std::vector<TensorInfo> infos;
  for (Tensor &t : in)
    infos.push_back(TensorInfo::make(t.type, {t.dims.begin(), t.dims.end()}));
  std::vector<Attr> attrs = p.attrs();
  InferContext ctx;
  ctx.in = infos;
  ctx.attrs = Attrs(attrs);
  ctx.out.resize(p.results.size());
  EXPECT_EQ(findOp(row.op)->infer(ctx), InferStatus::Ok) << ctx.error;
  std::vector<Tensor> out;
  std::vector<TensorView> inViews, outViews;
  for (const TensorInfo &info : ctx.out) {
    std::vector<int64_t> dims;
    for (Dim dim : info.dims)
      dims.push_back(dim.value());
    out.push_back(zeros(DType::F32, dims));
  }
  for (Tensor &t : in)
    inViews.push_back(t.view());
  for (Tensor &t : out)
    outViews.push_back(t.view());
  KernelCall call{inViews, outViews, Attrs(attrs)};
  EXPECT_TRUE(!row.accepts || row.accepts(call)) << row.name;
  auto work = std::make_unique<KernelWork>();
  row.prepare(call, *work);
  std::vector<float> scratch(work->scratchPerThread / sizeof(float) + 16, NAN);
  for (uint32_t begin = 0; begin < work->tiles[0]; begin += step)
    row.run(call, *work,
            {begin, std::min(work->tiles[0], begin + step), 0, 0,
             reinterpret_cast<std::byte *>(scratch.data()), nullptr});
  return out;
}

template <typename F> void forInterpreters(const char *op, F f) {
  for (const Kernel *row : rowsOf(op))
    if (std::string_view(row->name).find("generated") == std::string_view::npos &&
        !std::string_view(row->name).starts_with("fused_interpreter"))
      f(*row);
}

// |x / 8 + mask| stays below 8: rounding it moves e^(t - max) by at most 16 half-ulps, exp and the quotient
// add 4 and 1 ulp, and a sum of positive terms less than 2^-24 times the length of a lane's chain, 80 at most
// here.
TEST(FusedRows, MaskedSoftmax) {
  constexpr double kTolerance = 0x1p-24 * (2 * 16 + 2 * 8 + 2 + 80);
  std::mt19937 rng(1);
  struct Dims {
    std::vector<int64_t> x, mask;
  };
  for (const Dims &d :
       {Dims{{3, 7, 33}, {3, 1, 33}}, Dims{{2, 1}, {2, 1}}, Dims{{5, 4500}, {4500}}, Dims{{64, 512}, {1}},
        Dims{{2, 3, 4, 130}, {2, 1, 4, 1}}, Dims{{0, 5}, {5}}, Dims{{9}, {9}}})
    forInterpreters("fused", [&](const Kernel &row) {
      std::vector<Tensor> in = {scaled(d.x, 40, rng), scaled(d.mask, 3, rng)};
      std::vector<double> want = evaluate(maskedSoftmax(false), in).back();
      Tensor kept = runProgram(row, maskedSoftmax(true), in)[0];
      EXPECT_EQ(kept.bytes, runProgram(row, maskedSoftmax(false), in, 3)[0].bytes)
          << "keeping rows or the split over tiles changed a result";
      for (size_t k = 0; k < want.size(); ++k)
        ASSERT_NEAR(kept.as<float>()[k], want[k], kTolerance * want[k]) << row.name << " element " << k;
    });
}

// A norm divides by a deviation near 1: s, its mean and the deviation each carry a few ulp of |s| < 8 into
// results below 8; 40 * 2^-24 bounds their sum, lanes' chains included.
TEST(FusedRows, NormAndItsOperandAsResults) {
  std::mt19937 rng(2);
  for (const std::vector<int64_t> &dims :
       {std::vector<int64_t>{40, 384}, std::vector<int64_t>{3, 1, 17}, std::vector<int64_t>{2, 2049}})
    forInterpreters("fused", [&](const Kernel &row) {
      std::vector<Tensor> in = {scaled(dims, 3, rng), scaled(dims, 3, rng), uniform({dims.back()}, rng)};
      Program p = residualNorm();
      std::vector<std::vector<double>> want = evaluate(p, in);
      std::vector<Tensor> out = runProgram(row, p, in);
      for (int64_t k = 0; k < out[0].elements(); ++k) {
        ASSERT_NEAR(out[0].as<float>()[k], want[12][size_t(k)], 8 * 40 * 0x1p-24) << row.name << k;
        ASSERT_EQ(out[1].as<float>()[k], float(want[3][size_t(k)])) << row.name << k;
      }
    });
}

// Means of |x| <= 1 by sums of n terms: the chains of a lane are at most 128 + 3 long here.
TEST(FusedRows, ReducedResults) {
  std::mt19937 rng(3);
  struct Dims {
    std::vector<int64_t> x, u;
    int64_t axes;
  };
  for (const Dims &d : {Dims{{6, 50}, {6, 1}, 1}, Dims{{2, 3, 4, 5}, {3, 1, 1}, 2}, Dims{{7}, {1}, 1},
                        Dims{{4, 1}, {4, 1}, 1}, Dims{{3, 5000}, {}, 1}, Dims{{5, 6, 7}, {1, 1, 1}, 3},
                        Dims{{3, 4, 1, 5}, {3, 1, 1, 1}, 3}})
    forInterpreters("fused_reduce", [&](const Kernel &row) {
      std::vector<Tensor> in = {uniform(d.x, rng), uniform(d.u, rng)};
      Program p = statistics(d.axes);
      std::vector<std::vector<double>> want = evaluate(p, in);
      std::vector<Tensor> out = runProgram(row, p, in);
      EXPECT_EQ(out[0].dims.size() + size_t(d.axes), d.x.size());
      EXPECT_EQ(out[1].dims.size(), d.x.size());
      int64_t rows = out[0].elements(), length = in[0].elements() / rows;
      for (int64_t r = 0; r < rows; ++r) {
        ASSERT_NEAR(out[0].as<float>()[r], want[3][size_t(r * length)], 140 * 0x1p-24) << row.name << r;
        ASSERT_EQ(out[1].as<float>()[r], float(want[5][size_t(r * length)])) << row.name << r;
      }
    });
}

// A row varies along its axes although an operand lacks one of them: bias[C, 1] in rows of C x W.
TEST(FusedRows, OperandsThatLackRowAxes) {
  std::mt19937 rng(4);
  Program p;
  p.add(kBinaryOp, int64_t(BinaryKind::k_add), 0, 1); // 2
  reduce(p, Reduce::Max, 2);
  p.add(kBinaryOp, int64_t(BinaryKind::k_sub), 2, 3);
  p.results = {4};
  p.rowAxes = {2};
  forInterpreters("fused", [&](const Kernel &row) {
    std::vector<Tensor> in = {uniform({3, 40, 50}, rng), uniform({40, 1}, rng)};
    std::vector<double> want = evaluate(p, in).back();
    Tensor out = runProgram(row, p, in)[0];
    for (int64_t k = 0; k < out.elements(); ++k)
      ASSERT_NEAR(out.as<float>()[k], want[size_t(k)], 4 * 0x1p-24) << row.name << k;
  });
}

TEST(FusedRows, EmptyRows) {
  std::vector<Tensor> in = {zeros(DType::F32, {3, 0}), zeros(DType::F32, {3, 1})};
  in[1].as<float>()[2] = 2;
  forInterpreters("fused_reduce", [&](const Kernel &row) {
    std::vector<Tensor> out = runProgram(row, statistics(1), in);
    EXPECT_TRUE(std::isnan(out[0].as<float>()[2])) << "the mean of nothing";
    EXPECT_EQ(out[1].as<float>()[2], -INFINITY);
  });
}

TEST(FusedRows, NanAndInfinity) {
  std::vector<Tensor> in = {zeros(DType::F32, {4, 70}), zeros(DType::F32, {4, 1})};
  std::fill_n(in[1].as<float>(), 4, 1.0f);
  in[0].as<float>()[3] = NAN;
  in[0].as<float>()[70 + 69] = INFINITY;
  std::fill_n(in[0].as<float>() + 140, 70, -INFINITY);
  forInterpreters("fused_reduce", [&](const Kernel &row) {
    Tensor top = runProgram(row, statistics(1), in)[1];
    EXPECT_TRUE(std::isnan(top.as<float>()[0])) << row.name;
    EXPECT_EQ(top.as<float>()[1], INFINITY);
    EXPECT_EQ(top.as<float>()[2], -INFINITY);
    EXPECT_EQ(top.as<float>()[3], 0);
  });
}

// The order that program.h promises, spelled out.
float sumInOrder(const float *x, int64_t n, int lanes) {
  std::vector<float> total(size_t(lanes), 0.0f);
  for (int64_t begin = 0; begin < n; begin += kFusedChunk) {
    std::vector<float> lane(size_t(lanes), 0.0f);
    for (int64_t i = begin; i < std::min(n, begin + kFusedChunk); ++i)
      lane[size_t(i % lanes)] += x[i];
    for (size_t l = 0; l < lane.size(); ++l)
      total[l] += lane[l];
  }
  for (size_t half = total.size() / 2; half > 0; half /= 2)
    for (size_t l = 0; l < half; ++l)
      total[l] += total[l + half];
  return total[0];
}

TEST(FusedRows, FoldsTakeTheFixedOrder) {
  std::mt19937 rng(5);
  Program p;
  reduce(p, Reduce::Sum, 0);
  p.results = {1};
  p.shapes = {int64_t(FusedShape::Dropped)};
  p.rowAxes = {1};
  for (int64_t n : {1, 7, 8, 31, 64, 513, 2047, 2048, 2049, 10000})
    forInterpreters("fused_reduce", [&](const Kernel &row) {
      std::vector<Tensor> in = {uniform({3, n}, rng)};
      Tensor out = runProgram(row, p, in)[0];
      for (int64_t r = 0; r < 3; ++r)
        EXPECT_EQ(out.as<float>()[r], sumInOrder(in[0].as<float>() + r * n, n, fusedLanes(row.isa)))
            << row.name << " row of " << n;
    });
}

TEST(FusedRows, ProgramsThatBreakARuleAreRefused) {
  struct Bad {
    const char *says;
    std::function<void(Program &)> damage;
  };
  const Bad bad[] = {
      {"kind 4", [](Program &p) { p.words[2 * kFusedStride + 1] = 4; }},
      {"row_axes is 13", [](Program &p) { p.rowAxes = {13}; }},
      {"row_axes is -1", [](Program &p) { p.rowAxes = {-1}; }},
      {"with row_axes 0", [](Program &p) { p.rowAxes = {0}; }},
      {"reduction 9",
       [](Program &p) {
         for (int64_t i = 0; i < 8; ++i)
           reduce(p, Reduce::Sum, i == 0 ? 4 : 5 + i);
       }},
      {"shapes has", [](Program &p) { p.shapes.pop_back(); }},
      {"has shape 3", [](Program &p) { p.shapes[0] = 3; }},
      {"has shape -1", [](Program &p) { p.shapes[1] = -1; }},
      {"kept names value 1", [](Program &p) { p.kept = {1}; }},
      {"kept names value 2", [](Program &p) { p.kept = {2, 2}; }},
      {"kept names value 6", [](Program &p) { p.kept = {6}; }},
      {"kept has 17", [](Program &p) { p.kept.assign(17, 2); }},
  };
  for (const Bad &b : bad) {
    Program p = statistics(1);
    b.damage(p);
    std::vector<Attr> attrs = p.attrs();
    std::string error;
    EXPECT_FALSE(FusedProgram::parse(Attrs(attrs), 2, 2, error)) << b.says;
    EXPECT_NE(error.find(b.says), std::string::npos) << error;
  }
}

std::string refusal(const char *op, const Program &p, std::vector<std::vector<int64_t>> dims) {
  std::vector<TensorInfo> in;
  for (const std::vector<int64_t> &d : dims)
    in.push_back(TensorInfo::make(DType::F32, {d.begin(), d.end()}));
  std::vector<Attr> attrs = p.attrs();
  InferContext ctx;
  ctx.in = in;
  ctx.attrs = Attrs(attrs);
  ctx.out.resize(p.results.size());
  EXPECT_EQ(findOp(op)->infer(ctx), InferStatus::Error);
  return ctx.error;
}

TEST(FusedRows, ShapesThatDoNotFitAreRefused) {
  auto says = [](const std::string &error, const char *part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  says(refusal("fused_reduce", statistics(2), {{4}, {1}}), "fewer axes than row_axes 2");
  says(refusal("fused_reduce", statistics(1), {{4, 5}, {4, 5}}),
       "operand 1 f32[4, 5] reaches a reduced result");
  says(refusal("fused_reduce", statistics(1), {{4, 5}, {5}}), "its row axes must be 1");
  says(refusal("fused", statistics(1), {{4, 5}, {4, 1}}), "only fused_reduce allows");
  Program p = maskedSoftmax(false);
  p.rowAxes = {2};
  says(refusal("fused_reduce", p, {{int64_t(1) << 40, 1, 1}, {1, int64_t(1) << 20, 5}}), "too many elements");
  Program none;
  none.add(kUnaryOp, int64_t(UnaryKind::k_abs), 0).results = {1};
  says(refusal("fused_reduce", none, {{4}}), "row_axes is 0");
}

} // namespace
} // namespace dspark::test

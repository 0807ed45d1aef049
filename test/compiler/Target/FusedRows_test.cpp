// Generated code of programs that reduce rows against the catalogue's interpreter of the same program at the
// same level: both fold in the order that kernels/fused/program.h fixes, so they agree to the bit. (The
// interpreter is compared with an f64 evaluation in test/kernels/fused.)
#include "FusedHarness.h"
#include "test/kernels/kernel_case.h"
#include <cstring>

using namespace dspark;
using namespace dspark::test;

namespace {

FusedInstruction reduce(FusedReduce kind, int a) {
  return {FusedCategory::Reduce, uint8_t(kind), a, 0, 0, 0, 0};
}

/// A spec over rows: `uniform` inputs have one element per row.
FusedKernelSpec rows(int inputs, std::vector<FusedInstruction> code, std::vector<int> results,
                     std::vector<FusedShape> shapes, std::vector<int> kept, std::vector<int> uniform = {}) {
  FusedKernelSpec spec = contiguous(inputs, std::move(code), std::move(results));
  spec.program.rowAxes = 1;
  spec.program.shapes = std::move(shapes);
  spec.program.kept = std::move(kept);
  for (int k : uniform)
    spec.inner[size_t(k)] = 0;
  for (size_t r = 0; r < spec.program.results.size(); ++r)
    if (spec.program.body().isReduced(r))
      spec.inner[size_t(inputs) + r] = 0;
  return spec;
}

/// softmax(where(mask, x / 8 + bias, -inf)) with one bias per row; 0 x, 1 mask, 2 bias.
FusedKernelSpec softmaxSpec(bool keepsExponentials) {
  FusedKernelSpec spec =
      rows(3,
           {constant(0.125f), constant(-INFINITY), binary(BinaryKind::k_mul, 0, 3),
            binary(BinaryKind::k_add, 5, 2), select(1, 6, 4), reduce(FusedReduce::Max, 7),
            binary(BinaryKind::k_sub, 7, 8), unary(UnaryKind::k_exp, 9), reduce(FusedReduce::Sum, 10),
            unary(UnaryKind::k_reciprocal, 11), binary(BinaryKind::k_mul, 10, 12)},
           {13}, {FusedShape::Full}, keepsExponentials ? std::vector<int>{10} : std::vector<int>(), {2});
  spec.types[1] = DType::Bool;
  return spec;
}

/// s = a + b, its layer norm times c, and the square root of its mean square: results norm, s, root.
FusedKernelSpec normSpec(std::vector<int> kept) {
  return rows(3,
              {binary(BinaryKind::k_add, 0, 1), reduce(FusedReduce::Mean, 3), binary(BinaryKind::k_sub, 3, 4),
               binary(BinaryKind::k_mul, 5, 5), reduce(FusedReduce::Mean, 6), constant(1e-5f),
               binary(BinaryKind::k_add, 7, 8), unary(UnaryKind::k_rsqrt, 9),
               binary(BinaryKind::k_mul, 5, 10), binary(BinaryKind::k_mul, 11, 2),
               binary(BinaryKind::k_mul, 3, 3), reduce(FusedReduce::Mean, 13), unary(UnaryKind::k_sqrt, 14)},
              {12, 3, 15}, {FusedShape::Full, FusedShape::Full, FusedShape::Kept}, std::move(kept));
}

/// Least and largest of |x| and the sum of a number that is the same for the row: no result of full shape.
FusedKernelSpec statisticsSpec() {
  return rows(2,
              {unary(UnaryKind::k_abs, 0), reduce(FusedReduce::Min, 2), reduce(FusedReduce::Max, 0),
               reduce(FusedReduce::Sum, 1), binary(BinaryKind::k_mul, 4, 5)},
              {3, 6, 4}, {FusedShape::Dropped, FusedShape::Kept, FusedShape::Dropped}, {}, {1});
}

std::vector<FusedKernelSpec> allSpecs() {
  return {softmaxSpec(true), softmaxSpec(false), normSpec({}),
          normSpec({3}),     normSpec({3, 5}),   statisticsSpec()};
}

/// One call on both sides: operands of n0 rows of n1, and the results of each.
class Call {
public:
  Call(const FusedKernelSpec &spec, int64_t n0, int64_t n1, std::mt19937 &random)
      : spec(spec), n0(n0), n1(n1) {
    for (int k = 0; k < spec.program.inputs; ++k) {
      std::vector<int64_t> dims = {n0, spec.inner[size_t(k)] ? n1 : 1};
      if (spec.types[size_t(k)] == DType::Bool) {
        in.push_back(zeros(DType::Bool, dims));
        for (std::byte &byte : in.back().bytes)
          byte = std::byte(random() % 8 != 0);
      } else {
        in.push_back(uniform(dims, random));
      }
    }
  }

  std::vector<Tensor> interpreted(Isa level) {
    const FusedProgram &p = spec.program;
    std::vector<int64_t> words, results(p.results.begin(), p.results.end()), shapes,
        kept(p.kept.begin(), p.kept.end());
    for (const FusedInstruction &i : p.code)
      for (int64_t word : {int64_t(i.category), int64_t(i.kind), int64_t(i.a), int64_t(i.b), int64_t(i.c)})
        words.push_back(word);
    for (FusedShape shape : p.shapes)
      shapes.push_back(int64_t(shape));
    AttrList attrs;
    attrs.set("program", words).set("results", results).set("shapes", shapes).set("kept", kept);
    attrs.setFloats("params", paramsOf(p)).set("row_axes", std::vector<int64_t>{p.rowAxes});
    for (const Kernel &row : allKernels())
      if (row.op == std::string_view("fused_reduce") && row.isa == level &&
          std::string_view(row.name).find("generated") == std::string_view::npos)
        return runRow(row, in, attrs, results.size());
    ADD_FAILURE() << "no interpreter";
    return {};
  }

  std::vector<Tensor> generated(FusedFn function, bool inPlace = false) {
    std::vector<Tensor> inputs = in, out;
    std::vector<void *> operands;
    std::vector<int64_t> strides;
    for (size_t k = 0; k < spec.inner.size(); ++k) {
      strides.push_back(spec.inner[k] ? n1 : 1);
      bool isInput = int(k) < spec.program.inputs;
      if (!isInput)
        out.push_back(zeros(DType::F32, {n0, strides[k]}));
      operands.push_back(isInput ? inputs[k].bytes.data() : out.back().bytes.data());
    }
    if (inPlace) // the first result over the first input
      operands[size_t(spec.program.inputs)] = operands[0];
    std::vector<double> params = paramsOf(spec.program);
    std::vector<float> room(spec.program.kept.size() * size_t(fusedKeptStride(n1)) + 1, NAN);
    operands.push_back(params.data());
    operands.push_back(room.data());
    function(operands.data(), n0, n1, strides.data());
    if (inPlace)
      out[0] = inputs[0];
    return out;
  }

  void expectSame(const std::vector<Tensor> &got, const std::vector<Tensor> &want) const {
    ASSERT_EQ(got.size(), want.size());
    for (size_t r = 0; r < got.size(); ++r)
      for (int64_t k = 0; k < want[r].elements(); ++k) {
        float a = got[r].as<float>()[k], b = want[r].as<float>()[k];
        ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0)
            << "result " << r << " element " << k << " of " << n0 << " x " << n1 << ": generated " << a
            << ", interpreted " << b;
      }
  }

  const FusedKernelSpec &spec;
  int64_t n0, n1;
  std::vector<Tensor> in;
};

TEST(FusedRows, AgreeWithTheInterpreter) {
  std::vector<FusedKernelSpec> specs = allSpecs();
  std::mt19937 random(1);
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    for (const FusedKernelSpec &spec : specs) {
      FusedFn function = library.find(spec);
      ASSERT_NE(function, nullptr);
      for (int64_t n1 :
           {1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 64, 100, 384, 2047, 2048, 2049, 5000}) {
        Call call(spec, 3, n1, random);
        call.expectSame(call.generated(function), call.interpreted(level));
      }
    }
  }
}

TEST(FusedRows, NanAndInfinity) {
  std::vector<FusedKernelSpec> specs = allSpecs();
  std::mt19937 random(2);
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    for (const FusedKernelSpec &spec : specs)
      for (int64_t at : {0, 5, 36}) {
        Call call(spec, 4, 37, random);
        float *x = call.in[0].as<float>();
        x[at] = NAN;
        x[37 + at] = INFINITY;
        x[74 + at] = -INFINITY;
        std::fill_n(x + 111, 37, -INFINITY);
        call.expectSame(call.generated(library.find(spec)), call.interpreted(level));
      }
  }
}

TEST(FusedRows, EmptyRowsAndNoRows) {
  std::vector<FusedKernelSpec> specs = {statisticsSpec()};
  std::mt19937 random(3);
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    FusedFn function = library.find(specs[0]);
    Call empty(specs[0], 2, 0, random), none(specs[0], 0, 5, random);
    std::vector<Tensor> out = empty.generated(function);
    EXPECT_EQ(out[0].as<float>()[1], INFINITY);
    EXPECT_EQ(out[2].as<float>()[1], -INFINITY);
    none.generated(function);
  }
}

TEST(FusedRows, TheFirstResultMayReplaceAnInput) {
  std::vector<FusedKernelSpec> specs = {softmaxSpec(true), softmaxSpec(false), normSpec({}), normSpec({3})};
  std::mt19937 random(4);
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    for (const FusedKernelSpec &spec : specs)
      for (int64_t n1 : {5, 64, 77}) {
        Call call(spec, 6, n1, random);
        call.expectSame(call.generated(library.find(spec), true), call.generated(library.find(spec)));
      }
  }
}

// Every level compiles to a library without undefined symbols (the link fails otherwise), runnable here or
// not.
TEST(FusedRows, EveryLevelCompiles) {
  for (Isa level : {Isa::Baseline, Isa::Avx2, Isa::Avx512})
    EXPECT_FALSE(compileOrFail(allSpecs(), level).empty());
}

TEST(FusedRows, SpecsThatBreakARule) {
  FusedKernelSpec spec = statisticsSpec(), other = statisticsSpec();
  other.program.kept = {2};
  EXPECT_NE(spec.symbol(), other.symbol());
  spec.inner[2] = 1;
  StatusOr<FusedLibrary> library = compileFused(std::vector{spec}, Isa::Avx2, {.useCache = false});
  ASSERT_FALSE(library.isOk());
  EXPECT_EQ(library.status().message(), "fused kernel 0: operand 2 has inner stride 1");
  spec = statisticsSpec();
  spec.program.rowAxes = 0;
  EXPECT_FALSE(canGenerate(spec.program));
}

} // namespace

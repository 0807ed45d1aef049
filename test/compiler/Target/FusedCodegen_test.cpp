// Generated code of whole programs against the f64 evaluator with its error bound, over tails, strides and
// in-place operands; and the promises of the library: no dependencies, shared code, refusal of what it cannot
// do.
#include "FusedHarness.h"
#include "FusedReference.h"
#include <cstring>
#include <llvm/ADT/StringSet.h>
#include <llvm/Object/ELFObjectFile.h>
#include <random>

using namespace dspark;
using namespace dspark::test;

namespace {

/// Programs that canGenerate() accepts, with random shape, kinds and operand patterns.
class RandomSpecs {
public:
  explicit RandomSpecs(uint32_t seed) : random(seed) {}

  FusedKernelSpec next() {
    int inputs = pick(1, 4), length = pick(1, 14);
    std::vector<FusedInstruction> code;
    while (int(code.size()) < length) {
      code.push_back(instruction(inputs + int(code.size())));
      if (!canGenerate(program(inputs, code, {0})))
        code.pop_back();
    }
    std::vector<int> results = {inputs + length - 1};
    for (int more = pick(0, 3); more > 1; --more) // sometimes a second result, now and then an input
      results.push_back(pick(0, inputs + length - 1));
    FusedKernelSpec spec = contiguous(inputs, std::move(code), std::move(results));
    for (int k = 0; k < spec.program.inputs; ++k) {
      spec.inner[k] = pick(0, 3) != 0;
      spec.types[k] = pick(0, 4) == 0 ? DType::Bool : DType::F32;
    }
    return spec;
  }
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); }
  float value(float limit) { return std::uniform_real_distribution<float>(-limit, limit)(random); }

private:
  FusedInstruction instruction(int defined) {
    int a = pick(0, defined - 1), b = pick(0, defined - 1), c = pick(0, defined - 1);
    switch (pick(0, 9)) {
    case 0:
      return constant(pick(0, 2) ? value(3) : float(pick(-2, 3)));
    case 1:
      return clip(a, value(2) - 2, value(2) + 2);
    case 2:
      return compare(CompareKind(pick(0, int(CompareKind::kCount) - 1)), a, b);
    case 3:
      return select(a, b, c);
    case 4:
    case 5:
    case 6:
      return binary(BinaryKind(pick(0, int(BinaryKind::kCount) - 1)), a, b);
    default:
      return unary(UnaryKind(pick(0, int(UnaryKind::kCount) - 1)), a);
    }
  }
  std::mt19937 random;
};

/// Operand memory for one call, with a guard behind each row that must stay untouched.
class Call {
public:
  Call(const FusedKernelSpec &spec, int64_t n0, int64_t n1, RandomSpecs &random)
      : spec(spec), n0(n0), n1(n1) {
    for (size_t k = 0; k < spec.inner.size(); ++k) {
      bool isOutput = int(k) >= spec.program.inputs;
      int64_t row = spec.inner[k] ? n1 : 1;
      // A row stride of 0 repeats the row; otherwise rows may lie apart.
      stride.push_back(!isOutput && random.pick(0, 3) == 0 ? 0 : row + random.pick(0, 2) * 3);
      size_t bytes = (stride[k] * (n0 - 1) + row + kGuard) * (spec.types[k] == DType::Bool ? 1 : 4);
      memory.emplace_back(bytes);
      if (spec.types[k] == DType::Bool)
        for (uint8_t &byte : memory[k])
          byte = random.pick(0, 1);
      else
        for (size_t i = 0; i < bytes; i += 4) {
          float x = isOutput ? kUntouched : random.value(4);
          std::memcpy(&memory[k][i], &x, 4);
        }
    }
  }

  float read(size_t k, int64_t row, int64_t column) const {
    int64_t at = row * stride[k] + column * spec.inner[k];
    if (spec.types[k] == DType::Bool)
      return memory[k][at];
    float x;
    std::memcpy(&x, &memory[k][at * 4], 4);
    return x;
  }
  void run(FusedFn function) {
    std::vector<void *> operands;
    for (auto &block : memory)
      operands.push_back(block.data());
    std::vector<double> params = paramsOf(spec.program);
    operands.push_back(params.data());
    function(operands.data(), n0, n1, stride.data());
  }

  /// Compares each result with its bound, and what lies between and behind the rows with kUntouched. Returns
  /// how many elements could be judged.
  size_t check(const std::vector<std::vector<Bounded>> &want) const {
    size_t judged = 0;
    for (size_t r = 0; r < spec.program.results.size(); ++r) {
      size_t k = spec.program.inputs + r;
      for (int64_t i = 0; i < n0; ++i) {
        for (int64_t j = 0; j < n1; ++j) {
          const Bounded &b = want[i * n1 + j][r];
          float got = read(k, i, j);
          if (b.unknown)
            continue;
          ++judged;
          bool fine = std::isnan(b.value)   ? std::isnan(got)
                      : std::isinf(b.value) ? got == b.value
                                            : std::fabs(got - b.value) <= b.error + 1e-300;
          EXPECT_TRUE(fine) << "result " << r << " [" << i << ", " << j << "] of " << n0 << " x " << n1
                            << ": " << got << ", not " << b.value << " +- " << b.error;
          if (!fine)
            return judged;
        }
        int64_t end = i + 1 < n0 ? stride[k] : n1 + kGuard;
        for (int64_t j = n1; j < end; ++j)
          EXPECT_EQ(read(k, i, j), kUntouched) << "written behind row " << i << " at column " << j;
      }
    }
    return judged;
  }
  std::vector<std::vector<Bounded>> reference() const {
    ReferenceEvaluator evaluate(spec.program);
    std::vector<std::vector<Bounded>> want;
    for (int64_t i = 0; i < n0; ++i)
      for (int64_t j = 0; j < n1; ++j) {
        std::vector<float> x;
        for (int k = 0; k < spec.program.inputs; ++k)
          x.push_back(read(k, i, j));
        want.push_back(evaluate(x));
      }
    return want;
  }

  static constexpr int64_t kGuard = 40;
  static constexpr float kUntouched = -12345.5f;
  const FusedKernelSpec &spec;
  int64_t n0, n1;
  std::vector<int64_t> stride;
  std::vector<std::vector<uint8_t>> memory;
};

std::string describe(const FusedKernelSpec &spec) {
  std::string text = "inputs " + std::to_string(spec.program.inputs) + ":";
  for (const FusedInstruction &i : spec.program.code) {
    std::string_view kind = i.category == FusedCategory::Unary     ? kindName(UnaryKind(i.kind))
                            : i.category == FusedCategory::Binary  ? kindName(BinaryKind(i.kind))
                            : i.category == FusedCategory::Compare ? kindName(CompareKind(i.kind))
                            : i.category == FusedCategory::Select  ? "select"
                            : i.category == FusedCategory::Clip    ? "clip"
                                                                   : "constant";
    text += " " + std::string(kind) + "(" + std::to_string(i.a) + "," + std::to_string(i.b) + "," +
            std::to_string(i.c) + "; " + std::to_string(i.alpha) + "," + std::to_string(i.beta) + ")";
  }
  return text;
}

TEST(FusedCodegen, RandomProgramsAgreeWithTheReference) {
  RandomSpecs random(20);
  std::vector<FusedKernelSpec> specs;
  for (int i = 0; i < 120; ++i)
    specs.push_back(random.next());
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    size_t judged = 0, all = 0;
    for (const FusedKernelSpec &spec : specs) {
      SCOPED_TRACE(describe(spec) + " at " + std::string(isaName(level)));
      FusedFn function = library.find(spec);
      ASSERT_NE(function, nullptr);
      for (int shape = 0; shape < 6; ++shape) {
        Call call(spec, random.pick(1, 4), random.pick(1, 90), random);
        auto want = call.reference();
        call.run(function);
        judged += call.check(want);
        all += call.n0 * call.n1 * spec.program.results.size();
      }
    }
    EXPECT_GT(judged, all / 2) << "the reference could judge too few elements";
  }
}

// y0 = sigmoid(a + b) * c, y1 = a < b, with c one value per row and b a row of booleans.
FusedKernelSpec mixedSpec() {
  FusedKernelSpec spec = contiguous(3,
                                    {binary(BinaryKind::k_add, 0, 1), unary(UnaryKind::k_sigmoid, 3),
                                     binary(BinaryKind::k_mul, 4, 2), compare(CompareKind::k_lt, 0, 1)},
                                    {5, 6});
  spec.inner[2] = 0;
  spec.types[1] = DType::Bool;
  return spec;
}

TEST(FusedCodegen, EveryTailLength) {
  std::vector<FusedKernelSpec> specs = {mixedSpec()};
  RandomSpecs random(3);
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    FusedFn function = library.find(specs[0]);
    ASSERT_NE(function, nullptr);
    for (int64_t n1 = 0; n1 <= 70; ++n1) {
      Call call(specs[0], 3, n1, random);
      auto want = call.reference();
      call.run(function);
      EXPECT_EQ(call.check(want), size_t(2 * 3 * n1));
    }
    Call none(specs[0], 1, 5, random);
    none.n0 = 0;
    none.run(function); // no rows: nothing is read or written
    none.n0 = 1;
    EXPECT_EQ(none.read(3, 0, 0), Call::kUntouched);
  }
}

// Vector body, masked tail and every split of a row into calls give the same bits.
TEST(FusedCodegen, ResultsDoNotDependOnTheSplit) {
  FusedKernelSpec spec =
      contiguous(2,
                 {binary(BinaryKind::k_mul, 0, 1), binary(BinaryKind::k_add, 2, 0),
                  unary(UnaryKind::k_gelu, 3), unary(UnaryKind::k_tanh, 4), unary(UnaryKind::k_softplus, 5)},
                 {6});
  RandomSpecs random(4);
  constexpr int64_t n = 203;
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail({spec}, level));
    FusedFn function = library.find(spec);
    ASSERT_NE(function, nullptr);
    std::vector<float> a(n), b(n), whole(n), split(n);
    for (int64_t i = 0; i < n; ++i)
      a[i] = random.value(5), b[i] = random.value(5);
    int64_t strides[] = {0, 0, 0};
    void *operands[] = {a.data(), b.data(), whole.data()};
    function(operands, 1, n, strides);
    for (int64_t step : {1, 3, 7, 8, 50}) {
      for (int64_t i = 0; i < n; i += step) {
        void *part[] = {a.data() + i, b.data() + i, split.data() + i};
        function(part, 1, std::min(step, n - i), strides);
      }
      EXPECT_EQ(std::memcmp(whole.data(), split.data(), n * sizeof(float)), 0) << "step " << step;
    }
  }
}

TEST(FusedCodegen, OutputMayReplaceAnInput) {
  std::vector<FusedKernelSpec> specs = {mixedSpec()};
  RandomSpecs random(5);
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    FusedFn function = library.find(specs[0]);
    ASSERT_NE(function, nullptr);
    for (int64_t n1 : {1, 15, 16, 31, 70}) {
      Call apart(specs[0], 2, n1, random), within = apart;
      int64_t strides[] = {n1, apart.stride[1], apart.stride[2], n1, n1};
      std::vector<float> x(2 * n1), first(2 * n1), second(2 * n1), third(2 * n1);
      for (float &value : x)
        value = random.value(3);
      void *separate[] = {x.data(), apart.memory[1].data(), apart.memory[2].data(), first.data(),
                          second.data()};
      function(separate, 2, n1, strides);
      void *inPlace[] = {x.data(), apart.memory[1].data(), apart.memory[2].data(), x.data(), third.data()};
      function(inPlace, 2, n1, strides);
      EXPECT_EQ(x, first);
      EXPECT_EQ(third, second);
    }
  }
}

TEST(FusedCodegen, CopyOfAnInputCallsNothing) {
  // A plain copy loop is what LLVM likes to turn into memcpy.
  FusedKernelSpec spec = contiguous(1, {}, {0});
  LoadedLibrary library(compileOrFail({spec}, Isa::Baseline));
  std::vector<float> x(37, 2.5f), y(37);
  void *operands[] = {x.data(), y.data()};
  int64_t strides[] = {0, 0};
  library.find(spec)(operands, 1, 37, strides);
  EXPECT_EQ(x, y);
}

// Every kind of instruction in its own kernel, at every level, runnable or not.
TEST(FusedCodegen, LibrariesNeedNothingAndExportKernelsOnly) {
  std::vector<FusedKernelSpec> specs = {contiguous(1, {}, {0}), mixedSpec()};
  for (int i = 0; i < int(UnaryKind::kCount); ++i)
    specs.push_back(contiguous(1, {unary(UnaryKind(i), 0)}, {1}));
  for (int i = 0; i < int(BinaryKind::kCount); ++i)
    specs.push_back(contiguous(2, {binary(BinaryKind(i), 0, 1)}, {2}));
  for (float exponent : {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 0.5f, -0.5f, -1.0f})
    specs.push_back(contiguous(1, {constant(exponent), binary(BinaryKind::k_pow, 0, 1)}, {2}));
  std::erase_if(specs, [](const FusedKernelSpec &spec) { return !canGenerate(spec.program); });
  llvm::StringSet<> symbols;
  for (const FusedKernelSpec &spec : specs)
    symbols.insert(spec.symbol());
  for (Isa level : {Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    std::vector<std::byte> elf = compileOrFail(specs, level);
    auto object = llvm::object::ObjectFile::createELFObjectFile(
        {{reinterpret_cast<const char *>(elf.data()), elf.size()}, "fused"});
    ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
    auto *file = llvm::cast<llvm::object::ELF64LEObjectFile>(object->get());
    size_t exported = 0;
    for (const auto &symbol : file->getDynamicSymbolIterators()) {
      ASSERT_FALSE(*symbol.getFlags() & llvm::object::SymbolRef::SF_Undefined) << symbol.getName()->str();
      EXPECT_TRUE(symbols.contains(*symbol.getName())) << symbol.getName()->str();
      ++exported;
    }
    EXPECT_EQ(exported, symbols.size());
    auto entries = file->getELFFile().dynamicEntries();
    ASSERT_TRUE(bool(entries));
    for (const auto &entry : *entries) {
      EXPECT_NE(entry.getTag(), uint64_t(llvm::ELF::DT_NEEDED));
      EXPECT_NE(entry.getTag(), uint64_t(llvm::ELF::DT_TEXTREL));
    }
  }
}

TEST(FusedCodegen, EqualSpecsShareASymbolAndCode) {
  FusedKernelSpec a = mixedSpec(), same = mixedSpec(), stride = mixedSpec(), type = mixedSpec(),
                  value = mixedSpec();
  stride.inner[2] = 1;
  type.types[1] = DType::F32;
  value.program.code[0] = binary(BinaryKind::k_sub, 0, 1);
  EXPECT_EQ(a.symbol(), same.symbol());
  for (const FusedKernelSpec &other : {stride, type, value})
    EXPECT_NE(a.symbol(), other.symbol());
  StatusOr<FusedLibrary> library = compileFused(std::vector{a, same, stride}, Isa::Avx2, {.useCache = false});
  ASSERT_TRUE(library.isOk());
  EXPECT_EQ(library->compiled, 2);
}

TEST(FusedCodegen, ConstantsAreParameters) {
  auto affine = [](float scale, float shift) {
    return contiguous(
        1,
        {constant(scale), constant(shift), binary(BinaryKind::k_mul, 0, 1), binary(BinaryKind::k_add, 3, 2)},
        {4});
  };
  FusedKernelSpec a = affine(2, 3), b = affine(0.1f, -5);
  ASSERT_EQ(a.symbol(), b.symbol());
  auto power = [](float exponent) {
    return contiguous(1, {constant(exponent), binary(BinaryKind::k_pow, 0, 1)}, {2});
  };
  EXPECT_NE(power(2).symbol(), power(3).symbol()) << "an exponent decides what the code is";
  EXPECT_NE(contiguous(1, {clip(0, 0, 1)}, {1}).symbol(), contiguous(1, {clip(0, 0, 2)}, {1}).symbol());
  RandomSpecs random(6);
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail({a, b, power(2), power(3)}, level));
    for (const FusedKernelSpec &spec : {a, b, power(2), power(3)}) {
      Call call(spec, 2, 35, random);
      auto want = call.reference();
      call.run(library.find(spec));
      EXPECT_EQ(call.check(want), 70u);
    }
  }
}

TEST(FusedCodegen, CanGenerateRefusesWhatLosesAccuracy) {
  auto takes = [](std::vector<FusedInstruction> code) {
    int last = int(code.size()) + 1;
    return canGenerate(program(2, std::move(code), {last}));
  };
  EXPECT_FALSE(takes({binary(BinaryKind::k_pow, 0, 1)}));                 // exponent not constant
  EXPECT_FALSE(takes({constant(2.5f), binary(BinaryKind::k_pow, 0, 2)})); // no exact form
  EXPECT_TRUE(takes({constant(2.0f), binary(BinaryKind::k_pow, 0, 2)}));  // a square
  EXPECT_FALSE(takes({binary(BinaryKind::k_fmod, 0, 1)}));
  EXPECT_FALSE(takes({unary(UnaryKind::k_bitnot, 0)}));
  EXPECT_FALSE(takes({binary(BinaryKind::k_add, 0, 2)})); // its own value
  EXPECT_FALSE(takes({clip(0, NAN, 1)}));
  EXPECT_FALSE(canGenerate(program(1, {}, {1}))); // result that nothing makes
  EXPECT_FALSE(canGenerate(program(1, {}, {})));
}

TEST(FusedCodegen, BadSpecsAreNamed) {
  auto message = [](FusedKernelSpec spec) {
    StatusOr<FusedLibrary> library =
        compileFused(std::vector{mixedSpec(), spec}, Isa::Avx2, {.useCache = false});
    EXPECT_FALSE(library.isOk());
    EXPECT_EQ(library.status().code(), Code::InvalidArgument);
    return library.status().message();
  };
  FusedKernelSpec spec = mixedSpec();
  spec.inner[4] = 0;
  EXPECT_EQ(message(spec), "fused kernel 1: operand 4 has inner stride 0");
  spec = mixedSpec();
  spec.types[0] = DType::F16;
  EXPECT_EQ(message(spec), "fused kernel 1: operand 0 has type f16");
  spec = mixedSpec();
  spec.types.pop_back();
  EXPECT_EQ(message(spec),
            "fused kernel 1: the program has 5 operands, but 5 inner strides and 4 types are given");
  spec = contiguous(2, {binary(BinaryKind::k_mod, 0, 1)}, {2});
  EXPECT_EQ(message(spec), "fused kernel 1: the program has an instruction without generated code");
}

} // namespace

// Every row of the elementwise operators against arithmetic written out here with naive broadcasting.
#include "kernels/elementwise/scalar.h"
#include "test/kernels/kernel_case.h"

namespace dspark::test {
namespace {

// Shapes that reach every way of reading operands: contiguous, scalar, row and column broadcasts, short rows
// that are gathered, long rows that straddle tiles, outer and alternating broadcasts, and nothing at all.
struct Shapes {
  std::vector<int64_t> a, b;
};
const Shapes kShapes[] = {{{7}, {7}},
                          {{40000}, {40000}},
                          {{40000}, {}},
                          {{1}, {33001}},
                          {{130, 300}, {300}},
                          {{130, 300}, {130, 1}},
                          {{5000, 7}, {7}},
                          {{7}, {5000, 1}},
                          {{2500, 1}, {9}},
                          {{3, 1, 5}, {4, 1}},
                          {{2, 3, 1, 700}, {3, 2, 1}},
                          {{2, 1, 3, 1, 5}, {4, 1, 6, 1}},
                          {{0, 3}, {3}},
                          {{}, {}},
                          {{20, 1, 900}, {20, 2, 900}}};

std::vector<double> values(const Tensor &t) {
  std::vector<double> out(size_t(t.elements()));
  loadAsF64(t.type, t.bytes.data(), 0, t.elements(), out.data());
  return out;
}
Tensor of(DType type, const std::vector<double> &v) {
  Tensor t = zeros(type, {int64_t(v.size())});
  storeFromF64(type, t.bytes.data(), 0, t.elements(), v.data());
  return t;
}
Tensor make(DType type, std::vector<int64_t> dims, std::mt19937 &rng, double low, double high) {
  Tensor t = zeros(type, std::move(dims));
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> v(size_t(t.elements()));
  for (double &x : v)
    x = isFloat(type) ? draw(rng) : std::floor(draw(rng));
  storeFromF64(type, t.bytes.data(), 0, t.elements(), v.data());
  return t;
}
/// Index into an operand of the element that makes result k.
int64_t indexOf(const std::vector<int64_t> &out, const std::vector<int64_t> &in, int64_t k) {
  int64_t index = 0, stride = 1;
  for (size_t i = out.size(), j = in.size(); i-- > 0; k /= out[i])
    if (j > 0) {
      --j;
      index += in[j] == 1 ? 0 : k % out[i] * stride;
      stride *= in[j];
    }
  return index;
}
/// Half an ulp of the type, relative, plus what a function of the library may add.
double tolerance(DType type) {
  switch (type) {
  case DType::F16:
    return 0x1p-11;
  case DType::BF16:
    return 0x1p-8;
  case DType::F64:
    return 0x1p-52;
  default:
    return 0x1p-24;
  }
}
void expectNear(double found, double expected, double relative, const std::string &what) {
  if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(found)) << what;
  else if (std::isinf(expected))
    EXPECT_EQ(found, expected) << what;
  else
    EXPECT_LE(std::fabs(found - expected), relative * std::fabs(expected) + 1e-7 * (relative > 1e-9))
        << what << found << expected;
}

const DType kFloats[] = {DType::F32, DType::F64, DType::F16, DType::BF16};
const DType kIntegers[] = {DType::U8,  DType::I8,  DType::U16, DType::I16,
                           DType::U32, DType::I32, DType::U64, DType::I64};

bool takes(const Kernel &row, std::vector<Tensor> &in, DType out, const AttrList &attrs) {
  std::vector<TensorView> views;
  for (Tensor &t : in)
    views.push_back(t.view());
  TensorView result{nullptr, nullptr, 0, out};
  KernelCall call;
  call.in = views;
  call.out = {&result, 1};
  call.attrs = attrs.view();
  return !row.accepts || row.accepts(call);
}

TEST(Unary, EveryRowKindAndFloatType) {
  std::mt19937 rng(1);
  for (const Kernel *row : rowsOf("unary"))
    for (DType type : kFloats)
      for (int k = 0; k < int(UnaryKind::kCount); ++k) {
        UnaryKind kind = UnaryKind(k);
        std::string name(kindName(kind));
        AttrList named;
        named.set("kind", name.c_str()).setFloat("alpha", 0.75).setFloat("beta", 0.25);
        named.setFloat("lambd", 0.75).setFloat("bias", 0.25);
        bool unit =
            name.starts_with("a") && name != "abs" && name != "asinh" && name != "atan" && name != "acosh";
        std::vector<Tensor> in = {make(type, {1031}, rng,
                                       unit              ? -0.99
                                       : name == "acosh" ? 1
                                                         : -4,
                                       unit ? 0.99 : 4)};
        DType result = isPredicate(kind) ? DType::Bool : type;
        if (!unaryTakes(kind, type) || !takes(*row, in, result, named))
          continue;
        std::vector<double> x = values(in[0]), y = values(runRow(*row, in, named)[0]);
        // The loops have f32's rounding inside; gelu and elu also cancel, which the absolute term covers.
        double bound = tolerance(type) + (type == DType::F64 ? 0 : 8 * 0x1p-24);
        double alpha = kind == UnaryKind::k_isinf ? 1 : 0.75, beta = kind == UnaryKind::k_isinf ? 1 : 0.25;
        for (size_t i = 0; i < x.size(); ++i)
          expectNear(y[i], unaryValue(kind, x[i], alpha, beta), bound, name + " " + row->name + " ");
      }
}

/// NaN, infinities, zeros and the ends of the type give what the scalar definition gives, in vectors and
/// tails.
TEST(Unary, OddNumbers) {
  constexpr double kInf = INFINITY;
  constexpr double kOdd[] = {NAN, kInf, -kInf, 0.0, -0.0, 1, -1, 0.5, -0.5, 88, -104, 1e4, -1e4, 6e4, -6e4};
  for (const Kernel *row : rowsOf("unary"))
    for (DType type : kFloats)
      for (int k = 0; k < int(UnaryKind::kCount); ++k) {
        UnaryKind kind = UnaryKind(k);
        std::string name(kindName(kind));
        AttrList attrs;
        attrs.set("kind", name.c_str()).setFloat("alpha", 0.75).setFloat("beta", 0.25);
        attrs.setFloat("lambd", 0.75).setFloat("bias", 0.25);
        std::vector<double> odd;
        for (size_t i = 0; i < 67; ++i)
          odd.push_back(kOdd[i % std::size(kOdd)]);
        std::vector<Tensor> operands = {of(type, odd)};
        DType result = isPredicate(kind) ? DType::Bool : type;
        if (!unaryTakes(kind, type) || !takes(*row, operands, result, attrs))
          continue;
        std::vector<double> x = values(operands[0]), y = values(runRow(*row, operands, attrs)[0]);
        double alpha = kind == UnaryKind::k_isinf ? 1 : 0.75, beta = kind == UnaryKind::k_isinf ? 1 : 0.25;
        for (size_t i = 0; i < x.size(); ++i) {
          double expected = unaryValue(kind, x[i], alpha, beta);
          expectNear(y[i], values(of(result, {expected}))[0],
                     2 * tolerance(type) + (type == DType::F64 ? 0 : 8 * 0x1p-24),
                     name + " " + row->name + " of " + std::to_string(x[i]) + " ");
        }
      }
}

TEST(Unary, Integers) {
  std::mt19937 rng(2);
  for (const Kernel *row : rowsOf("unary"))
    for (DType type : kIntegers)
      for (const char *kind : {"abs", "neg", "sign", "relu", "bitnot"}) {
        AttrList attrs;
        attrs.set("kind", kind);
        std::vector<Tensor> in = {make(type, {20001}, rng, isSigned(type) ? -100 : 0, 100)};
        if (!takes(*row, in, type, attrs))
          continue;
        Tensor out = runRow(*row, in, attrs)[0];
        for (int64_t i = 0; i < 20001; i += 17)
          dispatchNumber(type, [&]<typename T>() {
            if constexpr (std::is_integral_v<T>) {
              T x = in[0].as<T>()[i], y = out.as<T>()[i];
              std::string name = kind;
              T expected = name == "abs"    ? T(x < 0 ? -x : x)
                           : name == "neg"  ? T(-x)
                           : name == "sign" ? T(x > 0   ? 1
                                                : x < 0 ? -1
                                                        : 0)
                           : name == "relu" ? T(x > 0 ? x : 0)
                                            : T(~x);
              EXPECT_EQ(y, expected) << kind << row->name;
            }
          });
      }
}

TEST(Binary, EveryRowOnEveryShape) {
  std::mt19937 rng(3);
  for (const Kernel *row : rowsOf("binary"))
    for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8})
      for (const Shapes &shapes : kShapes)
        for (const char *name : {"add", "sub", "div", "max"}) {
          if (*name != 'a' && (type == DType::F64 || type == DType::F16 || type == DType::BF16))
            continue; // which operand elements meet does not depend on the kind
          AttrList attrs;
          attrs.set("kind", name);
          std::vector<Tensor> in = {make(type, shapes.a, rng, 1, 100), make(type, shapes.b, rng, 1, 100)};
          if (!takes(*row, in, type, attrs))
            continue;
          Tensor out = runRow(*row, in, attrs)[0];
          std::vector<double> a = values(in[0]), b = values(in[1]), y = values(out);
          for (size_t k = 0; k < y.size(); k += y.size() > 5000 ? 101 : 1) {
            double x = a[size_t(indexOf(out.dims, in[0].dims, int64_t(k)))],
                   z = b[size_t(indexOf(out.dims, in[1].dims, int64_t(k)))];
            double exact = *name == 'a'   ? x + z
                           : *name == 's' ? x - z
                           : *name == 'd' ? x / z
                                          : std::max(x, z);
            if (!isFloat(type))
              exact = type == DType::U8 ? uint8_t(int64_t(exact)) : std::trunc(exact);
            expectNear(y[k], exact, isFloat(type) ? tolerance(type) : 0,
                       std::string(row->name) + " " + name + " ");
          }
        }
}

TEST(Binary, EveryKindOnFloats) {
  std::mt19937 rng(4);
  for (const Kernel *row : rowsOf("binary"))
    for (DType type : kFloats)
      for (int k = 0; k < int(BinaryKind::kCount); ++k)
        for (bool scalar : {false, true}) {
          BinaryKind kind = BinaryKind(k);
          std::string name(kindName(kind));
          AttrList attrs;
          attrs.set("kind", name.c_str());
          std::vector<Tensor> in = {make(type, {777}, rng, kind == BinaryKind::k_pow ? 0.5 : -9, 9),
                                    make(type, {scalar ? 1 : 777}, rng, -3, 3)};
          if (scalar && kind == BinaryKind::k_pow)
            storeFromF64(type, in[1].bytes.data(), 0, 1, std::vector<double>{0.5}.data());
          if (!binaryTakes(kind, type) || !takes(*row, in, type, attrs))
            continue;
          std::vector<double> a = values(in[0]), b = values(in[1]), y = values(runRow(*row, in, attrs)[0]);
          for (size_t i = 0; i < y.size(); ++i)
            expectNear(y[i], binaryValue(kind, a[i], b[scalar ? 0 : i]),
                       tolerance(type) + (type == DType::F64 ? 0 : 2 * 0x1p-24),
                       name + " " + row->name + " ");
        }
}

TEST(Binary, IntegerEdges) {
  auto run = [](const char *kind, int32_t a, int32_t b) {
    AttrList attrs;
    attrs.set("kind", kind);
    std::vector<Tensor> in = {filled<int32_t>(DType::I32, {1}, [&] { return a; }),
                              filled<int32_t>(DType::I32, {1}, [&] { return b; })};
    for (const Kernel *row : rowsOf("binary"))
      if (takes(*row, in, DType::I32, attrs) && std::string_view(row->name) == "binary_integer")
        return *runRow(*row, in, attrs)[0].as<int32_t>();
    return 0;
  };
  EXPECT_EQ(run("div", -7, 2), -3);
  EXPECT_EQ(run("div", INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(run("div", 5, 0), 0);
  EXPECT_EQ(run("mod", -7, 3), 2);
  EXPECT_EQ(run("mod", 7, -3), -2);
  EXPECT_EQ(run("fmod", -7, 3), -1);
  EXPECT_EQ(run("pow", 3, 4), 81);
  EXPECT_EQ(run("pow", 2, -1), 0);
  EXPECT_EQ(run("shl", 1, 33), 0);
  EXPECT_EQ(run("shr", -8, 1), -4);
  EXPECT_EQ(run("shr", -8, 40), -1);
  EXPECT_EQ(run("add", INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(run("mul", 65536, 65536), 0);
}

TEST(Compare, EveryRowAndType) {
  std::mt19937 rng(5);
  for (const Kernel *row : rowsOf("compare"))
    for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::I64, DType::Bool})
      for (const Shapes &shapes : kShapes)
        for (const char *name : {"eq", "lt", "ge"}) {
          AttrList attrs;
          attrs.set("kind", name);
          std::vector<Tensor> in = {make(type, shapes.a, rng, 0, 2), make(type, shapes.b, rng, 0, 2)};
          if (!takes(*row, in, DType::Bool, attrs))
            continue;
          Tensor out = runRow(*row, in, attrs)[0];
          std::vector<double> a = values(in[0]), b = values(in[1]);
          for (int64_t k = 0; k < out.elements(); k += out.elements() > 5000 ? 101 : 1) {
            double x = a[size_t(indexOf(out.dims, in[0].dims, k))],
                   z = b[size_t(indexOf(out.dims, in[1].dims, k))];
            bool expected = *name == 'e' ? x == z : *name == 'l' ? x < z : x >= z;
            ASSERT_EQ(out.as<uint8_t>()[k], uint8_t(expected)) << row->name << name;
          }
        }
}

TEST(Select, EveryWidthAndShape) {
  std::mt19937 rng(6);
  const Kernel *row = rowsOf("select")[0];
  for (DType type : {DType::U8, DType::F16, DType::F32, DType::I64, DType::C128})
    for (const Shapes &shapes : kShapes) {
      std::vector<Tensor> in = {make(DType::Bool, shapes.a, rng, 0, 2), zeros(type, shapes.b),
                                zeros(type, {1})};
      for (size_t operand : {1, 2})
        for (std::byte &byte : in[operand].bytes)
          byte = std::byte(rng());
      Tensor out = runRow(*row, in, AttrList())[0];
      size_t width = size_t(dtypeBits(type)) / 8;
      for (int64_t k = 0; k < out.elements(); k += out.elements() > 5000 ? 101 : 1) {
        bool first = in[0].as<uint8_t>()[indexOf(out.dims, in[0].dims, k)];
        const std::byte *expected =
            first ? &in[1].bytes[size_t(indexOf(out.dims, in[1].dims, k)) * width] : in[2].bytes.data();
        ASSERT_EQ(std::memcmp(&out.bytes[size_t(k) * width], expected, width), 0);
      }
    }
}

TEST(Clip, EveryRow) {
  std::mt19937 rng(7);
  for (const Kernel *row : rowsOf("clip"))
    for (DType type : {DType::F32, DType::F64, DType::F16, DType::I32, DType::U8})
      for (int bounds = 0; bounds < 4; ++bounds) {
        std::vector<Tensor> in = {make(type, {20011}, rng, 0, 100), Tensor(), Tensor()};
        for (size_t k : {1, 2})
          if (bounds & int(k))
            in[k] = make(type, {}, rng, k == 1 ? 20 : 60, k == 1 ? 30 : 70);
        if (!takes(*row, in, type, AttrList()))
          continue;
        std::vector<double> x = values(in[0]), y = values(runRow(*row, in, AttrList())[0]);
        for (size_t i = 0; i < x.size(); i += 11) {
          double expected = bounds & 1 ? std::max(x[i], values(in[1])[0]) : x[i];
          EXPECT_EQ(y[i], bounds & 2 ? std::min(expected, values(in[2])[0]) : expected) << row->name;
        }
      }
}

TEST(Cast, EveryPairOfTypes) {
  std::mt19937 rng(8);
  for (int s = 1; s < kDTypeCount; ++s)
    for (int d = 1; d < kDTypeCount; ++d) {
      DType from = DType(s), to = DType(d);
      auto real = [](DType t) {
        return dtypeBits(t) > 0 && t != DType::C64 && t != DType::C128 && t != DType::String;
      };
      if (!real(from) || !real(to))
        continue;
      AttrList attrs;
      attrs.set("to", d);
      // Every type but the 2-bit ones holds these, rounded.
      std::vector<Tensor> in = {make(from, {17003}, rng, from == DType::F8E8M0 ? 1 : 0, 3)};
      int rows = 0;
      for (const Kernel *row : rowsOf("cast")) {
        if (!takes(*row, in, to, attrs))
          continue;
        ++rows;
        Tensor out = runRow(*row, in, attrs)[0], expected = zeros(to, in[0].dims);
        std::vector<double> x = values(in[0]);
        storeFromF64(to, expected.bytes.data(), 0, expected.elements(), x.data());
        EXPECT_EQ(out.bytes, expected.bytes)
            << row->name << " " << dtypeName(from) << " to " << dtypeName(to);
      }
      EXPECT_GT(rows, 0) << dtypeName(from) << " to " << dtypeName(to);
    }
}

TEST(Cast, WideIntegersKeepTheirBits) {
  const Kernel *row = nullptr;
  for (const Kernel *candidate : rowsOf("cast"))
    if (std::string_view(candidate->name) == "cast_plain")
      row = candidate;
  AttrList attrs;
  attrs.set("to", int64_t(DType::U64));
  std::vector<Tensor> in = {filled<int64_t>(DType::I64, {1}, [] { return INT64_MAX - 1; })};
  EXPECT_EQ(*runRow(*row, in, attrs)[0].as<int64_t>(), INT64_MAX - 1);
}

} // namespace
} // namespace dspark::test

// Data movement kernels against element-by-element index arithmetic, on types of every size.
#include "kernels/movement/movement.h"
#include "test/kernels/kernel_case.h"
#include <numeric>

namespace dspark {
namespace {

using namespace test;

const DType kSizes[] = {DType::U8, DType::I16, DType::F32, DType::I64, DType::C128};

int64_t unitOf(const Tensor &t) { return dtypeBits(t.type) / 8; }

Tensor numbered(DType type, std::vector<int64_t> dims) {
  Tensor t = zeros(type, std::move(dims));
  std::mt19937 rng(uint32_t(t.elements()));
  for (std::byte &b : t.bytes)
    b = std::byte(rng());
  return t;
}

std::vector<int64_t> coordinates(int64_t k, const std::vector<int64_t> &dims) {
  std::vector<int64_t> at(dims.size());
  for (size_t i = dims.size(); i-- > 0; k /= dims[i])
    at[i] = k % dims[i];
  return at;
}
int64_t position(const std::vector<int64_t> &at, const std::vector<int64_t> &dims) {
  int64_t k = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    k = k * dims[i] + at[i];
  return k;
}

// y's element at coordinates c is x's element source(c), or zero where that is negative.
void expectMapped(const Tensor &x, const Tensor &y, auto source, const std::string &what) {
  int64_t unit = unitOf(x);
  const std::vector<std::byte> zero(16);
  for (int64_t k = 0; k < y.elements(); ++k) {
    int64_t from = source(coordinates(k, y.dims));
    const std::byte *want = from < 0 ? zero.data() : x.bytes.data() + from * unit;
    ASSERT_EQ(std::memcmp(y.bytes.data() + k * unit, want, size_t(unit)), 0) << what << " element " << k;
  }
}

TEST(Transpose, EveryPermutationOfAwkwardDims) {
  for (std::vector<int64_t> dims :
       {std::vector<int64_t>{7, 33, 5, 19}, {2, 3, 70, 65}, {1, 64, 1, 130}, {3, 1, 17, 3}, {0, 4, 5, 6}}) {
    std::vector<int64_t> perm = {0, 1, 2, 3};
    do {
      for (DType type : kSizes) {
        Tensor x = numbered(type, dims);
        Tensor y = runOp("transpose", {x}, AttrList().set("perm", perm))[0];
        expectMapped(
            x, y,
            [&](std::vector<int64_t> c) {
              std::vector<int64_t> at(4);
              for (size_t i = 0; i < 4; ++i)
                at[size_t(perm[i])] = c[i];
              return position(at, dims);
            },
            std::string(dtypeName(type)) + testing::PrintToString(perm) + testing::PrintToString(dims));
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(Transpose, PackedElements) {
  Tensor x = numbered(DType::I4, {5, 7});
  Tensor y = runOp("transpose", {x})[0];
  auto nibble = [](const Tensor &t, int64_t k) { return int(t.bytes[size_t(k / 2)]) >> (k % 2 * 4) & 15; };
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 7; ++j)
      EXPECT_EQ(nibble(y, j * 5 + i), nibble(x, i * 7 + j));
}

TEST(Slice, StepsAndClamping) {
  std::vector<int64_t> dims = {9, 40, 11};
  std::mt19937 rng(1);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> starts, ends, steps;
    std::vector<movement::SliceRange> ranges;
    for (int64_t dim : dims) {
      starts.push_back(draw(-dim - 3, dim + 3));
      ends.push_back(round % 5 == 0 ? (round % 2 ? INT64_MAX : INT64_MIN) : draw(-dim - 3, dim + 3));
      steps.push_back(draw(1, 3) * (draw(0, 1) ? 1 : -1));
      ranges.push_back(movement::sliceRange(starts.back(), ends.back(), dim, steps.back()));
    }
    Tensor x = numbered(kSizes[round % 5], dims);
    Tensor y = runOp("slice", {x, indices(starts), indices(ends), indices({0, 1, 2}), indices(steps)})[0];
    expectMapped(
        x, y,
        [&](std::vector<int64_t> c) {
          for (size_t i = 0; i < 3; ++i)
            c[i] = ranges[i].start + c[i] * ranges[i].step;
          return position(c, dims);
        },
        "round " + std::to_string(round));
  }
}

// numpy's x[start:end:step] by enumeration.
TEST(Slice, RangeIsNumpys) {
  for (int64_t dim = 1; dim < 6; ++dim)
    for (int64_t step : {1, 2, -1, -3})
      for (int64_t start = -7; start <= 7; ++start)
        for (int64_t end = -7; end <= 7; ++end) {
          // Negative steps begin at element 0 at the lowest, as ONNX has it.
          int64_t from = start < 0 ? start + dim : start, to = end < 0 ? end + dim : end;
          from = step > 0 ? std::clamp<int64_t>(from, 0, dim) : std::clamp<int64_t>(from, 0, dim - 1);
          to = step > 0 ? std::clamp<int64_t>(to, 0, dim) : std::clamp<int64_t>(to, -1, dim - 1);
          int64_t length = 0;
          for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
            ++length;
          ASSERT_EQ(movement::sliceRange(start, end, dim, step).length, length)
              << start << ":" << end << ":" << step << " of " << dim;
        }
}

TEST(ConcatSplit, AreInverse) {
  for (DType type : {DType::U8, DType::F32, DType::C128, DType::U4})
    for (int64_t axis = 0; axis < 3; ++axis) {
      std::vector<Tensor> parts;
      std::vector<int64_t> sizes;
      for (int64_t size : {3, 1, 0, 50}) {
        std::vector<int64_t> dims = {13, 4, 9};
        dims[size_t(axis)] = size;
        parts.push_back(numbered(type, dims));
        sizes.push_back(size);
      }
      AttrList attrs;
      attrs.set("axis", axis);
      Tensor joined = runOp("concat", parts, attrs)[0];
      EXPECT_EQ(joined.dims[size_t(axis)], 54);
      std::vector<Tensor> back = runOp("split", {joined, indices(sizes)}, attrs, 4);
      for (size_t k = 0; k < 4; ++k) {
        // The unused half byte behind an odd number of packed elements is not part of the tensor.
        auto whole = [&](const Tensor &t) {
          return std::vector(t.bytes.begin(), t.bytes.begin() + t.elements() * dtypeBits(type) / 8);
        };
        EXPECT_EQ(whole(back[k]), whole(parts[k])) << k;
      }
    }
}

TEST(Concat, LongRowsAreShared) {
  Tensor a = numbered(DType::F32, {3, 30000}), b = numbered(DType::F32, {3, 7});
  Tensor y = runOp("concat", {a, b}, AttrList().set("axis", 1))[0];
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(std::memcmp(y.as<float>() + i * 30007, a.as<float>() + i * 30000, 120000), 0);
    EXPECT_EQ(std::memcmp(y.as<float>() + i * 30007 + 30000, b.as<float>() + i * 7, 28), 0);
  }
}

TEST(Pad, ModesAndCrops) {
  std::vector<int64_t> dims = {2, 5, 6, 3};
  for (const char *mode : {"constant", "edge", "reflect", "wrap"})
    for (std::vector<int64_t> pads : {std::vector<int64_t>{0, 2, 3, 0, 0, 1, 4, 0},
                                      {1, 0, 0, 2, 0, 0, 9, 1},
                                      {0, -2, 1, 0, 0, 1, -3, 0},
                                      {0, 0, 0, 0, 0, 0, 0, 0}})
      for (DType type : kSizes) {
        Tensor x = numbered(type, dims);
        Tensor y = runOp("pad", {x, indices(pads)}, AttrList().set("mode", mode))[0];
        expectMapped(
            x, y,
            [&](std::vector<int64_t> c) -> int64_t {
              for (size_t i = 0; i < 4; ++i) {
                // Negative pads crop first; what is left is extended.
                int64_t crop = std::max<int64_t>(-pads[i], 0), cropEnd = std::max<int64_t>(-pads[i + 4], 0);
                int64_t n = dims[i] - crop - cropEnd, at = c[i] - std::max<int64_t>(pads[i], 0);
                std::string_view how = mode;
                if (how == "constant" && (at < 0 || at >= n))
                  return -1;
                if (how == "edge")
                  at = std::clamp<int64_t>(at, 0, n - 1);
                if (how == "wrap")
                  at = (at % n + n) % n;
                while (how == "reflect" && (at < 0 || at >= n))
                  at = at < 0 ? -at : 2 * (n - 1) - at;
                c[i] = at + crop;
              }
              return position(c, dims);
            },
            std::string(mode) + testing::PrintToString(pads) + std::string(dtypeName(type)));
      }
}

TEST(Pad, ConstantValue) {
  Tensor y = runOp("pad", {floats({1, 2}, {2}), indices({1, 2}), floats({7}, {})})[0];
  EXPECT_EQ(std::vector<float>(y.as<float>(), y.as<float>() + 5), (std::vector<float>{7, 1, 2, 7, 7}));
}

TEST(ExpandTile, RepeatWholeDims) {
  for (DType type : kSizes) {
    Tensor x = numbered(type, {3, 1, 5});
    Tensor y = runOp("expand", {x, indices({2, 1, 40, 1})})[0];
    expectMapped(x, y, [&](std::vector<int64_t> c) { return c[1] * 5 + c[3]; }, "expand");
    Tensor z = runOp("tile", {x, indices({2, 3, 4})})[0];
    expectMapped(x, z, [&](std::vector<int64_t> c) { return c[0] % 3 * 5 + c[2] % 5; }, "tile");
  }
}

TEST(Trilu, KeepsOneTriangle) {
  for (int64_t k : {-9, -1, 0, 2, 9})
    for (int64_t upper : {0, 1}) {
      Tensor x = numbered(DType::F32, {2, 4, 6});
      Tensor y = runOp("trilu", {x, index(k)}, AttrList().set("upper", upper))[0];
      expectMapped(
          x, y,
          [&](std::vector<int64_t> c) {
            bool keep = upper ? c[2] >= c[1] + k : c[2] <= c[1] + k;
            return keep ? position(c, x.dims) : -1;
          },
          "k " + std::to_string(k));
    }
}

} // namespace
} // namespace dspark

// Tensors of more than 2^31 and 2^32 elements, which must not meet 32-bit arithmetic anywhere. Nobody has the
// memory to compute on them in a test, so address space is reserved without memory behind it, a kernel runs
// its last tile only, and that must find and write the last elements.
#include "test/kernels/kernel_case.h"
#include <functional>
#include <sys/mman.h>

namespace dspark {
namespace {

using namespace test;

constexpr int64_t kMany = int64_t(1) << 33; // elements
// With fewer tiles than that the last one would touch too much memory.
constexpr uint32_t kFewestTiles = 256;

/// A tensor whose pages get memory when they are touched.
class SparseTensor {
public:
  SparseTensor(DType type, std::vector<int64_t> shape) : dims(std::move(shape)), type(type) {
    TensorView whole{nullptr, dims.data(), int32_t(dims.size()), type};
    bytes = size_t(dtypeBytes(type, whole.elements()));
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~SparseTensor() {
    if (isMapped())
      munmap(data, bytes);
  }
  SparseTensor(const SparseTensor &) = delete;
  bool isMapped() const { return data != MAP_FAILED; }
  TensorView view() const { return {data, dims.data(), int32_t(dims.size()), type}; }
  /// Element `fromEnd` from the end, 1 being the last.
  template <typename T> T &last(int64_t fromEnd) const {
    return static_cast<T *>(data)[view().elements() - fromEnd];
  }

private:
  std::vector<int64_t> dims;
  DType type;
  size_t bytes;
  void *data;
};

/// Runs the last tile of every row of `op` that takes the call in tiles small enough; checks after each.
void runLastTiles(const char *op, const std::vector<const SparseTensor *> &in, const SparseTensor &out,
                  const AttrList &attrs, const std::function<void(const char *row)> &check) {
  std::vector<TensorView> inputs, outputs = {out.view()};
  for (const SparseTensor *tensor : in) {
    ASSERT_TRUE(tensor->isMapped());
    inputs.push_back(tensor->view());
  }
  ASSERT_TRUE(out.isMapped());
  KernelCall call{inputs, outputs, attrs.view(), nullptr, nullptr};
  int ran = 0;
  for (const Kernel *row : rowsOf(op)) {
    if (row->accepts && !row->accepts(call))
      continue;
    auto work = std::make_unique<KernelWork>();
    row->prepare(call, *work);
    ASSERT_EQ(work->phases, 1) << row->name;
    if (work->tiles[0] < kFewestTiles)
      continue;
    ++ran;
    ASSERT_LE(work->tiles[0], 1u << 30) << row->name;
    std::vector<std::byte> scratch(work->scratchPerThread + 64), shared(work->scratchShared + 64);
    auto aligned = [](std::vector<std::byte> &block) {
      return block.data() + (64 - reinterpret_cast<uintptr_t>(block.data()) % 64) % 64;
    };
    row->run(call, *work, {work->tiles[0] - 1, work->tiles[0], 0, 0, aligned(scratch), aligned(shared)});
    check(row->name);
  }
  EXPECT_GT(ran, 0);
}

TEST(Large, Unary) {
  SparseTensor x(DType::F32, {1 << 16, 1 << 17}), y(DType::F32, {1 << 16, 1 << 17});
  x.last<float>(1) = 3;
  x.last<float>(2) = -5;
  runLastTiles("unary", {&x}, y, AttrList().set("kind", "neg"), [&](const char *row) {
    EXPECT_EQ(y.last<float>(1), -3) << row;
    EXPECT_EQ(y.last<float>(2), 5) << row;
    y.last<float>(1) = 0;
  });
}

TEST(Large, BinaryWithABroadcastRow) {
  SparseTensor x(DType::F32, {kMany / 64, 64}), b(DType::F32, {64}), y(DType::F32, {kMany / 64, 64});
  x.last<float>(1) = 3;
  b.last<float>(1) = 4;
  runLastTiles("binary", {&x, &b}, y, AttrList().set("kind", "add"), [&](const char *row) {
    EXPECT_EQ(y.last<float>(1), 7) << row;
    y.last<float>(1) = 0;
  });
}

TEST(Large, Cast) {
  SparseTensor x(DType::U8, {kMany}), y(DType::F32, {kMany});
  x.last<uint8_t>(1) = 9;
  runLastTiles("cast", {&x}, y, AttrList().set("to", int64_t(DType::F32)), [&](const char *row) {
    EXPECT_EQ(y.last<float>(1), 9) << row;
    y.last<float>(1) = 0;
  });
}

TEST(Large, Softmax) {
  SparseTensor x(DType::F32, {kMany / 4, 4}), y(DType::F32, {kMany / 4, 4});
  x.last<float>(1) = 200;
  runLastTiles("softmax", {&x}, y, AttrList().set("axis", -1).set("kind", "softmax"), [&](const char *row) {
    EXPECT_EQ(y.last<float>(1), 1) << row;
    EXPECT_EQ(y.last<float>(2), 0) << row;
    EXPECT_EQ(y.last<float>(5), 0.25f) << row;
    y.last<float>(1) = 0;
  });
}

TEST(Large, Reduce) {
  SparseTensor x(DType::F32, {kMany / 2, 2}), y(DType::F32, {kMany / 2, 1});
  x.last<float>(1) = 2;
  x.last<float>(2) = 3;
  AttrList attrs;
  attrs.set("kind", "sum").set("axes", std::vector<int64_t>{1}).set("keepdims", 1);
  runLastTiles("reduce", {&x}, y, attrs, [&](const char *row) {
    EXPECT_EQ(y.last<float>(1), 5) << row;
    y.last<float>(1) = 0;
  });
}

TEST(Large, Gather) {
  SparseTensor x(DType::U8, {kMany / 8, 8}), at(DType::I64, {kMany / 8}), y(DType::U8, {kMany / 8, 8});
  x.last<uint8_t>(1) = 77;
  at.last<int64_t>(1) = kMany / 8 - 1;
  at.last<int64_t>(2) = -1;
  runLastTiles("gather", {&x, &at}, y, AttrList().set("axis", int64_t(0)), [&](const char *row) {
    EXPECT_EQ(y.last<uint8_t>(1), 77) << row;
    EXPECT_EQ(y.last<uint8_t>(9), 77) << row;
    y.last<uint8_t>(1) = 0;
  });
}

TEST(Large, Concat) {
  SparseTensor a(DType::U8, {kMany / 4}), b(DType::U8, {kMany}), y(DType::U8, {kMany + kMany / 4});
  b.last<uint8_t>(1) = 12;
  runLastTiles("concat", {&a, &b}, y, AttrList().set("axis", int64_t(0)), [&](const char *row) {
    EXPECT_EQ(y.last<uint8_t>(1), 12) << row;
    y.last<uint8_t>(1) = 0;
  });
}

TEST(Large, Matmul) {
  SparseTensor a(DType::F32, {kMany / 16, 16}), b(DType::F32, {16, 16}), y(DType::F32, {kMany / 16, 16});
  a.last<float>(1) = 2;
  b.last<float>(1) = 3;
  runLastTiles("matmul", {&a, &b}, y, AttrList(), [&](const char *row) {
    EXPECT_EQ(y.last<float>(1), 6) << row;
    y.last<float>(1) = 0;
  });
}

} // namespace
} // namespace dspark

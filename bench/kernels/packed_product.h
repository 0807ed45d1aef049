// What benchmarks of packed weights share: copies of a matrix that are cold when their turn comes, and the
// product with them as the runtime would call it, on one thread.
#pragma once
#include "kernels/common/kernel.h"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <sys/mman.h>
#include <vector>

namespace dspark::bench {

inline constexpr size_t kColdBytes = 160 << 20; // more than any cache holds

// Pages of 2 MiB where the kernel gives them, as a plan's weights section has.
inline std::byte *hugePages(size_t bytes) {
  constexpr size_t kHugePage = 2 << 20;
  void *memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte *>(memory);
}
struct Free {
  void operator()(std::byte *p) const { std::free(p); }
};
using Block = std::unique_ptr<std::byte, Free>;

class ColdWeights {
public:
  explicit ColdWeights(size_t bytes)
      : bytes(bytes), copies(std::max<size_t>(kColdBytes / bytes, 1)), memory(hugePages(bytes * copies)) {}
  /// The copy to fill before copy().
  std::span<std::byte> first() { return {memory.get(), bytes}; }
  void copy() {
    for (size_t i = 1; i < copies; ++i)
      std::memcpy(memory.get() + i * bytes, memory.get(), bytes);
  }
  std::byte *next() { return memory.get() + (at++ % copies) * bytes; }

  const size_t bytes, copies;

private:
  Block memory;
  size_t at = 0;
};

struct PackedShape {
  const char *layout, *arithmetic; // the latter "int8", "f32" or "bf16"
  int64_t rows, k, n;
};

/// x [rows][k] times weights [n][k] into y [rows][n].
class PackedProduct {
public:
  PackedProduct(const PackedShape &shape, ColdWeights &weights, Isa isa)
      : x(size_t(shape.rows * shape.k)), y(size_t(shape.rows * shape.n)), weights(weights) {
    operands->x[0] = operands->y[0] = shape.rows;
    operands->x[1] = operands->w[1] = shape.k;
    operands->y[1] = operands->w[0] = shape.n;
    operands->attrs[0].str = shape.layout;
    operands->attrs[1].str = shape.arithmetic;
    operands->in = {TensorView{x.data(), operands->x, 2, DType::F32},
                    TensorView{weights.next(), operands->w, 2, DType::F32}};
    operands->out = {y.data(), operands->y, 2, DType::F32};
    call.in = operands->in;
    call.out = {&operands->out, 1};
    call.attrs = Attrs(operands->attrs);
    row = selectKernel("matmul", call, isa);
    row->prepare(call, work);
    scratch.reset(hugePages(work.scratchPerThread + 64));
    shared.reset(hugePages(work.scratchShared + 64));
  }
  /// With the next copy of the weights.
  void run() {
    operands->in[1].data = weights.next();
    for (int phase = 0; phase < work.phases; ++phase)
      row->run(call, work, {0, work.tiles[phase], phase, 0, scratch.get(), shared.get()});
  }
  double flops() const { return work.flops; }
  std::vector<float> x, y;

private:
  // What the call points to; stays where it is when the product moves.
  struct Operands {
    int64_t x[2], w[2], y[2], one[1] = {1};
    std::array<TensorView, 2> in;
    TensorView out;
    std::array<Attr, 3> attrs = {
        Attr{"packed", {}, {}, {}}, {"arithmetic", {}, {}, {}}, {"trans_b", one, {}, {}}};
  };
  std::unique_ptr<Operands> operands = std::make_unique<Operands>();
  ColdWeights &weights;
  KernelCall call;
  KernelWork work;
  const Kernel *row = nullptr;
  Block scratch, shared;
};

inline double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + ptrdiff_t(v.size() / 2), v.end());
  return v[v.size() / 2];
}

} // namespace dspark::bench

// The kernel ABI: what the runtime passes to a kernel, and what a kernel may do.
//
// A kernel is pure and re-entrant: it reads its inputs, writes its outputs, allocates nothing and cannot
// fail. Shapes have been checked by the operator's shape function before a kernel sees them. Work is cut into
// tiles that may run on any thread in any order; a kernel that needs a barrier (reduce first, then map) uses
// phases.
//
//   prepare(call, work)     once per new shape: how many tiles, how much scratch, any derived constants in
//   work.state run(call, work, part)   for disjoint tile ranges, on several threads at once
#pragma once
#include "kernels/common/attrs.h"
#include "kernels/common/dtype.h"
#include "kernels/common/isa.h"
#include "kernels/common/shape.h"
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

namespace dspark {

/// A dense row-major tensor, borrowed. `data` is 64-byte aligned for everything the runtime allocates; inputs
/// that a caller lends may be less aligned, so kernels use unaligned loads. An absent optional operand has
/// type Undefined and null data; a tensor without elements may have null data too.
struct TensorView {
  void *data = nullptr;
  const int64_t *dims = nullptr;
  int32_t rank = 0;
  DType type = DType::Undefined;

  bool present() const { return type != DType::Undefined; }
  int64_t dim(int i) const { return dims[i]; }
  int64_t elements() const { return elements(0, rank); }
  /// Product of dims[begin, end).
  int64_t elements(int begin, int end) const {
    int64_t n = 1;
    for (int i = begin; i < end; ++i)
      n *= dims[i];
    return n;
  }
  template <typename T> T *as() const { return static_cast<T *>(data); }
};

/// One invocation: operands in the operator's order.
struct KernelCall {
  std::span<const TensorView> in;
  std::span<const TensorView> out;
  Attrs attrs;
  /// For operators with InferContext::dimsFromKernel: where the kernel writes the true dims of each output,
  /// else null.
  int64_t *const *outDims = nullptr;
  /// Generated code this step was bound to (kernels/fused), else null.
  const void *code = nullptr;

  const TensorView &input(size_t i) const {
    static const TensorView absent;
    return i < in.size() ? in[i] : absent;
  }
  bool has(size_t i) const { return i < in.size() && in[i].present(); }
};

inline constexpr int kMaxPhases = 4;

/// What prepare() works out for one shape.
struct KernelWork {
  int phases = 1;
  uint32_t tiles[kMaxPhases] = {1, 1, 1, 1}; // per phase
  size_t scratchPerThread = 0;               // bytes, 64-byte aligned
  size_t scratchShared = 0;                  // bytes, kept over all phases of one run
  double flops = 0;                          // a multiply-add counts 2; 0 where only bytes matter
  double bytes = 0;                          // read + written; what --profile divides by time
  /// Constants that the kernel derives from shapes and attributes; a trivially copyable type of at most 512
  /// bytes.
  alignas(64) std::byte state[512];

  template <typename T> T &make() {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(state));
    return *new (state) T();
  }
  template <typename T> const T &get() const { return *std::launder(reinterpret_cast<const T *>(state)); }
};

/// The share of one call to run().
struct KernelPart {
  uint32_t begin, end; // tiles [begin, end) of this phase
  int phase;
  int thread;         // 0 .. threads-1, for nothing but scratch
  std::byte *scratch; // scratchPerThread bytes of this thread, uninitialised
  std::byte *shared;  // scratchShared bytes, uninitialised in phase 0
};

struct Kernel {
  const char *op;   // the catalogue key, e.g. "matmul"
  const char *name; // unique, e.g. "matmul_f32_packed_avx2"
  Isa isa;
  /// Whether this row can do the call (types, shapes, packing); null means always.
  bool (*accepts)(const KernelCall &);
  void (*prepare)(const KernelCall &, KernelWork &);
  void (*run)(const KernelCall &, const KernelWork &, const KernelPart &);
};

/// Whether a row may run where `cap` is the highest level: one of level Amx only if tilesWork() (tiles.h).
bool mayRun(const Kernel &row, Isa cap);

/// The first row of `op` that accepts the call at level `cap`, or null. Rows are tried from the highest level
/// down, in list order within a level, those that mayRun(). A row must exist for
/// everything its shape function lets through, or null is returned and the runtime refuses the step by name.
const Kernel *selectKernel(std::string_view op, const KernelCall &call, Isa cap);

/// All rows, for tests, benchmarks and dspark-dump.
std::span<const Kernel> allKernels();

} // namespace dspark

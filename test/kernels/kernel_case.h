// Runs one catalogue row the way the executor does, with tensors owned by the test. Results come from the
// operator's own shape function; scratch is poisoned; tiles are dealt out in parts and in reverse, so that a
// kernel that relies on their order or on a fresh scratch fails. Tensors and scratch lie against inaccessible
// pages, operands cannot be written.
#pragma once
#include "kernels/common/call_contract.h"
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"
#include "kernels/common/tiles.h"
#include "test/kernels/guarded.h"
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <random>

namespace dspark::test {

/// A dense tensor with its storage; f32 values may be given or drawn.
struct Tensor {
  DType type = DType::Undefined;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
  /// Logical dims may differ from the bytes held (packed weights).
  template <typename T> T *as() { return reinterpret_cast<T *>(bytes.data()); }
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(bytes.data()); }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : dims)
      n *= d;
    return n;
  }
  TensorView view() { return {bytes.data(), dims.data(), int32_t(dims.size()), type}; }
};

inline Tensor zeros(DType type, std::vector<int64_t> dims) {
  Tensor t{type, std::move(dims), {}};
  t.bytes.resize(size_t(dtypeBytes(type, t.elements())));
  return t;
}
template <typename T> Tensor filled(DType type, std::vector<int64_t> dims, auto &&next) {
  Tensor t = zeros(type, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i)
    t.as<T>()[i] = T(next());
  return t;
}
/// Uniform in [-1, 1).
inline Tensor uniform(std::vector<int64_t> dims, std::mt19937 &rng) {
  std::uniform_real_distribution<float> draw(-1, 1);
  return filled<float>(DType::F32, std::move(dims), [&] { return draw(rng); });
}

class AttrList {
public:
  AttrList &set(const char *name, std::vector<int64_t> values) {
    ints.push_back(std::move(values));
    list.push_back({name, ints.back(), {}, {}});
    return *this;
  }
  AttrList &set(const char *name, int64_t value) { return set(name, std::vector<int64_t>{value}); }
  AttrList &set(const char *name, const char *text) {
    list.push_back({name, {}, {}, text});
    return *this;
  }
  AttrList &setFloat(const char *name, double value) {
    floats.push_back(value);
    list.push_back({name, {}, std::span(&floats.back(), 1), {}});
    return *this;
  }
  AttrList &setFloats(const char *name, std::vector<double> values) {
    floatLists.push_back(std::move(values));
    list.push_back({name, {}, floatLists.back(), {}});
    return *this;
  }
  Attrs view() const { return Attrs(list); }

private:
  std::deque<std::vector<int64_t>> ints;
  std::deque<double> floats;
  std::deque<std::vector<double>> floatLists;
  std::vector<Attr> list;
};

/// A tensor from a list of values; rank 1 unless dims say otherwise.
template <typename T> Tensor tensorOf(DType type, std::vector<T> values, std::vector<int64_t> dims) {
  size_t i = 0;
  return filled<T>(type, std::move(dims), [&] { return values[i++]; });
}
inline Tensor floats(std::vector<float> values, std::vector<int64_t> dims) {
  return tensorOf<float>(DType::F32, std::move(values), std::move(dims));
}
inline Tensor indices(std::vector<int64_t> values) {
  auto count = int64_t(values.size());
  return tensorOf<int64_t>(DType::I64, std::move(values), {count});
}
inline Tensor index(int64_t value) { return tensorOf<int64_t>(DType::I64, {value}, {}); }

/// What a shape function may know of a tensor: its contents too if it is small.
inline TensorInfo infoOf(const Tensor &t) {
  if (t.type == DType::Undefined)
    return {};
  TensorInfo info = TensorInfo::make(t.type, {t.dims.begin(), t.dims.end()});
  bool isInt = t.type == DType::I64, isReal = t.type == DType::F32;
  if (t.elements() > kMaxKnownElements || !(isInt || isReal) ||
      int64_t(t.bytes.size()) < dtypeBytes(t.type, t.elements()))
    return info;
  info.hasContents = true;
  for (int64_t i = 0; i < t.elements(); ++i)
    if (isInt)
      info.ints.push_back(Dim(t.as<int64_t>()[i]));
    else
      info.floats.push_back(double(t.as<float>()[i]));
  return info;
}

/// Result types and dims by the shape function; an empty list and a test failure where it refuses.
inline std::vector<Tensor> inferResults(const char *op, std::vector<Tensor> &in, const AttrList &attrs,
                                        size_t count) {
  std::vector<TensorInfo> infos;
  for (const Tensor &t : in)
    infos.push_back(infoOf(t));
  InferContext ctx;
  ctx.in = infos;
  ctx.attrs = attrs.view();
  ctx.out.resize(count);
  InferStatus status = findOp(op)->infer(ctx);
  EXPECT_EQ(int(status), int(InferStatus::Ok)) << op << ": " << ctx.error;
  std::vector<Tensor> out;
  if (status != InferStatus::Ok)
    return out;
  for (const TensorInfo &info : ctx.out) {
    std::vector<int64_t> dims;
    for (const Dim &dim : info.dims)
      dims.push_back(dim.value());
    out.push_back(zeros(info.type, dims));
    std::fill(out.back().bytes.begin(), out.back().bytes.end(), std::byte(0xcd));
  }
  return out;
}

/// The results of `row` on these operands, tiles dealt to `threads` threads' scratch in turn.
inline std::vector<Tensor> runRow(const Kernel &row, std::vector<Tensor> &in, const AttrList &attrs,
                                  size_t results = 1, int threads = 2) {
  std::vector<Tensor> out = inferResults(row.op, in, attrs, results);
  if (out.empty())
    return out;
  std::vector<TensorView> inViews, outViews;
  std::vector<std::vector<int64_t>> trueDims; // for operators whose dims the kernel decides
  std::vector<int64_t *> outDims;
  for (const Tensor &t : out)
    trueDims.push_back(t.dims);
  for (std::vector<int64_t> &dims : trueDims)
    outDims.push_back(dims.data());
  static int calls = 0; // both ends get their turn over the shapes of a test
  Flush flush = ++calls % 2 ? Flush::AtEnd : Flush::AtStart;
  std::deque<Guarded> blocks;
  auto lay = [&](Tensor &t, std::vector<TensorView> &views) {
    views.push_back(t.view());
    if (t.type == DType::Undefined)
      return;
    views.back().data = blocks.emplace_back(t.bytes.size(), flush).data();
    std::copy(t.bytes.begin(), t.bytes.end(), static_cast<std::byte *>(views.back().data));
  };
  for (Tensor &t : in)
    lay(t, inViews);
  for (Guarded &block : blocks)
    block.makeReadOnly();
  for (Tensor &t : out)
    lay(t, outViews);
  KernelCall call;
  call.in = inViews;
  call.out = outViews;
  call.attrs = attrs.view();
  call.outDims = outDims.data();
  EXPECT_TRUE(!row.accepts || row.accepts(call)) << row.name;
  auto work = std::make_unique<KernelWork>();
  row.prepare(call, *work);
  auto scratchOf = [&](size_t bytes) { // the runtime rounds up to 64 too
    bytes = (bytes + 63) / 64 * 64;
    std::byte *data = blocks.emplace_back(bytes, Flush::AtEnd).data();
    std::fill_n(data, bytes, std::byte(0xff));
    return data;
  };
  std::byte *shared = scratchOf(work->scratchShared);
  std::vector<std::byte *> scratch;
  for (int t = 0; t < threads; ++t)
    scratch.push_back(scratchOf(work->scratchPerThread));
  for (int phase = 0; phase < work->phases; ++phase)
    for (uint32_t end = work->tiles[phase]; end > 0;) {
      uint32_t begin = end > 2 && threads > 1 ? end - 2 : threads > 1 ? end - 1 : 0;
      int thread = int(end) % threads;
      KernelPart part{begin, end, phase, thread, scratch[size_t(thread)], shared};
      expectCall(row, call, *work, part);
      row.run(call, *work, part);
      end = begin;
    }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].dims = trueDims[i];
    std::copy_n(static_cast<const std::byte *>(outViews[i].data), out[i].bytes.size(), out[i].bytes.begin());
  }
  return out;
}

/// tiles_test is the program whose tiles are in software (test/tiles): of its rows those of level Amx are
/// what it tests, and the baseline's what some tests compare with.
#ifdef DSPARK_SOFTWARE_TILES
inline constexpr bool kHasSoftwareTiles = true;
#else
inline constexpr bool kHasSoftwareTiles = false;
#endif
inline bool runsTiles() { return kHasSoftwareTiles || (machineIsa() == Isa::Amx && tilesWork()); }
inline bool runsHere(const Kernel &row) {
  bool isTested = row.isa == Isa::Amx || row.isa == Isa::Baseline;
  return kHasSoftwareTiles ? isTested : mayRun(row, machineIsa());
}

/// Rows of an operator that this program can run.
inline std::vector<const Kernel *> rowsOf(std::string_view op) {
  std::vector<const Kernel *> rows;
  for (const Kernel &row : allKernels())
    if (row.op == op && runsHere(row))
      rows.push_back(&row);
  return rows;
}

/// The results of the operator's reference row.
inline std::vector<Tensor> runOp(const char *op, std::vector<Tensor> in, const AttrList &attrs = {},
                                 size_t results = 1, int threads = 2) {
  for (const Kernel *row : rowsOf(op))
    if (row->isa == Isa::Baseline)
      return runRow(*row, in, attrs, results, threads);
  ADD_FAILURE() << "no reference row of " << op;
  return {};
}

/// The error of the shape function on these operands; empty if it takes them.
inline std::string refusal(const char *op, const std::vector<Tensor> &in, const AttrList &attrs = {},
                           size_t results = 1) {
  std::vector<TensorInfo> infos;
  for (const Tensor &t : in)
    infos.push_back(infoOf(t));
  InferContext ctx;
  ctx.in = infos;
  ctx.attrs = attrs.view();
  ctx.out.resize(results);
  return findOp(op)->infer(ctx) == InferStatus::Error ? ctx.error : "";
}

} // namespace dspark::test

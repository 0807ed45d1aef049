// libFuzzer target: every kernel on whatever its shape function lets through. A call is drawn from the input
// the way a hostile plan could state it (operator, attributes, small operands of any type and contents) and
// goes the executor's way: infer, select, prepare, run. Each tensor and scratch area lies against an
// inaccessible page, so that whatever leaves it ends in a signal; indices out of range, NaN and negative
// sizes are ordinary contents.
#include "kernels/common/kernel.h"
#include "runtime/executor/Contents.h"
#include "test/fuzz/Draw.h"
#include "test/kernels/guarded.h"
#include <memory>

using namespace dspark;
using namespace dspark::fuzz;
using dspark::test::Flush;
using dspark::test::Guarded;

namespace {

constexpr int64_t kMaxInputBytes = 1 << 12, kMaxResultBytes = 1 << 20, kMaxScratch = 64 << 20;
constexpr double kMaxWork = 1e7; // operations or bytes: well under a second even with sanitizers

template <typename T> void store(std::byte *to, T value) { std::memcpy(to, &value, sizeof value); }

// Small integers for integer types, notable values for f32 and f64, arbitrary bytes for all others.
void fill(Source &source, DType type, std::byte *data, int64_t bytes) {
  int64_t size = dtypeBits(type) / 8;
  for (int64_t at = 0; at < bytes; at += std::max<int64_t>(size, 1))
    switch (type) {
    case DType::F32:
      store(data + at, float(source.real()));
      break;
    case DType::F64:
      store(data + at, source.real());
      break;
    case DType::I32:
      store(data + at, int32_t(source.number()));
      break;
    case DType::I64:
      store(data + at, source.number());
      break;
    default:
      for (int64_t i = 0; i < std::max<int64_t>(size, 1); ++i)
        data[at + i] = std::byte(source.byte());
    }
}

// One drawn call, with the operands' bytes.
class Call {
public:
  Call(Source &source, const OpEntry &op)
      : op(op), results(source.chance(6) ? 1 : source.below(6)),
        flush(source.byte() % 2 ? Flush::AtEnd : Flush::AtStart) {
    for (size_t i = source.below(7); i-- > 0;)
      operands.push_back(operand(source));
    for (TensorInfo &info : operands)
      dims.push_back(numbers(info.dims));
    for (size_t i = 0; i < operands.size(); ++i) {
      int64_t bytes =
          operands[i].present() ? dtypeBytes(operands[i].type, elementCount(operands[i].dims)) : 0;
      std::byte *data = blocks.emplace_back(size_t(bytes), flush).data();
      fill(source, operands[i].type, data, bytes);
      blocks.back().makeReadOnly();
      views.push_back({data, dims[i].data(), int32_t(dims[i].size()), operands[i].type});
    }
  }

  void run(Attrs attrs, Isa cap) {
    InferContext inferred;
    inferred.attrs = attrs;
    if (!infer(inferred))
      return;
    std::deque<std::vector<int64_t>> resultDims;
    std::vector<TensorView> out;
    std::vector<int64_t *> outDims;
    for (const TensorInfo &info : inferred.out) {
      int64_t count = info.hasRank ? elementCount(info.dims) : -1;
      if (count < 0 || dtypeBits(info.type) == 0 || count > kMaxResultBytes)
        return;
      resultDims.push_back(numbers(info.dims));
      outDims.push_back(resultDims.back().data());
      blocks.emplace_back(size_t(dtypeBytes(info.type, count)), flush);
      out.push_back({blocks.back().data(), resultDims.back().data(), info.rank(), info.type});
    }
    std::deque<std::vector<int64_t>> found(resultDims);
    for (size_t i = 0; i < found.size(); ++i)
      outDims[i] = found[i].data();
    KernelCall call{views, out, attrs, outDims.data(), nullptr};
    const Kernel *kernel = selectKernel(op.name, call, cap);
    if (kernel)
      work(*kernel, call);
  }

private:
  static TensorInfo operand(Source &source) {
    TensorInfo info;
    if (source.below(16) == 0)
      return info;
    constexpr DType kCommon[] = {DType::F32,  DType::I64, DType::F32, DType::I32,
                                 DType::Bool, DType::U8,  DType::I8};
    info.type = source.chance(6) ? kCommon[source.below(std::size(kCommon))]
                                 : DType(1 + source.below(kDTypeCount - 1));
    info.hasRank = true;
    for (size_t i = source.chance(7) ? source.below(5) : source.below(kMaxRank + 1); i-- > 0;) {
      info.dims.push_back(Dim(int64_t(source.chance(7) ? source.below(5) : source.below(40))));
      if (elementCount(info.dims) * 16 > kMaxInputBytes)
        info.dims.back() = Dim(1);
    }
    if (dtypeBits(info.type) == 0)
      info.type = DType::F32;
    return info;
  }

  // As the tracer does it: contents are read where a shape depends on them.
  bool infer(InferContext &ctx) {
    for (size_t asked = 0; asked <= operands.size(); ++asked) {
      ctx.in = operands;
      ctx.out.assign(results, TensorInfo());
      InferStatus status = op.infer(ctx);
      if (status != InferStatus::NeedsContents)
        return status == InferStatus::Ok;
      TensorInfo &info = operands[size_t(ctx.needed)];
      if (info.hasContents || !hasReadableContents(info.type) || elementCount(info.dims) > kMaxKnownElements)
        return false;
      readContents(info, views[size_t(ctx.needed)].data);
    }
    return false;
  }

  static void work(const Kernel &kernel, const KernelCall &call) {
    auto plan = std::make_unique<KernelWork>();
    kernel.prepare(call, *plan);
    if (plan->scratchPerThread > size_t(kMaxScratch) || plan->scratchShared > size_t(kMaxScratch) ||
        plan->flops > kMaxWork || plan->bytes > kMaxWork)
      return;
    // As much as the runtime gives, which rounds up to 64.
    auto rounded = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
    Guarded scratch[2] = {{rounded(plan->scratchPerThread), Flush::AtEnd},
                          {rounded(plan->scratchPerThread), Flush::AtEnd}};
    Guarded shared(rounded(plan->scratchShared), Flush::AtEnd);
    for (int phase = 0; phase < plan->phases; ++phase) {
      uint32_t tiles = plan->tiles[phase], middle = tiles / 2;
      for (auto [begin, end, thread] : {std::tuple(middle, tiles, 0), std::tuple(0u, middle, 1)})
        if (begin < end)
          kernel.run(call, *plan, {begin, end, phase, thread, scratch[thread].data(), shared.data()});
    }
  }

  const OpEntry &op;
  size_t results;
  Flush flush;
  std::vector<TensorInfo> operands;
  std::deque<std::vector<int64_t>> dims;
  std::deque<Guarded> blocks;
  std::vector<TensorView> views;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Source source(data, size);
  const OpEntry &op = allOps()[source.below(allOps().size())];
  Isa cap = std::min(Isa(source.below(kIsaCount)), machineIsa());
  AttributeSet attributes(source);
  // Packed weights come from constants whose size the executor checks (PackedCheck); executor_fuzz has those.
  if (!attributes.view().s("packed", "").empty())
    return 0;
  Call(source, op).run(attributes.view(), cap);
  return 0;
}

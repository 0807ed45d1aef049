// libFuzzer target: every shape function of the catalogue on arbitrary operands, attributes and contents:
// what a hostile plan can say. Whatever the input, a shape function ends in one of three ways, and each is
// checked:
//
//   Ok             results of at most kMaxRank dims; dims >= 0 where all operands are numbers; contents, if
//   any, are
//                  small
//   NeedsContents  names a present operand whose contents are not all known, so that the executor can go on
//   Error          a sentence
//
// Crashes, undefined behaviour and large allocations are findings of the sanitizers and of the hook below.
#include "test/fuzz/Draw.h"
#include <cstdio>
#include <cstdlib>
#include <sanitizer/allocator_interface.h>

using namespace dspark;
using namespace dspark::fuzz;

namespace {

constexpr size_t kLargestAllocation = 64 << 20;

[[noreturn]] void finding(const OpEntry &op, const std::string &what) {
  std::fprintf(stderr, "%s: %s\n", op.name, what.c_str());
  std::abort();
}

void checkResult(const OpEntry &op, const TensorInfo &info, bool isSymbolic) {
  if (info.hasRank && info.rank() > kMaxRank)
    finding(op, "a result of rank " + std::to_string(info.rank()));
  if (!info.hasRank && !info.dims.empty())
    finding(op, "dims without a rank");
  for (Dim dim : info.dims)
    if (dim.isConst() && dim.value() < 0 && !isSymbolic)
      finding(op, "a negative dim: " + info.str());
  if (info.hasContents && int64_t(std::max(info.ints.size(), info.floats.size())) > kMaxKnownElements)
    finding(op, "contents of a large result");
}

void checkNeed(const OpEntry &op, const InferContext &ctx) {
  if (ctx.needed < 0 || size_t(ctx.needed) >= ctx.in.size() || !ctx.in[size_t(ctx.needed)].present())
    finding(op, "needs the contents of operand " + std::to_string(ctx.needed) + ", which is not there");
  const TensorInfo &info = ctx.in[size_t(ctx.needed)];
  bool isKnown = contentsFit(info) && (isFloat(info.type) || numbers(info.ints).has_value());
  if (isKnown)
    finding(op, "needs the contents of operand " + std::to_string(ctx.needed) + ", which are known");
}

void onAllocation(const volatile void *, size_t size) {
  if (size > kLargestAllocation) {
    std::fprintf(stderr, "an allocation of %zu bytes\n", size);
    std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  __sanitizer_install_malloc_and_free_hooks(onAllocation, [](const volatile void *) {});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Source source(data, size);
  const OpEntry &op = allOps()[source.below(allOps().size())];
  size_t results = source.chance(6) ? 1 : source.below(6);
  AttributeSet attributes(source);
  Operands operands(source);
  InferContext ctx;
  ctx.in = operands.list;
  ctx.attrs = attributes.view();
  ctx.out.resize(results);
  switch (op.infer(ctx)) {
  case InferStatus::Ok:
    for (const TensorInfo &info : ctx.out)
      checkResult(op, info, operands.isSymbolic);
    break;
  case InferStatus::NeedsContents:
    checkNeed(op, ctx);
    break;
  case InferStatus::Error:
    if (ctx.error.empty())
      finding(op, "an error without a sentence");
  }
  return 0;
}

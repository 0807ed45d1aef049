#include "compiler/Support/Evaluate.h"
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"
#include <memory>

namespace dspark {
namespace {

std::vector<TensorView> viewsOf(std::vector<HostBytes> &tensors) {
  std::vector<TensorView> views;
  for (HostBytes &tensor : tensors)
    views.push_back({tensor.bytes.data(), tensor.dims.data(), int32_t(tensor.dims.size()), tensor.type});
  return views;
}

std::byte *aligned(std::vector<std::byte> &block) {
  return reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(block.data()) + 63) & ~uintptr_t(63));
}

void runAll(const Kernel &kernel, const KernelCall &call) {
  auto work = std::make_unique<KernelWork>();
  kernel.prepare(call, *work);
  std::vector<std::byte> scratch(work->scratchPerThread + 64), shared(work->scratchShared + 64);
  for (int phase = 0; phase < work->phases; ++phase)
    kernel.run(call, *work, {0, work->tiles[phase], phase, 0, aligned(scratch), aligned(shared)});
}

} // namespace

bool evaluate(std::string_view op, Attrs attributes, std::vector<HostBytes> &operands,
              std::vector<HostBytes> &results, std::string &error) {
  const OpEntry *entry = findOp(op);
  for (HostBytes &result : results) {
    int64_t elements = 1;
    for (int64_t dim : result.dims)
      elements *= dim;
    result.bytes.resize(size_t(dtypeBytes(result.type, elements)));
  }
  if (entry && entry->isView) {
    results[0].bytes = operands[0].bytes;
    return true;
  }
  std::vector<TensorView> in = viewsOf(operands), out = viewsOf(results);
  KernelCall call;
  call.in = in;
  call.out = out;
  call.attrs = attributes;
  const Kernel *kernel = selectKernel(op, call, Isa::Baseline);
  if (!kernel) {
    error = "no kernel of '" + std::string(op) + "' computes it";
    return false;
  }
  runAll(*kernel, call);
  return true;
}

} // namespace dspark

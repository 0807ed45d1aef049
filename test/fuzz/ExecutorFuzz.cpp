// libFuzzer target: runs hostile plans. The input is the PLAN section of an otherwise good file (the seeds
// are plans of small ONNX cases, one per operator); what passes the reader's checks is run on small inputs,
// twice, with and without the shapes' first trace. Inputs are blocks of exactly their size. A sentence or a
// result are both fine; a crash, a leak, more than the memory limit or ten seconds are findings.
#include "runtime/executor/Session.h"
#include "test/fuzz/PlanBytes.h"
#include <cstdlib>
#include <memory>

using namespace dspark;
using namespace dspark::fuzz;

namespace {

constexpr int64_t kMaxInputBytes = 1 << 16;
// As many sums of all 1,024 weights, in panels of 16 columns, are 4e9 products: seconds with sanitizers.
constexpr size_t kMemory = 1 << 20;

struct FreeBytes {
  void operator()(std::byte *bytes) const { std::free(bytes); }
};
using Bytes = std::unique_ptr<std::byte, FreeBytes>;

// Values that serve as indices, sizes and flags, and fractions where floats are wanted.
Bytes someInput(DType type, int64_t elements) {
  int64_t bytes = dtypeBytes(type, elements);
  Bytes block(static_cast<std::byte *>(std::malloc(size_t(bytes))));
  for (int64_t i = 0; i < bytes; ++i)
    block.get()[i] = std::byte(i % std::max(dtypeBits(type) / 8, 1) == 0 ? i / 8 % 3 : 0);
  if (type == DType::F32)
    for (int64_t i = 0; i < elements; ++i)
      reinterpret_cast<float *>(block.get())[i] = float(i % 7) * 0.5f - 1;
  return block;
}

struct Inputs {
  std::vector<Bytes> blocks;
  std::vector<std::vector<int64_t>> dims;
  std::vector<BorrowedTensor> tensors;
};

// Every symbol is `size`; a plan that wants more input than is small gets none.
bool makeInputs(const Program &program, int64_t size, Inputs &made) {
  std::vector<Dim> expressions;
  program.evaluate(std::vector<Dim>(program.symbolCount(), Dim(size)), expressions);
  for (int value : program.inputs()) {
    const ValueInfo &info = program.values()[size_t(value)];
    int64_t elements = 1;
    made.dims.emplace_back();
    for (int expression : info.dims) {
      Dim dim = expressions[size_t(expression)];
      made.dims.back().push_back(dim.isConst() && dim.value() >= 0 ? dim.value() : 1);
      if (__builtin_mul_overflow(elements, made.dims.back().back(), &elements) || elements > kMaxInputBytes)
        return false;
    }
    if (dtypeBytes(info.type, elements) > kMaxInputBytes)
      return false;
    made.blocks.push_back(someInput(info.type, elements));
    made.tensors.push_back(
        {made.blocks.back().get(), info.type, int32_t(made.dims.back().size()), nullptr, nullptr});
  }
  for (size_t i = 0; i < made.tensors.size(); ++i)
    made.tensors[i].dims = made.dims[i].data();
  return true;
}

// Whole numbers that serve as indices in the first half, one half as f32 in the second.
void fillWeights(File &file) {
  std::byte *weights = file.bytes + kWeightsAlignment;
  for (size_t at = 0; at < kWeightBytes; at += 8) {
    int64_t index = int64_t(at / 8 % 4);
    float half[2] = {0.5f, 0.5f};
    std::memcpy(weights + at, at < kWeightBytes / 2 ? static_cast<void *>(&index) : half, 8);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static auto file = [] {
    auto made = std::make_unique<File>();
    fillWeights(*made);
    return made;
  }();
  if (size < 2 || size - 1 > kMaxPlanBytes)
    return 0;
  auto plan = PlanFile::fromBytes(file->withPlan({data + 1, size - 1}), "fuzz.dsp");
  if (!plan.isOk())
    return 0;
  auto program = Program::create(*plan);
  if (!program.isOk())
    return 0;
  SessionOptions options;
  options.threads = 1 + data[0] / 128;
  options.isa = Isa(data[0] % kIsaCount);
  options.memoryLimit = kMemory;
  options.nativeCode = false;
  auto session = Session::create(*program, options);
  if (!session.isOk())
    return 0;
  for (int64_t symbols : {2, 3, 2}) {
    Inputs inputs;
    if (!makeInputs(**program, symbols, inputs))
      return 0;
    if ((*session)->run(inputs.tensors).isOk())
      for (size_t k = 0; k < (*session)->outputCount(); ++k)
        (void)(*session)->output(k).elements();
  }
  return 0;
}

// Hostile plan files. The first byte of the input chooses what the rest is:
//   0  a whole file, which seldom gets past the hashes
//   1  the PLAN section of an otherwise good file
//   2  changes to the PLAN section of a good file with every kind of step: offset (2 bytes), new byte, and so
//   on
// Whatever opens is made into a program and bound for small shapes, which runs shape functions, arena
// planning and kernel selection, but no kernel.
#include "runtime/executor/Session.h"
#include "test/fuzz/PlanBytes.h"

using namespace dspark;
using namespace dspark::fuzz;

namespace {

// --- a good plan ---

class Sample {
public:
  Sample() {
    plan.symbols = {"n"};
    for (auto [op, value, lhs, rhs] : {std::tuple(DimOp::Symbol, 0, -1, -1),
                                       {DimOp::Const, 4, -1, -1},
                                       {DimOp::Mul, 0, 0, 1},
                                       {DimOp::Const, 1, -1, -1}}) {
      auto expr = std::make_unique<fb::DimExprT>();
      expr->op = uint8_t(op);
      expr->value = value;
      expr->lhs = lhs;
      expr->rhs = rhs;
      plan.dim_exprs.push_back(std::move(expr));
    }
    plan.body = std::make_unique<fb::BlockT>();
    plan.locations = {"", "node"};
    int x = value(fb::ValueKind::Input, DType::F32, {0, 1}), c = value(fb::ValueKind::Input, DType::Bool, {});
    plan.body->args = {x, c};
    for (int id : {x, c}) {
      plan.inputs.push_back(std::make_unique<fb::InputT>());
      plan.inputs.back()->value = id;
      plan.values[size_t(id)]->name = "input" + std::to_string(id);
    }
    int w = constant(DType::F32, {1}, 0, 16), trips = constant(DType::I64, {}, 64, 8);
    int flat = temp();
    step(*plan.body, fb::StepKind::Dims, "", {}, {flat}).dims = {2};
    int sum = kernel(*plan.body, "binary", {x, w}, "add");
    int view = kernel(*plan.body, "reshape", {kernel(*plan.body, "softmax", {sum}, "softmax"), flat}, "");
    int y = temp();
    fb::StepT &branch = step(*plan.body, fb::StepKind::If, "if", {c}, {y});
    for (const char *kind : {"exp", "neg"}) {
      branch.blocks.push_back(std::make_unique<fb::BlockT>());
      branch.blocks.back()->results = {kernel(*branch.blocks.back(), "unary", {view}, kind)};
    }
    int last = temp(), stacked = temp();
    fb::StepT &loop = step(*plan.body, fb::StepKind::Loop, "loop", {trips, -1, y}, {last, stacked});
    attr(loop, "num_carried", "", 1);
    loop.blocks.push_back(std::make_unique<fb::BlockT>());
    fb::BlockT &body = *loop.blocks.back();
    body.args = {temp(), temp(), temp()};
    int next = kernel(body, "reduce", {kernel(body, "concat", {body.args[2], view}, "")}, "sum");
    body.results = {body.args[1], next, next};
    for (int id : {last, stacked, kernel(*plan.body, "matmul", {sum, w}, "")}) {
      plan.outputs.push_back(std::make_unique<fb::OutputT>());
      plan.outputs.back()->value = id;
      plan.outputs.back()->name = "output" + std::to_string(id);
    }
  }
  std::vector<uint8_t> bytes() const {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::Plan::Pack(builder, &plan));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
  }

private:
  int value(fb::ValueKind kind, DType type, std::vector<int> dims) {
    plan.values.push_back(std::make_unique<fb::ValueT>());
    plan.values.back()->kind = kind;
    plan.values.back()->dtype = uint8_t(type);
    plan.values.back()->dims = std::move(dims);
    return int(plan.values.size()) - 1;
  }
  int temp() { return value(fb::ValueKind::Temp, DType::Undefined, {}); }
  int constant(DType type, std::vector<int> dims, uint64_t offset, uint64_t length) {
    int id = value(fb::ValueKind::Constant, type, std::move(dims));
    plan.values.back()->blob = std::make_unique<fb::BlobT>();
    plan.values.back()->blob->offset = offset;
    plan.values.back()->blob->length = length;
    return id;
  }
  fb::StepT &step(fb::BlockT &block, fb::StepKind kind, const char *op, std::vector<int> in,
                  std::vector<int> out) {
    block.steps.push_back(std::make_unique<fb::StepT>());
    fb::StepT &made = *block.steps.back();
    made.kind = kind;
    made.op = op;
    made.inputs = std::move(in);
    made.outputs = std::move(out);
    made.location = 1;
    return made;
  }
  static void attr(fb::StepT &step, const char *name, const char *text, int64_t number) {
    step.attrs.push_back(std::make_unique<fb::AttrT>());
    step.attrs.back()->name = name;
    step.attrs.back()->str = text;
    if (!*text)
      step.attrs.back()->ints = {number};
  }
  int kernel(fb::BlockT &block, const char *op, std::vector<int> in, const char *kind) {
    int result = temp();
    fb::StepT &made = step(block, fb::StepKind::Kernel, op, std::move(in), {result});
    if (*kind)
      attr(made, "kind", kind, 0);
    return result;
  }
  fb::PlanT plan;
};

// --- what is done with a file ---

void open(std::span<const std::byte> bytes) {
  auto file = PlanFile::fromBytes(bytes, "fuzz.dsp");
  if (!file.isOk())
    return;
  (void)(*file)->verifyWeights();
  auto program = Program::create(*file);
  if (!program.isOk())
    return;
  for (const OutputInfo &output : (*program)->outputs())
    for (int dim : output.dims)
      (void)(*program)->dimText(dim);
  SessionOptions options;
  options.threads = 1;
  options.memoryLimit = 64 << 20;
  options.nativeCode = false;
  auto session = Session::create(*program, options);
  std::vector<Dim> expressions;
  (*program)->evaluate(std::vector<Dim>((*program)->symbolCount(), Dim(3)), expressions);
  alignas(64) static std::byte nothing[64];
  std::vector<std::vector<int64_t>> dims;
  for (int value : (*program)->inputs()) {
    dims.emplace_back();
    for (int expression : (*program)->values()[size_t(value)].dims) {
      Dim dim = expressions[size_t(expression)];
      dims.back().push_back(dim.isConst() ? dim.value() : 1);
    }
  }
  std::vector<BorrowedTensor> inputs;
  for (size_t i = 0; i < dims.size(); ++i)
    inputs.push_back({nothing, (*program)->values()[size_t((*program)->inputs()[i])].type,
                      int32_t(dims[i].size()), dims[i].data(), nullptr});
  (void)(*session)->bind(inputs).isOk();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static File file;
  static const std::vector<uint8_t> sample = Sample().bytes();
  if (size < 2)
    return 0;
  std::span<const uint8_t> rest(data + 1, size - 1);
  if (data[0] % 3 == 1 && rest.size() <= kMaxPlanBytes) {
    open(file.withPlan(rest));
  } else if (data[0] % 3 == 2) {
    std::vector<uint8_t> changed = sample;
    for (size_t i = 0; i + 2 < rest.size(); i += 3)
      changed[(rest[i] | size_t(rest[i + 1]) << 8) % changed.size()] = rest[i + 2];
    open(file.withPlan(changed));
  } else {
    auto *copy = static_cast<std::byte *>(std::aligned_alloc(64, (rest.size() + 63) / 64 * 64));
    std::memcpy(copy, rest.data(), rest.size());
    open({copy, rest.size()});
    std::free(copy);
  }
  return 0;
}

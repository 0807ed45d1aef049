#include "tools/dspark-bench/KernelCase.h"
#include "runtime/format/PackedBits.h"
#include "runtime/format/PackedLayout.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

namespace dspark {
namespace {

// More than an L2 cache, less than what other guests leave of an L3.
constexpr size_t kColdBytes = 3 << 20, kMostCopies = 64;

bool parseInts(std::string_view text, std::vector<int64_t> &numbers) {
  while (!text.empty()) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
      return false;
    numbers.push_back(value);
    text.remove_prefix(size_t(end - text.data()));
    if (text.empty())
      return true;
    if (text[0] != ',')
      return false;
    text.remove_prefix(1);
  }
  return false;
}

// Floats in [0.5, 1) whatever the type: no NaN, no denormal; as bytes, small codes and large ones.
void fill(std::byte *to, size_t bytes, DType type) {
  uint32_t state = 1;
  bool isIndex = type == DType::I64 || type == DType::I32;
  for (size_t i = 0; i < bytes; i += 4) {
    state = state * 1664525u + 1013904223u;
    uint32_t word = isIndex ? 0 : 0x3f000000u | (state >> 9);
    std::memcpy(to + i, &word, std::min<size_t>(4, bytes - i));
  }
}

} // namespace

StatusOr<std::unique_ptr<CaseRunner>> CaseRunner::create(const KernelCase &spec, Isa isa) {
  std::unique_ptr<CaseRunner> runner(new CaseRunner);
  std::istringstream words(spec.text);
  words >> runner->op;
  bool isOperand = false;
  for (std::string word; words >> word;) {
    if (word == "|")
      isOperand = true;
    else
      DSPARK_RETURN_IF_ERROR(
          (isOperand ? runner->readOperand(word) : runner->readAttribute(word)).in(spec.text));
  }
  for (const Attribute &a : runner->attributes)
    runner->attrs.push_back({a.name, a.ints, a.floats, a.word});
  runner->inputs = runner->operands.size();
  DSPARK_RETURN_IF_ERROR(runner->addResults().in(spec.text));
  DSPARK_RETURN_IF_ERROR(runner->allocate().in(spec.text));
  KernelCall &call = runner->call;
  std::span<const TensorView> views(runner->views);
  call.in = views.subspan(0, runner->inputs);
  call.out = views.subspan(runner->inputs);
  call.attrs = Attrs(runner->attrs);
  runner->row = selectKernel(runner->op, call, isa);
  if (!runner->row)
    return Status(Code::Unsupported, spec.text + ": no kernel");
  runner->row->prepare(call, runner->work);
  runner->scratch = runner->memory(runner->work.scratchPerThread);
  runner->shared = runner->memory(runner->work.scratchShared);
  return runner;
}

Status CaseRunner::readAttribute(const std::string &text) {
  size_t equals = text.find('=');
  if (equals == text.npos)
    return invalidArgument("expected NAME=VALUE, found '" + text + "'");
  Attribute a;
  a.name = text.substr(0, equals);
  std::string value = text.substr(equals + 1);
  if (!parseInts(value, a.ints)) {
    a.ints.clear();
    char *end = nullptr;
    double number = std::strtod(value.c_str(), &end);
    if (end && *end == 0)
      a.floats.push_back(number);
    else
      a.word = value;
  }
  attributes.push_back(std::move(a));
  return Status::ok();
}

Status CaseRunner::readOperand(const std::string &text) {
  Operand operand;
  operand.isConstant = text.starts_with("*");
  size_t open = text.find('[');
  std::string type = text.substr(operand.isConstant, open - operand.isConstant);
  operand.type = dtypeFromName(type);
  std::string dims = open == text.npos ? "" : text.substr(open + 1, text.size() - open - 2);
  if (operand.type == DType::Undefined || open == text.npos || !text.ends_with("]") ||
      (!dims.empty() && !parseInts(dims, operand.dims)))
    return invalidArgument("expected TYPE[DIMS], found '" + text + "'");
  operands.push_back(std::move(operand));
  return Status::ok();
}

std::string_view CaseRunner::attribute(std::string_view name) const { return Attrs(attrs).s(name, ""); }

Status CaseRunner::addResults() {
  std::vector<TensorInfo> infos;
  for (const Operand &operand : operands)
    infos.push_back(TensorInfo::make(operand.type, {operand.dims.begin(), operand.dims.end()}));
  const OpEntry *entry = findOp(op);
  if (!entry)
    return invalidArgument("no operator '" + op + "'");
  InferContext ctx;
  ctx.in = infos;
  ctx.attrs = Attrs(attrs);
  ctx.out.resize(1);
  if (inferWith(*entry, ctx) != InferStatus::Ok)
    return invalidArgument(ctx.error.empty() ? "the shape depends on contents" : ctx.error);
  Operand result;
  result.type = ctx.out[0].type;
  for (const Dim &dim : ctx.out[0].dims)
    result.dims.push_back(dim.value());
  operands.push_back(std::move(result));
  return Status::ok();
}

std::byte *CaseRunner::memory(size_t bytes) {
  blocks.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes + 128));
  void *start = blocks.back().get();
  size_t space = bytes + 128;
  return static_cast<std::byte *>(std::align(64, bytes + 64, start, space));
}

Status CaseRunner::allocate() {
  std::string_view packed = attribute("packed"), expandPacked = attribute("expand_packed");
  expandPacked = expandPacked.empty() ? "panel16" : expandPacked;
  bool isExpand = op == "expand_depthwise";
  size_t constant = 0;
  for (Operand &operand : operands) {
    bool isExpansion = isExpand && &operand == &operands[1]; // a product of its own
    std::string_view layout = isExpansion ? expandPacked : packed;
    int64_t elements = 1;
    for (int64_t dim : operand.dims)
      elements *= dim;
    operand.bytes = size_t(dtypeBytes(operand.type, elements));
    if (operand.isConstant && !packed.empty() && operand.dims.size() >= 2) {
      bool isConv = isExpand || op.find("conv") != op.npos;
      if (auto format = PackedFormat::named(layout)) {
        bool isTurned = Attrs(attrs).i("trans_b", 0) != 0;
        operand.bytes = size_t(format->bytes(operand.dims[isTurned], operand.dims[!isTurned]).value_or(0));
      } else if (isConv) {
        ConvWeight weight;
        weight.group = isExpansion ? 1 : Attrs(attrs).i("group", 1);
        weight.isTransposed = op == "conv_transpose";
        weight.inputs = weight.isTransposed ? operand.dims[0] : operand.dims[1] * weight.group;
        weight.outputs = weight.isTransposed ? operand.dims[1] * weight.group : operand.dims[0];
        for (size_t i = 2; i < operand.dims.size(); ++i)
          weight.spatial *= operand.dims[i];
        weight.elementBytes = dtypeBits(operand.type) / 8;
        DSPARK_ASSIGN_OR_RETURN(operand.bytes, packedBytes(layout, weight));
      } else {
        MatrixWeight weight{1, operand.dims[0], operand.dims[1], false, dtypeBits(operand.type) / 8};
        DSPARK_ASSIGN_OR_RETURN(operand.bytes, packedBytes(layout, weight));
      }
    }
    constant += operand.isConstant ? operand.bytes : 0;
  }
  copies = std::clamp<size_t>(constant ? kColdBytes / constant : 1, 1, kMostCopies);
  footprint = double(constant * copies);
  for (Operand &operand : operands) {
    for (size_t i = 0; i < (operand.isConstant ? copies : 1); ++i) {
      operand.copies.push_back(memory(operand.bytes));
      if (i == 0)
        fill(operand.copies[0], operand.bytes, operand.type);
      else
        std::memcpy(operand.copies.back(), operand.copies[0], operand.bytes);
    }
    views.push_back({operand.copies[0], operand.dims.data(), int32_t(operand.dims.size()), operand.type});
  }
  return Status::ok();
}

void CaseRunner::run() {
  turn = (turn + 1) % copies;
  for (size_t k = 0; k < inputs; ++k)
    views[k].data = operands[k].copies[operands[k].isConstant ? turn : 0];
  for (int phase = 0; phase < work.phases; ++phase)
    row->run(call, work, {0, work.tiles[phase], phase, 0, scratch, shared});
}

CostSample CaseRunner::sample(double seconds) const {
  uint64_t constants = 0;
  for (size_t k = 0; k < inputs; ++k)
    constants |= uint64_t(operands[k].isConstant) << k;
  return {costFeatures(*row, call, work, constants), footprint, seconds};
}

} // namespace dspark

#include "runtime/executor/Program.h"
#include "runtime/executor/Contents.h"
#include "runtime/format/LineRuns.h"
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace dspark {
namespace {

std::string_view viewOf(const flatbuffers::String *string) {
  return string ? std::string_view(string->data(), string->size()) : std::string_view();
}
// Plan files and this machine are little-endian, so numbers are used where they lie.
template <typename T> std::span<const T> viewOf(const flatbuffers::Vector<T> *vector) {
  return vector ? std::span<const T>(vector->data(), vector->size()) : std::span<const T>();
}

// Larger floating-point constants are read only when a shape function asks for them.
constexpr int64_t kEagerFloats = 16;

// Uses of values in `block` and the blocks inside it, constants and the block's own values left out.
void collectCaptures(const BlockInfo &block, std::span<const ValueInfo> values, std::map<int, int> &uses,
                     std::set<int> &own) {
  own.insert(block.args.begin(), block.args.end());
  auto use = [&](int value) {
    if (value >= 0 && values[size_t(value)].kind != fb::ValueKind::Constant)
      ++uses[value];
  };
  for (const StepInfo &step : block.steps) {
    for (int value : step.inputs)
      use(value);
    for (const BlockInfo &inner : step.blocks)
      for (const Capture &capture : inner.captures)
        uses[capture.value] += capture.uses;
    own.insert(step.outputs.begin(), step.outputs.end());
  }
  for (int value : block.results)
    use(value);
}

} // namespace

std::string StepInfo::where() const {
  std::string name(location.empty() ? "step " + std::to_string(index)
                                    : "node '" + std::string(location) + "'");
  return opName.empty() ? name : name + " (" + std::string(opName) + ")";
}

std::optional<size_t> StepInfo::updated(size_t operand) const {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] >= 0 && op->mayOverwrite(i, operand))
      return i;
  return std::nullopt;
}

StatusOr<std::shared_ptr<const Program>> Program::create(std::shared_ptr<const PlanFile> file,
                                                         std::string_view function) {
  std::shared_ptr<Program> program(new Program);
  program->planFile = std::move(file);
  program->record = function.empty() ? &program->planFile->plan() : program->planFile->function(function);
  if (!program->record)
    return invalidArgument(program->planFile->path() + ": the plan has no function '" +
                           std::string(function) + "'");
  const fb::Plan &plan = *program->record;
  if (plan.symbols())
    for (const auto *name : *plan.symbols())
      program->symbolNames.push_back(name->str());
  DSPARK_RETURN_IF_ERROR(program->readValues());
  program->readBlock(*plan.body(), program->main, program->steps);
  if (!program->missing.empty()) {
    std::string names;
    for (const std::string &name : program->missing)
      names += (names.empty() ? "" : ", ") + name;
    return Status(Code::Unsupported, program->planFile->path() + ": this runtime has no operator " + names +
                                         "; expected a newer runtime");
  }
  if (plan.inputs())
    for (const fb::Input *input : *plan.inputs()) {
      program->inputValues.push_back(input->value());
      program->valueInfos[size_t(input->value())].isState = input->is_state();
    }
  for (const fb::Output *output : *plan.outputs()) {
    program->outputInfos.push_back({output->value(), viewOf(output->name()), DType(output->dtype()),
                                    viewOf(output->dims()), output->type()});
    ++program->valueInfos[size_t(output->value())].uses;
  }
  program->countUses(program->main);
  program->readRegions();
  DSPARK_RETURN_IF_ERROR(program->checkStates());
  return std::shared_ptr<const Program>(std::move(program));
}

Status Program::readValues() {
  const fb::Plan &plan = *record;
  for (unsigned i = 0; plan.values() && i < plan.values()->size(); ++i) {
    const fb::Value &value = *plan.values()->Get(i);
    ValueInfo info{viewOf(value.name()),
                   viewOf(value.layout()),
                   value.kind(),
                   DType(value.dtype()),
                   viewOf(value.dims()),
                   value.dims() != nullptr,
                   0,
                   false,
                   value.type(),
                   {},
                   {}};
    if (info.kind == fb::ValueKind::Constant) {
      std::vector<Dim> dims;
      for (int expr : info.dims)
        dims.push_back(Dim(plan.dim_exprs()->Get(unsigned(expr))->value()));
      DSPARK_ASSIGN_OR_RETURN(info.bytes, constantBytes(*value.blob(), info.name));
      info.info = TensorInfo::make(info.type, std::move(dims));
      if (info.type == DType::String)
        DSPARK_RETURN_IF_ERROR(readStrings(info));
      int64_t eager = isFloat(info.type) ? kEagerFloats : kMaxKnownElements;
      if (info.layout.empty() && hasReadableContents(info.type) && elementCount(info.info.dims) <= eager)
        readContents(info.info, info.bytes.data());
    }
    valueInfos.push_back(std::move(info));
  }
  return Status::ok();
}

StatusOr<std::span<const std::byte>> Program::constantBytes(const fb::Blob &blob, std::string_view name) {
  std::span<const std::byte> stored = planFile->blob(blob);
  if (blob.expanded() == 0)
    return stored;
  const std::string what = planFile->path() + ": constant '" + std::string(name) + "'";
  DSPARK_RETURN_IF_ERROR(checkLineRuns(stored, blob.expanded()).in(what));
  Block &block = writtenOut.emplace_back(constantBudget);
  DSPARK_RETURN_IF_ERROR(block.ensure(blob.expanded(), "constants stored as runs").in(what));
  std::span<std::byte> bytes(block.data(), blob.expanded());
  writeLineRuns(stored, bytes);
  return std::span<const std::byte>(bytes);
}

// Places within the constant become addresses.
Status Program::readStrings(ValueInfo &info) {
  std::span<const std::byte> blob = info.bytes;
  size_t count = size_t(elementCount(info.info.dims)); // PlanCheck: so many places are there
  std::vector<StringElement> &strings = constantStrings.emplace_back(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t place[2]; // offset and length
    std::memcpy(place, blob.data() + i * sizeof place, sizeof place);
    if (place[0] > blob.size() || place[1] > blob.size() - place[0])
      return corruptFile(planFile->path() + ": constant '" + std::string(info.name) + "': string " +
                         std::to_string(i) + " lies at " + std::to_string(place[0]) + " with length " +
                         std::to_string(place[1]) + ", expected to end within " +
                         std::to_string(blob.size()));
    strings[i] = std::string_view(reinterpret_cast<const char *>(blob.data()) + place[0], size_t(place[1]));
  }
  info.bytes = std::as_bytes(std::span(strings));
  return Status::ok();
}

void Program::readBlock(const fb::Block &block, BlockInfo &info, int &index) {
  info.args = viewOf(block.args());
  info.results = viewOf(block.results());
  if (block.steps()) {
    info.steps.reserve(block.steps()->size());
    for (const fb::Step *step : *block.steps())
      info.steps.push_back(readStep(*step, index));
  }
  std::map<int, int> uses;
  std::set<int> own;
  collectCaptures(info, valueInfos, uses, own);
  for (auto [value, count] : uses)
    if (!own.contains(value))
      info.captures.push_back({value, count});
}

StepInfo Program::readStep(const fb::Step &step, int &index) {
  StepInfo info{};
  info.kind = step.kind();
  info.opName = viewOf(step.op());
  info.inputs = viewOf(step.inputs());
  info.outputs = viewOf(step.outputs());
  info.dims = viewOf(step.dims());
  info.symbol = std::string(viewOf(step.symbol()));
  info.index = index++;
  info.kernel = viewOf(step.kernel());
  const auto *locations = record->locations();
  if (locations && step.location() < locations->size())
    info.location = viewOf(locations->Get(step.location()));
  if (step.attrs())
    for (const fb::Attr *attr : *step.attrs())
      info.attrs.push_back(
          {viewOf(attr->name()), viewOf(attr->ints()), viewOf(attr->floats()), viewOf(attr->str())});
  if (info.kind == fb::StepKind::Kernel) {
    info.op = findOp(info.opName);
    std::string name = "'" + std::string(info.opName) + "'";
    auto known = [&](const std::string &entry) { return entry.starts_with(name); };
    if (!info.op && std::none_of(missing.begin(), missing.end(), known))
      missing.push_back(name + (info.location.empty() ? "" : " (node '" + std::string(info.location) + "')"));
  }
  if (step.blocks()) {
    info.blocks.resize(step.blocks()->size());
    for (unsigned i = 0; i < step.blocks()->size(); ++i)
      readBlock(*step.blocks()->Get(i), info.blocks[i], index);
  }
  return info;
}

void Program::countUses(BlockInfo &block) {
  auto use = [&](int value) {
    if (value >= 0)
      ++valueInfos[size_t(value)].uses;
  };
  for (StepInfo &step : block.steps) {
    for (int value : step.inputs)
      use(value);
    for (BlockInfo &inner : step.blocks)
      countUses(inner);
  }
  if (&block != &main) // the body's results are the plan's outputs, which are counted already
    for (int value : block.results)
      use(value);
}

void Program::readRegions() {
  const fb::Plan &plan = *record;
  deviceNames = {"cpu"};
  for (unsigned i = 0; plan.devices() && i < plan.devices()->size(); ++i)
    deviceNames.push_back(plan.devices()->Get(i)->name()->str());
  stepRegions.assign(main.steps.size(), -1);
  for (unsigned i = 0; plan.regions() && i < plan.regions()->size(); ++i) {
    const fb::Region &region = *plan.regions()->Get(i);
    RegionInfo &info = regionInfos.emplace_back(
        RegionInfo{viewOf(region.steps()), {}, region.chosen(), region.pinned(), viewOf(region.choices())});
    for (int step : info.steps)
      stepRegions[size_t(step)] = int(i);
    for (const fb::RegionVariant *variant : *region.variants())
      info.variants.push_back({variant->device(), variant->seconds(), variant->bytes()});
  }
  for (unsigned i = 0; plan.sizes() && i < plan.sizes()->size(); ++i) {
    const fb::Sizes &entry = *plan.sizes()->Get(i);
    SizesInfo &info = sizesInfos.emplace_back();
    for (unsigned k = 0; entry.symbols() && k < entry.symbols()->size(); ++k)
      info.push_back({entry.symbols()->Get(k), entry.sizes()->Get(k)});
  }
}

Status Program::checkStates() const {
  std::set<int> updated;
  for (const StepInfo &step : main.steps)
    for (size_t k = 0; k < step.inputs.size() && step.op; ++k)
      if (step.inputs[k] >= 0 && step.updated(k))
        updated.insert(step.inputs[k]);
  for (int value : inputValues) {
    const ValueInfo &info = valueInfos[size_t(value)];
    if (info.isState && (info.typeTree || info.uses != 1 || !updated.contains(value)))
      return corruptFile(planFile->path() + ": state '" + std::string(info.name) + "' has " +
                         std::to_string(info.uses) + " uses, expected one, by a step that may overwrite it");
  }
  return Status::ok();
}

int Program::symbolOf(int expression) const {
  if (expression < 0)
    return -1;
  const fb::DimExpr &expr = *record->dim_exprs()->Get(unsigned(expression));
  return DimOp(expr.op()) == DimOp::Symbol ? int(expr.value()) : -1;
}

void Program::evaluate(std::span<const Dim> symbols, std::vector<Dim> &expressions) const {
  const auto *exprs = record->dim_exprs();
  expressions.resize(exprs ? exprs->size() : 0);
  for (unsigned i = 0; i < expressions.size(); ++i) {
    const fb::DimExpr &expr = *exprs->Get(i);
    if (DimOp(expr.op()) == DimOp::Const) {
      expressions[i] = Dim(expr.value());
    } else if (DimOp(expr.op()) == DimOp::Symbol) {
      expressions[i] = symbols[size_t(expr.value())];
    } else {
      Dim a = expressions[size_t(expr.lhs())], b = expressions[size_t(expr.rhs())];
      std::optional<int64_t> value;
      if (a.isConst() && b.isConst())
        value = evaluateDimOp(DimOp(expr.op()), a.value(), b.value());
      expressions[i] = value ? Dim(*value) : Dim();
    }
  }
}

std::string Program::dimText(int expression) const {
  if (expression < 0)
    return "?";
  // Shared subexpressions would be written out again and again, so a text beyond this length is cut.
  constexpr size_t kLongest = 200;
  const auto *exprs = record->dim_exprs();
  auto write = [&](auto &&self, int id, std::string &out) -> void {
    const fb::DimExpr &expr = *exprs->Get(unsigned(id));
    if (out.size() > kLongest)
      return;
    static constexpr const char *kSigns[] = {"", "", " + ", "*"};
    static constexpr const char *kCalls[] = {"",        "",    "",    "",    "floordiv",
                                             "ceildiv", "mod", "min", "max", "broadcast"};
    switch (DimOp(expr.op())) {
    case DimOp::Const:
      out += std::to_string(expr.value());
      return;
    case DimOp::Symbol:
      out += symbolNames[size_t(expr.value())];
      return;
    default:
      bool infix = DimOp(expr.op()) == DimOp::Add || DimOp(expr.op()) == DimOp::Mul;
      out += (infix ? "" : kCalls[expr.op()]) + std::string("(");
      self(self, expr.lhs(), out);
      out += infix ? kSigns[expr.op()] : ", ";
      self(self, expr.rhs(), out);
      out += ")";
    }
  };
  std::string out;
  write(write, expression, out);
  return out.size() > kLongest ? out.substr(0, kLongest) + "..." : out;
}

StatusOr<const void *> Program::code(const std::string &symbol, Isa cap) const {
  for (int level = int(cap); level >= 0; --level)
    for (const SectionEntry &entry : planFile->sections())
      if (entry.kind == uint32_t(SectionKind::Code) && entry.tag == uint32_t(level)) {
        LazyCode &lazy = native[size_t(level)];
        std::call_once(lazy.once, [&] {
          auto loaded =
              NativeCode::load(planFile->bytes(entry), "dspark-" + std::string(isaName(Isa(level))));
          lazy.status = loaded.status();
          if (loaded.isOk())
            lazy.code = std::move(*loaded);
        });
        DSPARK_RETURN_IF_ERROR(Status(lazy.status));
        const void *address = lazy.code->find(symbol);
        if (!address)
          return corruptFile(planFile->path() + ": generated code has no function '" + symbol + "'");
        return address;
      }
  return static_cast<const void *>(nullptr);
}

} // namespace dspark

#include "runtime/format/PlanCheck.h"
#include "kernels/common/shape.h"
#include "runtime/format/PlanFile.h"
#include <set>
#include <string>
#include <vector>

namespace dspark {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

template <typename T> size_t sizeOf(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}
std::string_view viewOf(const flatbuffers::String *string) {
  return string ? std::string_view(string->data(), string->size()) : std::string_view();
}

class Checker {
public:
  Checker(const fb::Plan &plan, BlobSpace weights, std::span<const BlobSpace> files)
      : plan(plan), weights(weights), files(files), values(int(sizeOf(plan.values()))),
        defined(values, false), visible(values, false) {}

  Status run() {
    DSPARK_RETURN_IF_ERROR(checkExpressions());
    for (int i = 0; i < values; ++i)
      DSPARK_RETURN_IF_ERROR(checkValue(i));
    DSPARK_RETURN_IF_ERROR(checkInterface());
    DSPARK_RETURN_IF_ERROR(checkBlock(*plan.body(), 0));
    for (const fb::Output *output : *plan.outputs())
      DSPARK_RETURN_IF_ERROR(checkUse(output->value(), false, "output '" + output->name()->str() + "'"));
    return checkRegions();
  }

private:
  Status checkExpressions() const;
  Status checkRegions() const;
  Status checkSizes() const;
  Status checkRegion(const fb::Region &region, const std::string &what, std::vector<bool> &isTaken) const;
  Status checkValue(int id) const;
  Status checkType(const fb::ValueType &type, int depth, const std::string &what) const;
  Status checkConstant(const fb::Value &value, const std::string &what) const;
  Status checkDims(const flatbuffers::Vector<int32_t> *dims, bool mayBeUnknown,
                   const std::string &what) const;
  Status checkInterface() const;
  Status checkBlock(const fb::Block &block, int depth);
  Status checkStep(const fb::Step &step, int depth);
  Status checkAttr(const fb::Attr *attr, const std::string &what) const;
  Status checkForm(const fb::Step &step, const std::string &what) const;
  Status checkLoop(const fb::Step &step, const std::string &what) const;
  Status checkList(const fb::Step &step, const std::string &what) const;
  Status checkUse(int id, bool mayBeAbsent, const std::string &what) const;
  Status define(int id, fb::ValueKind kind, const std::string &what);
  std::string nameOf(const fb::Step &step) const;

  const fb::Plan &plan;
  BlobSpace weights;
  std::span<const BlobSpace> files;
  int values;
  int steps = 0;
  std::vector<bool> defined; // by any block, also one that has ended
  std::vector<bool> visible;
};

Status Checker::checkExpressions() const {
  size_t symbols = sizeOf(plan.symbols());
  for (size_t i = 0; i < sizeOf(plan.dim_exprs()); ++i) {
    const fb::DimExpr &expr = *plan.dim_exprs()->Get(unsigned(i));
    std::string what = "dim expression " + text(int64_t(i));
    if (expr.op() > uint8_t(DimOp::Broadcast))
      return corruptFile(what + " has operation " + text(expr.op()) + ", expected at most " +
                         text(int(DimOp::Broadcast)));
    if (DimOp(expr.op()) == DimOp::Const)
      continue;
    if (DimOp(expr.op()) == DimOp::Symbol) {
      if (uint64_t(expr.value()) >= symbols)
        return corruptFile(what + " is symbol " + text(expr.value()) + ", expected one below " +
                           text(int64_t(symbols)));
      continue;
    }
    for (int child : {expr.lhs(), expr.rhs()})
      if (child < 0 || size_t(child) >= i)
        return corruptFile(what + " refers to expression " + text(child) + ", expected an earlier one");
  }
  return Status::ok();
}

Status Checker::checkDims(const flatbuffers::Vector<int32_t> *dims, bool mayBeUnknown,
                          const std::string &what) const {
  int count = int(sizeOf(plan.dim_exprs()));
  if (sizeOf(dims) > kMaxRank)
    return corruptFile(what + " has rank " + text(int64_t(sizeOf(dims))) + ", expected at most " +
                       text(kMaxRank));
  for (size_t i = 0; i < sizeOf(dims); ++i) {
    int id = dims->Get(unsigned(i));
    if (id >= count || id < (mayBeUnknown ? -1 : 0))
      return corruptFile(what + ": dim " + text(int64_t(i)) + " is expression " + text(id) +
                         ", expected one below " + text(count));
  }
  return Status::ok();
}

Status Checker::checkConstant(const fb::Value &value, const std::string &what) const {
  int64_t elements = 1;
  bool isEmpty = false;
  for (size_t i = 0; i < sizeOf(value.dims()); ++i) {
    const fb::DimExpr &expr = *plan.dim_exprs()->Get(unsigned(value.dims()->Get(unsigned(i))));
    if (DimOp(expr.op()) != DimOp::Const || expr.value() < 0)
      return corruptFile(what + ": dim " + text(int64_t(i)) + " of a constant is not a number");
    isEmpty |= expr.value() == 0;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(expr.value(), 1), &elements) ||
        elements > (INT64_MAX >> 8))
      return corruptFile(what + " has more elements than any file holds");
  }
  if (isEmpty)
    elements = 0;
  const fb::Blob *blob = value.blob();
  if (!blob)
    return corruptFile(what + " is a constant without bytes");
  if (blob->file() < -1 || blob->file() >= int(files.size()))
    return corruptFile(what + " lies in file " + text(blob->file()) + ", expected one below " +
                       text(int64_t(files.size())));
  uint64_t space = blob->file() < 0 ? weights.bytes : files[size_t(blob->file())].bytes;
  if (blob->length() > space || blob->offset() > space - blob->length())
    return corruptFile(what + " lies at " + std::to_string(blob->offset()) + " with length " +
                       std::to_string(blob->length()) + ", expected to end within " + std::to_string(space));
  uint64_t elementBytes = std::max(1, dtypeBits(DType(value.dtype())) / 8);
  if (blob->offset() % std::min<uint64_t>(elementBytes, 8) != 0)
    return corruptFile(what + " lies at " + std::to_string(blob->offset()) + ", expected a multiple of " +
                       std::to_string(elementBytes));
  uint64_t bytes = uint64_t(dtypeBytes(DType(value.dtype()), elements));
  bool packed = !viewOf(value.layout()).empty(), isText = DType(value.dtype()) == DType::String;
  if (packed && isText)
    return corruptFile(what + " is packed, expected strings as they are");
  if (packed) // dims are those of the weight, whose elements may take as little as two bits
    bytes = uint64_t(elements) / 4;
  // Strings: their places, which Program checks one by one, and then their characters.
  packed |= isText;
  if (isText && blob->expanded() > 0)
    return corruptFile(what + " is stored as runs, expected strings as they are");
  uint64_t found = blob->expanded() > 0 ? blob->expanded() : blob->length();
  if (packed ? found < bytes : found != bytes)
    return corruptFile(what + " has " + std::to_string(found) + " bytes, expected " + std::to_string(bytes) +
                       (packed ? " or more" : ""));
  return Status::ok();
}

Status Checker::checkType(const fb::ValueType &type, int depth, const std::string &what) const {
  size_t items = type.kind() == fb::TypeKind::Tensor ? 0 : type.kind() == fb::TypeKind::Map ? 2 : 1;
  if (type.kind() > fb::TypeKind::MAX || depth > kMaxTypeDepth || sizeOf(type.items()) != items)
    return corruptFile(what + " has a type of kind " + text(int(type.kind())) + " with " +
                       text(int64_t(sizeOf(type.items()))) + " items at depth " + text(depth) +
                       ", expected a tensor, sequence, optional or map, at most " + text(kMaxTypeDepth) +
                       " deep");
  if (type.kind() == fb::TypeKind::Tensor &&
      (type.dtype() == 0 || type.dtype() >= kDTypeCount || type.rank() < -1 || type.rank() > kMaxRank ||
       sizeOf(type.dims()) != size_t(std::max(type.rank(), 0))))
    return corruptFile(what + " holds tensors of element type " + text(type.dtype()) + ", rank " +
                       text(type.rank()) + " and " + text(int64_t(sizeOf(type.dims()))) +
                       " dims, expected a type below " + text(kDTypeCount) + " and as many dims as the rank");
  if (!isAligned(type.dims()))
    return corruptFile(what + " has a type whose dims are not aligned, expected a multiple of 8");
  for (size_t i = 0; i < items; ++i) {
    const fb::ValueType &item = *type.items()->Get(unsigned(i));
    if (type.kind() == fb::TypeKind::Map && item.kind() != fb::TypeKind::Tensor)
      return corruptFile(what + " is a map of other things than tensors");
    DSPARK_RETURN_IF_ERROR(checkType(item, depth + 1, what));
  }
  return Status::ok();
}

Status Checker::checkValue(int id) const {
  const fb::Value &value = *plan.values()->Get(unsigned(id));
  std::string what = "value " + text(id);
  if (!viewOf(value.name()).empty())
    what += " ('" + value.name()->str() + "')";
  if (value.kind() > fb::ValueKind::MAX)
    return corruptFile(what + " has kind " + text(int(value.kind())) + ", expected at most " +
                       text(int(fb::ValueKind::MAX)));
  if (value.type()) {
    if (value.kind() != fb::ValueKind::Input || value.dtype() != 0 || sizeOf(value.dims()) > 0)
      return corruptFile(what + " has a type of its own, expected an input without element type and dims");
    return checkType(*value.type(), 0, what);
  }
  bool typed = value.kind() != fb::ValueKind::Temp;
  if (value.dtype() >= kDTypeCount || (typed && dtypeBits(DType(value.dtype())) == 0))
    return corruptFile(what + " has element type " + text(value.dtype()) +
                       ", expected a fixed-size one below " + text(kDTypeCount));
  DSPARK_RETURN_IF_ERROR(checkDims(value.dims(), false, what));
  return value.kind() == fb::ValueKind::Constant ? checkConstant(value, what) : Status::ok();
}

Status Checker::checkInterface() const {
  if (!plan.body() || !plan.outputs() || !plan.outputs()->size())
    return corruptFile("there is no body or no output");
  size_t inputs = sizeOf(plan.inputs());
  if (sizeOf(plan.body()->args()) != inputs)
    return corruptFile("the body has " + text(int64_t(sizeOf(plan.body()->args()))) +
                       " arguments, expected one for each of " + text(int64_t(inputs)) + " inputs");
  std::set<std::string_view> names;
  for (size_t i = 0; i < inputs; ++i) {
    int id = plan.inputs()->Get(unsigned(i))->value();
    if (id < 0 || id >= values || plan.body()->args()->Get(unsigned(i)) != id)
      return corruptFile("input " + text(int64_t(i)) + " is value " + text(id) + ", expected argument " +
                         text(int64_t(i)) + " of the body");
    std::string_view name = viewOf(plan.values()->Get(unsigned(id))->name());
    if (name.empty() || !names.insert(name).second)
      return corruptFile("input " + text(int64_t(i)) + " has the name '" + std::string(name) +
                         "', expected a name of its own");
  }
  for (const fb::Output *output : *plan.outputs()) {
    if (viewOf(output->name()).empty())
      return corruptFile("an output has no name");
    DSPARK_RETURN_IF_ERROR(checkDims(output->dims(), true, "output '" + output->name()->str() + "'"));
    if (output->type())
      DSPARK_RETURN_IF_ERROR(checkType(*output->type(), 0, "output '" + output->name()->str() + "'"));
  }
  for (size_t count : {sizeOf(plan.file_bytes()), sizeOf(plan.file_hashes())})
    if (count != 0 && count != files.size())
      return corruptFile("there are " + text(int64_t(count)) + " lengths or hashes for " +
                         text(int64_t(files.size())) + " weight files");
  return Status::ok();
}

Status Checker::checkUse(int id, bool mayBeAbsent, const std::string &what) const {
  if (id == -1 && mayBeAbsent)
    return Status::ok();
  if (id < 0 || id >= values)
    return corruptFile(what + " is value " + text(id) + ", expected one below " + text(values));
  if (plan.values()->Get(unsigned(id))->kind() != fb::ValueKind::Constant && !visible[size_t(id)])
    return corruptFile(what + " is value " + text(id) + ", which is not defined there");
  return Status::ok();
}

Status Checker::define(int id, fb::ValueKind kind, const std::string &what) {
  if (id < 0 || id >= values)
    return corruptFile(what + " is value " + text(id) + ", expected one below " + text(values));
  if (plan.values()->Get(unsigned(id))->kind() != kind)
    return corruptFile(what + " is value " + text(id) + " of kind " +
                       fb::EnumNameValueKind(plan.values()->Get(unsigned(id))->kind()) + ", expected " +
                       fb::EnumNameValueKind(kind));
  if (defined[size_t(id)])
    return corruptFile(what + " is value " + text(id) + ", which is already defined");
  defined[size_t(id)] = visible[size_t(id)] = true;
  return Status::ok();
}

Status Checker::checkBlock(const fb::Block &block, int depth) {
  if (depth > kMaxBlockDepth)
    return corruptFile("blocks are nested deeper than " + text(kMaxBlockDepth));
  std::vector<int> mine;
  for (size_t i = 0; i < sizeOf(block.args()); ++i) {
    int id = block.args()->Get(unsigned(i));
    DSPARK_RETURN_IF_ERROR(define(id, depth == 0 ? fb::ValueKind::Input : fb::ValueKind::Temp,
                                  "argument " + text(int64_t(i)) + " of a block"));
    mine.push_back(id);
  }
  for (size_t i = 0; i < sizeOf(block.steps()); ++i) {
    const fb::Step &step = *block.steps()->Get(unsigned(i));
    DSPARK_RETURN_IF_ERROR(checkStep(step, depth));
    for (size_t k = 0; k < sizeOf(step.outputs()); ++k)
      if (int id = step.outputs()->Get(unsigned(k)); id >= 0)
        mine.push_back(id);
  }
  for (size_t i = 0; i < sizeOf(block.results()); ++i)
    DSPARK_RETURN_IF_ERROR(
        checkUse(block.results()->Get(unsigned(i)), false, "result " + text(int64_t(i)) + " of a block"));
  if (depth > 0)
    for (int id : mine)
      visible[size_t(id)] = false;
  return Status::ok();
}

std::string Checker::nameOf(const fb::Step &step) const {
  std::string name = "step " + text(steps) + " (" + std::string(viewOf(step.op()));
  if (step.location() < sizeOf(plan.locations()))
    name += " '" + std::string(viewOf(plan.locations()->Get(step.location()))) + "'";
  return name + ")";
}

Status Checker::checkAttr(const fb::Attr *attr, const std::string &what) const {
  std::string_view name = viewOf(attr->name());
  if (name.empty())
    return corruptFile(what + " has an attribute without a name");
  if (!isAligned(attr->ints()) || !isAligned(attr->floats()))
    return corruptFile(what + ": attribute '" + std::string(name) +
                       "' is not aligned, expected a multiple of 8");
  size_t ints = sizeOf(attr->ints()), floats = sizeOf(attr->floats());
  int kinds = (ints > 0) + (floats > 0) + !viewOf(attr->str()).empty();
  if (kinds > 1)
    return corruptFile(what + ": attribute '" + std::string(name) +
                       "' has more than one of ints, floats and str");
  if (!attr->is_list() && ints + floats > 1)
    return corruptFile(what + ": attribute '" + std::string(name) + "' has " + text(int64_t(ints + floats)) +
                       " entries, expected one as it is no list");
  return Status::ok();
}

Status Checker::checkStep(const fb::Step &step, int depth) {
  std::string what = nameOf(step);
  ++steps;
  if (step.kind() > fb::StepKind::MAX)
    return corruptFile(what + " has kind " + text(int(step.kind())) + ", expected at most " +
                       text(int(fb::StepKind::MAX)));
  if (step.location() != 0 && step.location() >= sizeOf(plan.locations()))
    return corruptFile(what + " has location " + text(step.location()) + ", expected one below " +
                       text(int64_t(sizeOf(plan.locations()))));
  bool isKernel = step.kind() == fb::StepKind::Kernel || step.kind() == fb::StepKind::List;
  for (size_t i = 0; i < sizeOf(step.inputs()); ++i)
    DSPARK_RETURN_IF_ERROR(checkUse(step.inputs()->Get(unsigned(i)),
                                    isKernel || step.kind() == fb::StepKind::Loop,
                                    what + ": operand " + text(int64_t(i))));
  if (step.in_place() < -1 || step.in_place() >= int(sizeOf(step.inputs())))
    return corruptFile(what + " is in place of operand " + text(step.in_place()) + ", expected one below " +
                       text(int64_t(sizeOf(step.inputs()))));
  std::set<std::string_view> names;
  for (size_t i = 0; i < sizeOf(step.attrs()); ++i) {
    DSPARK_RETURN_IF_ERROR(checkAttr(step.attrs()->Get(unsigned(i)), what));
    if (!names.insert(viewOf(step.attrs()->Get(unsigned(i))->name())).second)
      return corruptFile(what + " has attribute '" + step.attrs()->Get(unsigned(i))->name()->str() +
                         "' twice");
  }
  DSPARK_RETURN_IF_ERROR(checkForm(step, what));
  for (size_t i = 0; i < sizeOf(step.blocks()); ++i)
    DSPARK_RETURN_IF_ERROR(checkBlock(*step.blocks()->Get(unsigned(i)), depth + 1).in(what));
  for (size_t i = 0; i < sizeOf(step.outputs()); ++i)
    if (int id = step.outputs()->Get(unsigned(i)); id != -1)
      DSPARK_RETURN_IF_ERROR(define(id, fb::ValueKind::Temp, what + ": result " + text(int64_t(i))));
  return Status::ok();
}

// What each kind of step must have beside the common parts.
Status Checker::checkForm(const fb::Step &step, const std::string &what) const {
  size_t blocks = sizeOf(step.blocks()), outputs = sizeOf(step.outputs());
  size_t expectedBlocks = step.kind() == fb::StepKind::If ? 2 : step.kind() == fb::StepKind::Loop ? 1 : 0;
  if (blocks != expectedBlocks)
    return corruptFile(what + " has " + text(int64_t(blocks)) + " blocks, expected " +
                       text(int64_t(expectedBlocks)));
  switch (step.kind()) {
  case fb::StepKind::Kernel:
    if (viewOf(step.op()).empty())
      return corruptFile(what + " names no operator");
    return Status::ok();
  case fb::StepKind::Dims: {
    int64_t rank = 1;
    for (size_t i = 0; i < sizeOf(step.attrs()); ++i)
      if (const fb::Attr &attr = *step.attrs()->Get(unsigned(i));
          viewOf(attr.name()) == "rank" && sizeOf(attr.ints()))
        rank = attr.ints()->Get(0);
    size_t count = sizeOf(step.dims());
    if (outputs != 1 || (rank != 0 && rank != 1) || (rank == 0 && count != 1) || count > kMaxKnownElements)
      return corruptFile(what + " has rank " + text(rank) + ", " + text(int64_t(count)) + " dims and " +
                         text(int64_t(outputs)) +
                         " results, expected rank 0 and one dim or rank 1 and up to " +
                         text(kMaxKnownElements) + ", and one result");
    for (int id : *step.outputs())
      if (id < 0)
        return corruptFile(what + " has no result");
    for (size_t i = 0; i < count; ++i)
      if (int id = step.dims()->Get(unsigned(i)); id < 0 || size_t(id) >= sizeOf(plan.dim_exprs()))
        return corruptFile(what + ": dim " + text(int64_t(i)) + " is expression " + text(id) +
                           ", expected one below " + text(int64_t(sizeOf(plan.dim_exprs()))));
    return Status::ok();
  }
  case fb::StepKind::If:
    if (sizeOf(step.inputs()) != 1)
      return corruptFile(what + " has " + text(int64_t(sizeOf(step.inputs()))) +
                         " operands, expected the condition");
    for (const fb::Block *block : *step.blocks())
      if (sizeOf(block->args()) != 0 || sizeOf(block->results()) != outputs)
        return corruptFile(what + ": a block has " + text(int64_t(sizeOf(block->args()))) +
                           " arguments and " + text(int64_t(sizeOf(block->results()))) +
                           " results, expected 0 and " + text(int64_t(outputs)));
    return Status::ok();
  case fb::StepKind::Loop:
    return checkLoop(step, what);
  case fb::StepKind::List:
    return checkList(step, what);
  }
  return Status::ok();
}

Status Checker::checkLoop(const fb::Step &step, const std::string &what) const {
  const flatbuffers::Vector<int64_t> *lists[7] = {};
  static constexpr std::string_view kNames[7] = {
      "num_carried",      "num_scan_inputs",       "has_cond", "scan_input_axes", "scan_input_directions",
      "scan_output_axes", "scan_output_directions"};
  for (size_t i = 0; i < sizeOf(step.attrs()); ++i)
    for (int k = 0; k < 7; ++k)
      if (viewOf(step.attrs()->Get(unsigned(i))->name()) == kNames[k])
        lists[k] = step.attrs()->Get(unsigned(i))->ints();
  auto number = [&](int k) { return sizeOf(lists[k]) ? lists[k]->Get(0) : 0; };
  int64_t inputs = int64_t(sizeOf(step.inputs())), outputs = int64_t(sizeOf(step.outputs()));
  int64_t carried = number(0), scanInputs = number(1);
  if (carried < 0 || scanInputs < 0 || carried > inputs || scanInputs > inputs || carried > outputs ||
      inputs != 2 + carried + scanInputs)
    return corruptFile(
        what + " has " + text(inputs) + " operands, " + text(outputs) + " results, num_carried " +
        text(carried) + " and num_scan_inputs " + text(scanInputs) +
        ", expected 2 + num_carried + num_scan_inputs operands and at least num_carried results");
  for (int64_t i = 2; i < inputs; ++i)
    if (step.inputs()->Get(unsigned(i)) < 0)
      return corruptFile(what + ": operand " + text(i) +
                         " is absent, expected a carried value or scan input");
  int64_t scanOutputs = outputs - carried;
  const fb::Block &body = *step.blocks()->Get(0);
  if (int64_t(sizeOf(body.args())) != 2 + carried + scanInputs ||
      int64_t(sizeOf(body.results())) != 1 + outputs)
    return corruptFile(what + ": the body has " + text(int64_t(sizeOf(body.args()))) + " arguments and " +
                       text(int64_t(sizeOf(body.results()))) + " results, expected " +
                       text(2 + carried + scanInputs) + " and " + text(1 + outputs));
  for (int k = 3; k < 7; ++k) {
    int64_t expected = k < 5 ? scanInputs : scanOutputs, found = int64_t(sizeOf(lists[k]));
    if (found != 0 && found != expected)
      return corruptFile(what + ": attribute '" + std::string(kNames[k]) + "' has " + text(found) +
                         " entries, expected " + text(expected));
  }
  return Status::ok();
}

// The operations on lists, and how many operands they have; the optional ones are at the end.
Status Checker::checkList(const fb::Step &step, const std::string &what) const {
  struct Form {
    std::string_view op;
    size_t least, most;
  };
  static constexpr Form kForms[] = {
      {"construct", 0, SIZE_MAX}, {"insert", 2, 3}, {"erase", 1, 2},  {"at", 1, 2},
      {"length", 1, 1},           {"split", 1, 2},  {"concat", 1, 1}, {"rows", 2, 2}};
  size_t inputs = sizeOf(step.inputs());
  for (const Form &form : kForms) {
    if (form.op != viewOf(step.op()))
      continue;
    bool fits = inputs >= form.least && inputs <= form.most && sizeOf(step.outputs()) == 1;
    for (size_t i = 0; fits && i < inputs; ++i)
      fits = step.inputs()->Get(unsigned(i)) >= 0 || (i >= form.least && form.most != SIZE_MAX);
    if (!fits)
      return corruptFile(what + " has " + text(int64_t(inputs)) + " operands and " +
                         text(int64_t(sizeOf(step.outputs()))) + " results, expected at least " +
                         text(int64_t(form.least)) + " operands that are there, and one result");
    return Status::ok();
  }
  return corruptFile(what + " is no operation on lists that this reader knows");
}

Status Checker::checkRegions() const {
  if (sizeOf(plan.devices()) > kMaxPlanDevices)
    return corruptFile("there are " + text(int64_t(sizeOf(plan.devices()))) + " devices, expected at most " +
                       text(kMaxPlanDevices));
  std::set<std::string_view> names = {"cpu"};
  for (size_t i = 0; i < sizeOf(plan.devices()); ++i)
    if (std::string_view name = viewOf(plan.devices()->Get(unsigned(i))->name());
        name.empty() || !names.insert(name).second)
      return corruptFile("device " + text(int64_t(i)) + " has the name '" + std::string(name) +
                         "', expected a name of its own");
  DSPARK_RETURN_IF_ERROR(checkSizes());
  std::vector<bool> isTaken(sizeOf(plan.body()->steps()));
  for (size_t i = 0; i < sizeOf(plan.regions()); ++i)
    DSPARK_RETURN_IF_ERROR(
        checkRegion(*plan.regions()->Get(unsigned(i)), "region " + text(int64_t(i)), isTaken));
  return Status::ok();
}

Status Checker::checkSizes() const {
  if (sizeOf(plan.sizes()) > kMaxPlanSizes)
    return corruptFile("there are " + text(int64_t(sizeOf(plan.sizes()))) + " sizes, expected at most " +
                       text(kMaxPlanSizes));
  for (size_t i = 0; i < sizeOf(plan.sizes()); ++i) {
    const fb::Sizes &entry = *plan.sizes()->Get(unsigned(i));
    bool isGood = sizeOf(entry.symbols()) == sizeOf(entry.sizes()) && isAligned(entry.sizes());
    for (size_t k = 0; isGood && k < sizeOf(entry.symbols()); ++k)
      isGood = entry.symbols()->Get(unsigned(k)) >= 0 &&
               size_t(entry.symbols()->Get(unsigned(k))) < sizeOf(plan.symbols()) &&
               entry.sizes()->Get(unsigned(k)) >= 0;
    if (!isGood)
      return corruptFile("sizes " + text(int64_t(i)) + " are not one size of 0 or more for each of " +
                         text(int64_t(sizeOf(entry.symbols()))) + " symbols");
  }
  return Status::ok();
}

Status Checker::checkRegion(const fb::Region &region, const std::string &what,
                            std::vector<bool> &isTaken) const {
  size_t variants = sizeOf(region.variants());
  if (sizeOf(region.steps()) == 0 || variants == 0 || variants > kMaxRegionVariants || region.chosen() < 0 ||
      size_t(region.chosen()) >= variants)
    return corruptFile(what + " has " + text(int64_t(sizeOf(region.steps()))) + " steps, " +
                       text(int64_t(variants)) + " variants and choice " + text(region.chosen()) +
                       ", expected steps, 1 to " + text(kMaxRegionVariants) + " variants and one of them");
  bool areChoicesGood = sizeOf(region.choices()) == 0 || sizeOf(region.choices()) == sizeOf(plan.sizes());
  for (size_t i = 0; i < sizeOf(region.choices()); ++i)
    areChoicesGood &=
        region.choices()->Get(unsigned(i)) >= 0 && size_t(region.choices()->Get(unsigned(i))) < variants;
  if (!areChoicesGood)
    return corruptFile(what + " has " + text(int64_t(sizeOf(region.choices()))) +
                       " choices, expected none or one of its variants for each of " +
                       text(int64_t(sizeOf(plan.sizes()))) + " sizes");
  int before = -1;
  for (size_t i = 0; i < sizeOf(region.steps()); before = region.steps()->Get(unsigned(i)), ++i) {
    int step = region.steps()->Get(unsigned(i));
    if (step <= before || size_t(step) >= isTaken.size() || isTaken[size_t(step)] ||
        plan.body()->steps()->Get(unsigned(step))->kind() != fb::StepKind::Kernel)
      return corruptFile(what + " has step " + text(step) +
                         ", expected Kernel steps of the body in ascending order, each in one region");
    isTaken[size_t(step)] = true;
  }
  bool mayBeCpu = false;
  std::set<int> devices;
  for (size_t i = 0; i < variants; ++i) {
    const fb::RegionVariant &variant = *region.variants()->Get(unsigned(i));
    mayBeCpu |= variant.device() == 0;
    bool isGood = variant.device() >= 0 && size_t(variant.device()) <= sizeOf(plan.devices()) &&
                  devices.insert(variant.device()).second && variant.seconds() >= 0 &&
                  variant.seconds() < 1e9;
    if (!isGood)
      return corruptFile(what + ": variant " + text(int64_t(i)) + " is on device " + text(variant.device()) +
                         ", expected a device of its own below " + text(int64_t(sizeOf(plan.devices())) + 1) +
                         " and a time of less than 1e9 s");
  }
  return mayBeCpu ? Status::ok() : corruptFile(what + " has no variant on the CPU");
}

} // namespace

Status checkPlan(const fb::Plan &plan, BlobSpace weights, std::span<const BlobSpace> files) {
  return Checker(plan, weights, files).run();
}

} // namespace dspark

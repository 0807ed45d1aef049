// Steps on lists (docs/plan-format.md): tracing them moves items about, and only `split`, `concat` and `rows`
// leave something to do for a run.
#include "runtime/executor/Contents.h"
#include "runtime/executor/Tracer.h"
#include "runtime/executor/Values.h"
#include <algorithm>

namespace dspark {
namespace {

// The operand whose numbers decide the result's structure, or -1.
int numbersOperand(std::string_view op) {
  return op == "insert" ? 2 : op == "at" || op == "erase" || op == "split" ? 1 : -1;
}

std::string text(int64_t value) { return std::to_string(value); }

/// `position` counted from the front; nothing if it is outside [-length, last].
std::optional<size_t> fromFront(int64_t position, int64_t length, int64_t last) {
  if (position < -length || position > last)
    return std::nullopt;
  return size_t(position < 0 ? position + length : position);
}

/// Lengths of the parts that a dim is cut into: of one each, of `sizes` if that is a number, or as `sizes`
/// lists them.
StatusOr<std::vector<int64_t>> partSizes(const TensorInfo &sizes, int64_t dim) {
  std::vector<int64_t> result;
  if (sizes.present() && sizes.rank() > 0) {
    int64_t sum = 0;
    for (Dim size : sizes.ints) {
      if (size.value() < 0 || size.value() > dim - sum)
        return invalidArgument("parts of " + sizes.str() + " do not make up a dim of " + text(dim) +
                               ": one is " + text(size.value()));
      sum += size.value();
      result.push_back(size.value());
    }
    if (sum != dim)
      return invalidArgument("parts add up to " + text(sum) + ", expected " + text(dim));
    return result;
  }
  int64_t size = sizes.present() ? sizes.ints[0].value() : 1;
  if (size <= 0 || dim / size >= int64_t(kMaxListTensors))
    return invalidArgument("a dim of " + text(dim) + " is cut into parts of " + text(size) +
                           ", expected at least 1 and at most " + text(int64_t(kMaxListTensors)) + " parts");
  for (int64_t begin = 0; begin < dim; begin += size)
    result.push_back(std::min(size, dim - begin));
  return result;
}

} // namespace

// Numbers that decide structure are read where they are constant or computed from shapes; else the segment
// ends to see them.
Status Tracer::knowIntegers(const StepInfo &step, size_t operand, bool &isKnown) {
  DSPARK_RETURN_IF_ERROR(expectTensor(step, operand));
  TensorInfo info = infoOf(step.inputs[operand]);
  isKnown = isKnownInteger(info);
  if (!isKnown) {
    if (!isInteger(info.type) || dtypeBits(info.type) < 32)
      return invalidArgument(step.where() + ": operand " + text(int64_t(operand)) + " is " + info.str() +
                             ", expected integers");
    DSPARK_RETURN_IF_ERROR(observe(step.inputs[operand], step, isKnown));
  }
  return Status::ok();
}

StatusOr<Tracer::Next> Tracer::listStep(const StepInfo &step) {
  int numbers = numbersOperand(step.opName);
  if (numbers >= 0 && numbers < int(step.inputs.size()) && step.inputs[size_t(numbers)] >= 0) {
    bool isKnown = false;
    DSPARK_RETURN_IF_ERROR(knowIntegers(step, size_t(numbers), isKnown));
    if (!isKnown)
      return Next::End;
  }
  if (step.outputs[0] < 0) {
    for (int value : step.inputs)
      use(value);
    return Next::Step;
  }
  DSPARK_ASSIGN_OR_RETURN(TracedItem result, listResult(step));
  if (!isReasonable(result))
    return Status(Code::Unsupported, step.where() + ": the list is too large, expected at most " +
                                         text(int64_t(kMaxListTensors)) + " tensors, " + text(kMaxListDepth) +
                                         " lists deep");
  define(step.outputs[0], std::move(result));
  for (int value : step.inputs)
    use(value);
  return Next::Step;
}

StatusOr<TracedItem> Tracer::listResult(const StepInfo &step) {
  std::string_view op = step.opName;
  auto wrong = [&](const std::string &what) { return invalidArgument(step.where() + ": " + what); };
  auto number = [&](size_t operand, int64_t otherwise) -> StatusOr<int64_t> {
    if (operand >= step.inputs.size() || step.inputs[operand] < 0)
      return otherwise;
    TensorInfo info = infoOf(step.inputs[operand]);
    if (info.ints.size() != 1)
      return wrong("operand " + text(int64_t(operand)) + " is " + info.str() + ", expected one integer");
    return info.ints[0].value();
  };
  TracedItem list;
  list.isList = true;
  if (op == "construct") {
    for (int value : step.inputs)
      list.items.push_back(itemOf(value));
    return list;
  }
  TracedItem first = itemOf(step.inputs[0]);
  bool takesTensor = op == "split" || op == "rows";
  if (first.isList == takesTensor)
    return wrong(takesTensor ? "operand 0 is a list, expected a tensor"
                             : "operand 0 is " + first.info.str() + ", expected a list");
  int64_t length = int64_t(first.items.size());
  if (op == "length") {
    TracedItem result;
    result.info = TensorInfo::make(DType::I64, {});
    result.info.hasContents = true;
    result.info.ints = {Dim(length)};
    return result;
  }
  if (op == "insert" || op == "erase" || op == "at") {
    bool isInsert = op == "insert";
    DSPARK_ASSIGN_OR_RETURN(int64_t position, number(isInsert ? 2 : 1, isInsert     ? length
                                                                       : op == "at" ? 0
                                                                                    : -1));
    std::optional<size_t> place = fromFront(position, length, isInsert ? length : length - 1);
    if (!place)
      return wrong("position " + text(position) + " is outside a list of " + text(length));
    if (op == "at")
      return std::move(first.items[*place]);
    if (isInsert)
      first.items.insert(first.items.begin() + int64_t(*place), itemOf(step.inputs[1]));
    else
      first.items.erase(first.items.begin() + int64_t(*place));
    return first;
  }
  if (op == "concat")
    return join(step, first);

  bool isRows = op == "rows";
  int64_t axisGiven = Attrs(step.attrs).i("axis", 0);
  if (isRows && first.info.rank() == 1) // one row
    first.info.dims.insert(first.info.dims.begin(), Dim(1));
  int axis = normalizeAxis(axisGiven, first.info.rank());
  if (axis < 0 || (isRows && axis > 0))
    return wrong("axis " + text(axisGiven) + " is outside " + first.info.str());
  bool hasSizes = !isRows && step.inputs.size() > 1 && step.inputs[1] >= 0;
  auto sizes =
      partSizes(hasSizes ? infoOf(step.inputs[1]) : TensorInfo(), first.info.dims[size_t(axis)].value());
  if (!sizes.isOk())
    return sizes.status().in(step.where());
  bool keepsAxis = hasSizes || (!isRows && Attrs(step.attrs).i("keepdims", 1) != 0);
  DSPARK_ASSIGN_OR_RETURN(list.items, cut(step, first, axis, std::move(*sizes), keepsAxis));
  for (TracedItem &row : list.items)
    if (isRows) {
      TracedItem map;
      map.isList = true;
      map.items = {itemOf(step.inputs[1]), std::move(row)};
      row = std::move(map);
    }
  return list;
}

/// Parts of `x` along `axis`; without keepsAxis they lose it. One call of the split kernel.
StatusOr<std::vector<TracedItem>> Tracer::cut(const StepInfo &step, const TracedItem &x, int axis,
                                              std::vector<int64_t> sizes, bool keepsAxis) {
  std::vector<TracedItem> parts(sizes.size());
  int64_t elements = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].info = TensorInfo::make(x.info.type, x.info.dims);
    parts[i].info.dims[size_t(axis)] = Dim(sizes[i]);
    elements += elementCount(parts[i].info.dims);
  }
  if (elements > 0) {
    std::vector<TracedItem> inputs = {x, {}};
    inputs[1].info = TensorInfo::make(DType::I64, {Dim(sizes.size())});
    inputs[1].info.hasContents = true;
    inputs[1].info.ints.assign(sizes.begin(), sizes.end());
    for (TracedItem &input : inputs)
      writeOut(input);
    for (TracedItem &part : parts)
      part.storage = newBuffer(part.info);
    addRecord(step, "split", inputs, parts);
  } else {
    for (TracedItem &part : parts)
      part.storage = {Storage::Kind::Constant, -1, nullptr};
  }
  for (TracedItem &part : parts)
    if (!keepsAxis)
      part.info.dims.erase(part.info.dims.begin() + axis);
  return parts;
}

/// The list's tensors joined along `axis`, or stacked along a new one.
StatusOr<TracedItem> Tracer::join(const StepInfo &step, const TracedItem &list) {
  auto wrong = [&](const std::string &what) { return invalidArgument(step.where() + ": " + what); };
  if (list.items.empty())
    return wrong("the list is empty, expected at least one tensor to concatenate");
  bool isStack = Attrs(step.attrs).i("new_axis", 0) != 0;
  int64_t axis = Attrs(step.attrs).i("axis", 0);
  std::vector<TracedItem> inputs = list.items;
  std::vector<TensorInfo> infos;
  for (TracedItem &input : inputs) {
    if (input.isList)
      return wrong("the list holds lists, expected tensors");
    writeOut(input);
    if (isStack) {
      int place = normalizeAxis(axis, input.info.rank() + 1);
      if (place < 0 || input.info.rank() == kMaxRank)
        return wrong("axis " + text(axis) + " is no place for a new one in " + input.info.str());
      input.info.dims.insert(input.info.dims.begin() + place, Dim(1));
    }
    infos.push_back(input.info);
  }
  InferContext inferred;
  inferred.in = infos;
  inferred.attrs = Attrs(step.attrs);
  inferred.out.resize(1);
  if (inferWith(*findOp("concat"), inferred) != InferStatus::Ok)
    return wrong(inferred.error);
  DSPARK_RETURN_IF_ERROR(checkResults(step, inferred));
  TracedItem result;
  result.info = std::move(inferred.out[0]);
  if (isKnownInteger(result.info))
    return result;
  if (elementCount(result.info.dims) == 0) {
    result.storage = {Storage::Kind::Constant, -1, nullptr};
    return result;
  }
  result.storage = newBuffer(result.info);
  addRecord(step, "concat", inputs, std::span(&result, 1));
  return result;
}

} // namespace dspark

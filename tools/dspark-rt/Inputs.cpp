#include "tools/dspark-rt/Inputs.h"
#include "kernels/common/numeric.h"
#include "runtime/memory/Arena.h"
#include "tools/dspark-rt/Npy.h"
#include <algorithm>
#include <charconv>
#include <random>

namespace dspark {
namespace {

std::string listOf(std::span<const std::string> names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

const ValueInfo &inputInfo(const Program &program, size_t i) {
  return program.values()[size_t(program.inputs()[i])];
}

// "x[1][0]" is item 0 of item 1 of x. False if what follows the name is no list of numbers.
bool parsePath(std::string_view text, std::vector<size_t> &path) {
  while (!text.empty()) {
    size_t close = text.find(']'), number = 0;
    if (text[0] != '[' || close == text.npos)
      return false;
    auto [end, error] = std::from_chars(text.data() + 1, text.data() + close, number);
    if (error != std::errc() || end != text.data() + close || number >= kMaxListTensors)
      return false;
    path.push_back(number);
    text.remove_prefix(close + 1);
  }
  return true;
}

// The type that a path leads to; null if there is no such item.
const fb::ValueType *itemType(const fb::ValueType *type, std::span<const size_t> path) {
  for (size_t place : path) {
    if (type->kind() == fb::TypeKind::Tensor || (type->kind() == fb::TypeKind::Map && place > 1))
      return nullptr;
    type = type->items()->Get(type->kind() == fb::TypeKind::Map ? unsigned(place) : 0);
  }
  return type->kind() == fb::TypeKind::Tensor ? type : nullptr;
}

void putItem(HostValue &value, std::span<const size_t> path, HostTensor tensor) {
  if (path.empty()) {
    value.tensor = std::move(tensor);
    return;
  }
  value.isList = true;
  value.items.resize(std::max(value.items.size(), path[0] + 1));
  putItem(value.items[path[0]], path.subspan(1), std::move(tensor));
}

Status place(const Program &program, HostTensor tensor, const std::string &source,
             std::vector<std::optional<HostValue>> &found) {
  std::vector<std::string> names;
  for (size_t i = 0; i < program.inputs().size(); ++i) {
    const ValueInfo &info = inputInfo(program, i);
    names.emplace_back(info.name);
    if (info.typeTree) {
      std::vector<size_t> path;
      if (!tensor.name.starts_with(info.name) ||
          !parsePath(std::string_view(tensor.name).substr(info.name.size()), path))
        continue;
      const fb::ValueType *type = itemType(info.typeTree, path);
      if (!type)
        return invalidArgument(source + ": '" + tensor.name + "' is no tensor in input '" + names.back() +
                               "'");
      if (!found[i])
        found[i].emplace().isList = true;
      putItem(*found[i], path, asDeclared(std::move(tensor), DType(type->dtype())));
      return Status::ok();
    }
    if (names.back() != tensor.name)
      continue;
    if (found[i])
      return invalidArgument(source + ": input '" + tensor.name + "' is given twice");
    found[i].emplace().tensor = asDeclared(std::move(tensor), info.type);
    return Status::ok();
  }
  return invalidArgument(source + ": the plan has no input '" + tensor.name + "'; it has " + listOf(names));
}

// What stands for a sequence, optional or map that no file gives.
HostValue emptyValue(const fb::ValueType &type) {
  HostValue value;
  value.isList = true;
  for (unsigned side = 0; type.kind() == fb::TypeKind::Map && side < 2; ++side) {
    value.items.emplace_back().tensor.type = DType(type.items()->Get(side)->dtype());
    value.items.back().tensor.dims = {0};
  }
  return value;
}

Status readFiles(const Program &program, const InputRequest &request,
                 std::vector<std::optional<HostValue>> &found) {
  for (const std::string &text : request.files) {
    // Names may contain '=', file names rarely do.
    size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return invalidArgument("--input expects NAME=FILE.npy, found '" + text + "'");
    DSPARK_ASSIGN_OR_RETURN(HostTensor tensor, readNpy(text.substr(equals + 1)));
    tensor.name = text.substr(0, equals);
    DSPARK_RETURN_IF_ERROR(place(program, std::move(tensor), text.substr(equals + 1), found));
  }
  for (const HostTensor &tensor : request.tensors)
    DSPARK_RETURN_IF_ERROR(place(program, tensor, request.source, found));
  if (request.archive.empty())
    return Status::ok();
  DSPARK_ASSIGN_OR_RETURN(auto tensors, readNpz(request.archive));
  for (HostTensor &tensor : tensors)
    DSPARK_RETURN_IF_ERROR(place(program, std::move(tensor), request.archive, found));
  return Status::ok();
}

// Numbers for all symbols: from --dim, then from the tensors that files gave, then 1.
Status bindSymbols(const Program &program, const InputRequest &request,
                   const std::vector<std::optional<HostValue>> &found, std::vector<Dim> &symbols,
                   Inputs &inputs) {
  symbols.assign(program.symbolCount(), Dim());
  for (const auto &[name, value] : request.dims) {
    auto it = std::find(program.symbols().begin(), program.symbols().end(), name);
    if (it == program.symbols().end())
      return invalidArgument("--dim " + name + ": the plan has no dim of that name; it has " +
                             listOf(program.symbols()));
    symbols[size_t(it - program.symbols().begin())] = Dim(value);
  }
  for (bool fromFiles : {true, false})
    for (size_t i = 0; i < program.inputs().size(); ++i) {
      const ValueInfo &info = inputInfo(program, i);
      for (size_t d = 0; d < info.dims.size(); ++d) {
        int symbol = program.symbolOf(info.dims[d]);
        if (symbol < 0 || !symbols[size_t(symbol)].isUnknown())
          continue;
        if (fromFiles && found[i] && found[i]->tensor.dims.size() == info.dims.size())
          symbols[size_t(symbol)] = Dim(found[i]->tensor.dims[d]);
        if (!fromFiles && !found[i]) {
          symbols[size_t(symbol)] = Dim(1);
          inputs.assumedDims.push_back(program.symbols()[size_t(symbol)]);
        }
      }
    }
  return Status::ok();
}

// Floats in [-1, 1), integers 0 or 1: small enough to be an index anywhere.
StatusOr<HostTensor> randomTensor(const std::string &name, DType type, const std::vector<int64_t> &dims,
                                  uint64_t seed) {
  HostTensor tensor{name, type, dims, {}};
  int64_t count = 1;
  uint64_t limit = machineMemory();
  bool isEmpty = std::count(dims.begin(), dims.end(), 0) > 0, overflows = false;
  for (int64_t dim : dims)
    overflows |= __builtin_mul_overflow(count, dim, &count);
  count = isEmpty ? 0 : count;
  if (!isEmpty && (overflows || uint64_t(count) > limit / 8))
    return Status(Code::OutOfMemory, "input '" + name + "' as " + tensor.str() + " does not fit the " +
                                         std::to_string(limit) + " bytes of this machine");
  if (type == DType::String) { // empty ones
    tensor.strings.resize(size_t(count));
    return tensor;
  }
  DType real = type == DType::C64 ? DType::F32 : type == DType::C128 ? DType::F64 : type;
  int64_t numbers = real == type ? count : 2 * count;
  tensor.bytes.resize(size_t(dtypeBytes(type, count)));
  std::mt19937_64 random(seed);
  constexpr int64_t kChunk = 4096;
  double values[kChunk];
  for (int64_t begin = 0; begin < numbers; begin += kChunk) {
    int64_t n = std::min(kChunk, numbers - begin);
    for (int64_t i = 0; i < n; ++i) {
      uint64_t bits = random();
      values[i] = isFloat(real) ? double(bits >> 40) * 0x1p-23 - 1 : double(bits >> 63);
    }
    storeFromF64(real, tensor.bytes.data(), begin, n, values);
  }
  return tensor;
}

} // namespace

StatusOr<Inputs> gatherInputs(const Program &program, const InputRequest &request) {
  Inputs inputs;
  std::vector<std::optional<HostValue>> found(program.inputs().size());
  DSPARK_RETURN_IF_ERROR(readFiles(program, request, found));
  std::vector<Dim> symbols, expressions;
  DSPARK_RETURN_IF_ERROR(bindSymbols(program, request, found, symbols, inputs));
  program.evaluate(symbols, expressions);
  for (size_t i = 0; i < found.size(); ++i) {
    inputs.isRandom.push_back(!found[i]);
    const ValueInfo &info = inputInfo(program, i);
    if (found[i] || info.typeTree) {
      inputs.values.push_back(found[i] ? std::move(*found[i]) : emptyValue(*info.typeTree));
      continue;
    }
    std::vector<int64_t> dims;
    for (int expression : info.dims) {
      Dim dim = expressions[size_t(expression)];
      if (!dim.isConst() || dim.value() < 0)
        return invalidArgument("input '" + std::string(info.name) + "': dim " + program.dimText(expression) +
                               " is " + dim.str() + ", expected 0 or more; give its symbols with --dim");
      dims.push_back(dim.value());
    }
    DSPARK_ASSIGN_OR_RETURN(HostTensor tensor, randomTensor(std::string(info.name), info.type, dims,
                                                            request.seed * 0x9e3779b97f4a7c15 + i));
    inputs.values.emplace_back().tensor = std::move(tensor);
  }
  return inputs;
}

} // namespace dspark

#include "tools/dspark-compile/CalibrationFiles.h"
#include "kernels/common/numeric.h"
#include "tools/dspark-rt/Npy.h"
#include "tools/dspark-rt/TensorProto.h"
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace dspark {
namespace {

using nlohmann::json;

constexpr size_t kMaxRank = 8;

const ValueInfo *inputOf(const Program &program, std::string_view name) {
  for (int32_t id : program.inputs())
    if (program.values()[size_t(id)].name == name)
      return &program.values()[size_t(id)];
  return nullptr;
}

// "input_3.pb" is the input number 3.
std::string nameByPosition(const Program &program, const std::string &path) {
  std::string stem = std::filesystem::path(path).stem().string();
  size_t number = 0, at = stem.rfind('_') + 1;
  auto [end, error] = std::from_chars(stem.data() + at, stem.data() + stem.size(), number);
  if (error != std::errc() || end != stem.data() + stem.size() || number >= program.inputs().size())
    return "";
  return std::string(program.values()[size_t(program.inputs()[number])].name);
}

StatusOr<HostTensor> readPb(const Program &program, const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(std::string name, readProtoName(path));
  DSPARK_ASSIGN_OR_RETURN(HostValue value, readValueProto(path, nullptr));
  if (!inputOf(program, name))
    if (std::string other = nameByPosition(program, path); !other.empty())
      name = other;
  value.tensor.name = name;
  return std::move(value.tensor);
}

// Nested lists as dims and numbers; false where lists of one depth differ in length or hold no numbers.
bool flatten(const json &value, size_t depth, std::vector<int64_t> &dims, std::vector<double> &numbers) {
  if (!value.is_array()) {
    numbers.push_back(value.is_boolean()  ? double(value.get<bool>())
                      : value.is_number() ? value.get<double>()
                                          : 0);
    return (value.is_number() || value.is_boolean()) && depth == dims.size();
  }
  if (depth == kMaxRank)
    return false;
  if (depth == dims.size()) {
    if (!numbers.empty())
      return false;
    dims.push_back(int64_t(value.size()));
  }
  if (dims[depth] != int64_t(value.size()))
    return false;
  for (const json &item : value)
    if (!flatten(item, depth + 1, dims, numbers))
      return false;
  return true;
}

StatusOr<HostTensor> tensorOf(const Program &program, const std::string &name, const json &value,
                              const std::string &source) {
  const ValueInfo *info = inputOf(program, name);
  if (!info)
    return invalidArgument(source + ": the model has no input '" + name + "'");
  HostTensor tensor{name, info->type, {}, {}};
  std::vector<double> numbers;
  bool isNumeric = info->type != DType::String && info->type != DType::C64 && info->type != DType::C128;
  if (!isNumeric || !flatten(value, 0, tensor.dims, numbers))
    return invalidArgument(source + ": input '" + name + "' expects " + std::string(dtypeName(info->type)) +
                           " numbers in lists of equal lengths");
  while (tensor.dims.size() < info->dims.size())
    tensor.dims.insert(tensor.dims.begin(), 1);
  tensor.bytes.resize(size_t(dtypeBytes(tensor.type, int64_t(numbers.size()))));
  storeFromF64(tensor.type, tensor.bytes.data(), 0, int64_t(numbers.size()), numbers.data());
  return tensor;
}

Status readLines(const Program &program, const std::string &path, std::vector<CalibrationSet> &sets) {
  std::ifstream file(path);
  if (!file)
    return Status(Code::NotFound, path + ": cannot be opened");
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos)
      continue;
    CalibrationSet set{path + ":" + std::to_string(number), {}};
    json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object())
      return invalidArgument(set.source + ": expected a JSON object of inputs");
    for (const auto &[name, value] : object.items()) {
      DSPARK_ASSIGN_OR_RETURN(HostTensor tensor, tensorOf(program, name, value, set.source));
      set.tensors.push_back(std::move(tensor));
    }
    sets.push_back(std::move(set));
  }
  return Status::ok();
}

} // namespace

StatusOr<std::vector<CalibrationSet>> readCalibrationSets(const Program &program,
                                                          const std::vector<std::string> &files) {
  std::vector<CalibrationSet> sets;
  std::string folder; // of the last set, if it is of .pb files
  for (const std::string &path : files) {
    std::filesystem::path name(path);
    if (name.extension() == ".jsonl") {
      DSPARK_RETURN_IF_ERROR(readLines(program, path, sets));
    } else if (name.extension() == ".pb") {
      DSPARK_ASSIGN_OR_RETURN(HostTensor tensor, readPb(program, path));
      std::string here = "folder " + name.parent_path().string();
      if (here != folder)
        sets.push_back({here, {}});
      folder = here;
      sets.back().tensors.push_back(std::move(tensor));
      continue;
    } else {
      DSPARK_ASSIGN_OR_RETURN(std::vector<HostTensor> tensors, readNpz(path));
      sets.push_back({path, std::move(tensors)});
    }
    folder.clear();
  }
  if (sets.empty() && !files.empty())
    return invalidArgument(files.front() + ": holds no set of inputs");
  return sets;
}

} // namespace dspark

#include "frontends/onnx/ModelReader.h"
#include "frontends/onnx/Skeleton.h"
#include <google/protobuf/io/coded_stream.h>
#include <set>

namespace dspark::onnx {

static Status checkOpsets(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports) {
  std::map<std::string, int64_t> seen;
  for (const auto &import : imports) {
    std::string domain = import.domain() == "ai.onnx" ? "" : import.domain();
    auto [entry, isNew] = seen.emplace(domain, import.version());
    if (!isNew && entry->second != import.version())
      return corruptFile("opset imports of domain '" + domain + "' disagree: " +
                         std::to_string(entry->second) + " and " + std::to_string(import.version()));
    if (import.version() < 1 || (domain.empty() && import.version() > kNewestOpset))
      return Status(Code::Unsupported, "opset " + std::to_string(import.version()) + " of '" +
                                           (domain.empty() ? "ai.onnx" : domain) +
                                           "' is not known; supported are 1 to " +
                                           (domain.empty() ? std::to_string(kNewestOpset) : "any"));
  }
  return Status::ok();
}

static Status checkModel(const ::onnx::ModelProto &model) {
  if (!model.has_graph())
    return corruptFile("not an ONNX model: it has no graph");
  if (model.ir_version() < 1)
    return corruptFile("not an ONNX model: IR version " + std::to_string(model.ir_version()));
  if (model.ir_version() > kNewestIr)
    return Status(Code::Unsupported, "IR version " + std::to_string(model.ir_version()) + " is newer than " +
                                         std::to_string(kNewestIr) + ", the newest known");
  DSPARK_RETURN_IF_ERROR(checkOpsets(model.opset_import()));
  if (model.ir_version() >= 3 && model.opset_import().empty())
    return corruptFile("no opset_import: the model does not say which operator versions it uses");
  std::set<std::string> names;
  for (const auto &function : model.functions()) {
    std::string name = function.domain() + "." + function.name() + ":" + function.overload();
    if (!names.insert(name).second)
      return corruptFile("function '" + name + "' is defined twice");
    DSPARK_RETURN_IF_ERROR(checkOpsets(function.opset_import()).in("function '" + name + "'"));
  }
  return Status::ok();
}

StatusOr<Model> readModel(const std::string &path) {
  std::string problem;
  auto file = MappedFile::open(path, problem);
  if (!file)
    return Status(Code::IoError, problem);
  if (file->bytes().empty())
    return corruptFile(path + ": the file is empty");
  auto skeleton = makeSkeleton(file->bytes());
  if (!skeleton.isOk())
    return skeleton.status().in(path);

  Model model;
  model.file = file;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(skeleton->data()),
                                                int(skeleton->size()));
  stream.SetRecursionLimit(kMaxNesting + 16); // types nest too; the walk does not follow them
  if (!model.proto.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return corruptFile(path + ": not an ONNX file: the protobuf message does not parse");
  DSPARK_RETURN_IF_ERROR(checkModel(model.proto).in(path));
  model.tensors = std::make_unique<TensorReader>(model.file, path);
  return model;
}

} // namespace dspark::onnx

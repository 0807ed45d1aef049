// Small ONNX models for tests, and folders to put them in.
#pragma once
#include <filesystem>
#include <fstream>
#include <onnx-ml.pb.h>
#include <string>
#include <vector>

namespace dspark::onnx::test {

/// A folder that is gone when the test is over.
class TempFolder {
public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dspark-onnx-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &file) const { return (path / file).string(); }
  std::string write(const std::string &file, const std::string &bytes) const {
    std::ofstream(*this / file, std::ios::binary) << bytes;
    return *this / file;
  }
  std::filesystem::path path;
};

/// `dims` entries are numbers, names, or "" for a dim without either.
inline void setInfo(::onnx::ValueInfoProto &info, const std::string &name, int type,
                    const std::vector<std::string> &dims) {
  info.set_name(name);
  auto *tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const std::string &dim : dims) {
    auto *entry = tensor->mutable_shape()->add_dim();
    if (!dim.empty() && isdigit(dim[0]))
      entry->set_dim_value(std::stoll(dim));
    else if (!dim.empty())
      entry->set_dim_param(dim);
  }
}

inline ::onnx::TensorProto tensor(const std::string &name, int type, const std::vector<int64_t> &dims,
                                  const std::string &raw) {
  ::onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(type);
  for (int64_t dim : dims)
    proto.add_dims(dim);
  proto.set_raw_data(raw);
  return proto;
}

template <typename T> std::string rawBytes(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

inline ::onnx::NodeProto &addNode(::onnx::GraphProto &graph, const std::string &op,
                                  const std::vector<std::string> &inputs,
                                  const std::vector<std::string> &outputs, const std::string &name = "") {
  ::onnx::NodeProto &node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(name);
  for (const std::string &input : inputs)
    node.add_input(input);
  for (const std::string &output : outputs)
    node.add_output(output);
  return node;
}

inline ::onnx::AttributeProto &addAttribute(::onnx::NodeProto &node, const std::string &name,
                                            ::onnx::AttributeProto::AttributeType type) {
  ::onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}
inline void setInt(::onnx::NodeProto &node, const std::string &name, int64_t value) {
  addAttribute(node, name, ::onnx::AttributeProto::INT).set_i(value);
}
inline void setInts(::onnx::NodeProto &node, const std::string &name, const std::vector<int64_t> &values) {
  auto &attribute = addAttribute(node, name, ::onnx::AttributeProto::INTS);
  for (int64_t value : values)
    attribute.add_ints(value);
}
inline ::onnx::GraphProto &setGraph(::onnx::NodeProto &node, const std::string &name) {
  return *addAttribute(node, name, ::onnx::AttributeProto::GRAPH).mutable_g();
}

/// A model without nodes at that opset.
inline ::onnx::ModelProto emptyModel(int64_t opset = 21) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  auto *import = model.add_opset_import();
  import->set_version(opset);
  model.mutable_graph()->set_name("g");
  return model;
}

constexpr int kF32 = ::onnx::TensorProto::FLOAT, kI64 = ::onnx::TensorProto::INT64,
              kBool = ::onnx::TensorProto::BOOL;

} // namespace dspark::onnx::test

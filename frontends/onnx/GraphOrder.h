// The order in which a graph's nodes can run. ONNX wants them sorted; files that are not are sorted here.
#pragma once
#include "runtime/base/Status.h"
#include <onnx-ml.pb.h>
#include <vector>

namespace dspark::onnx {

/// Indices of the nodes, each after the nodes whose results it (or a graph inside it) reads; the file's own
/// order where that is one. Errors name a node: a value with two producers, or nodes that wait for each
/// other.
StatusOr<std::vector<int>> nodeOrder(const google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes);

/// "name", or "Op_index" for a node without a name.
std::string nodeName(const ::onnx::NodeProto &node, int index);

} // namespace dspark::onnx

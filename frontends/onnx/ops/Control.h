// What the control-flow rows share.
#pragma once
#include "frontends/onnx/GraphImporter.h"
#include <functional>

namespace dspark::onnx {

/// What two possible values have in common; dims that differ are unknown, contents are forgotten.
TensorInfo join(const TensorInfo &a, const TensorInfo &b);
mlir::Type typeOf(Node &n, const TensorInfo &info);
/// Unknown dims are named, so that later uses can be compared.
void setInfo(Node &n, mlir::Value value, TensorInfo info);

/// What is known of a value that control flow passes on.
struct Facts {
  TensorInfo tensor;
  mlir::Type list; // of a sequence, optional or map; null for a tensor

  static Facts of(Node &n, mlir::Value value);
  mlir::Type type(Node &n) const { return list ? list : typeOf(n, tensor); }
  void set(Node &n, mlir::Value value) const {
    if (!list)
      setInfo(n, value, tensor);
  }
  std::string str() const { return list ? typeText(list) : tensor.str(); }
};
/// Nothing where the values are of different kinds or element types.
std::optional<Facts> join(const Facts &a, const Facts &b);

/// body(iteration, carried) for each iteration below `trips`: returns what the carried values become, and so
/// does the loop.
std::optional<Values>
buildCountedLoop(Node &n, mlir::Value trips, const Values &carried,
                 const std::function<std::optional<Values>(mlir::Value, const Values &)> &body);

void buildIf(Node &n);
void buildLoop(Node &n);
void buildScan(Node &n);
void buildScan8(Node &n);

} // namespace dspark::onnx

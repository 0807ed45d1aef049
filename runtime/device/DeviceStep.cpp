#include "runtime/device/DeviceStep.h"

namespace dspark {
namespace {

dspark_device_tensor tensorOf(const TensorView &view, bool isConstant) {
  dspark_device_tensor tensor{};
  if (!view.present())
    return tensor;
  tensor.dtype = dspark_dtype(view.type);
  tensor.rank = view.rank;
  tensor.dims = view.dims;
  tensor.bytes = uint64_t(dtypeBytes(view.type, view.elements()));
  tensor.is_constant = isConstant;
  return tensor;
}

} // namespace

DeviceStep::DeviceStep(std::string_view op, const KernelCall &call, const KernelWork &work,
                       uint64_t constants)
    : op(op), flops(work.flops), bytes(work.bytes) {
  for (size_t i = 0; i < call.in.size(); ++i)
    inputs.push_back(tensorOf(call.in[i], i < 64 && (constants >> i & 1) != 0));
  for (const TensorView &view : call.out)
    outputs.push_back(tensorOf(view, false));
  for (const Attr &attr : call.attrs.all())
    names.emplace_back(attr.name);
  for (size_t i = 0; i < names.size(); ++i) {
    const Attr &attr = call.attrs.all()[i];
    attributes.push_back({names[i].c_str(), attr.ints.data(), attr.ints.size(), attr.floats.data(),
                          attr.floats.size(), attr.str.data(), attr.str.size()});
  }
}

dspark_device_step DeviceStep::step() const {
  return {op.c_str(),    attributes.data(), attributes.size(), inputs.data(),
          inputs.size(), outputs.data(),    outputs.size(),    flops,
          bytes};
}

} // namespace dspark

// NumPy's .npy and .npz files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once
#include "runtime/base/Status.h"
#include "tools/dspark-rt/HostTensor.h"
#include <span>

namespace dspark {

/// Any version, byte order and Fortran order. `name` is for messages; the tensor's name is left empty.
StatusOr<HostTensor> parseNpy(std::span<const std::byte> bytes, const std::string &name);
StatusOr<HostTensor> readNpy(const std::string &path);
/// The tensor as a .npy file. Types that NumPy lacks are written as the next one that holds their values:
/// bf16, the 8- and 4-bit floats as f32, integers below a byte as i8 or u8.
std::vector<std::byte> npyBytes(const HostTensor &tensor);

/// All arrays of an archive, compressed or not.
StatusOr<std::vector<HostTensor>> readNpz(const std::string &path);
/// Uncompressed, by way of a temporary file that is renamed.
Status writeNpz(const std::string &path, std::span<const HostTensor> tensors);

/// `tensor` as an element of that type, where NumPy cannot say what was meant: f32 for narrower floats, 8-bit
/// integers for narrower ones, raw two-byte elements for bf16. Anything else is returned as it is.
HostTensor asDeclared(HostTensor tensor, DType declared);

} // namespace dspark

// An operator run on bytes at compile time, by its own kernel: folding constants needs no second copy of what
// operators mean. The baseline level is used, so that a plan does not depend on the machine it was made on.
#pragma once
#include "kernels/common/attrs.h"
#include "kernels/common/dtype.h"
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dspark {

/// A dense row-major tensor with its bytes.
struct HostBytes {
  DType type = DType::Undefined; // Undefined for an absent operand
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
};

/// Fills the bytes of `results`, whose types and dims are those that the operator's shape function gives for
/// `operands`. False with a sentence in `error` if no kernel takes these types.
bool evaluate(std::string_view op, Attrs attributes, std::vector<HostBytes> &operands,
              std::vector<HostBytes> &results, std::string &error);

} // namespace dspark

// A product in two forms, of which the number of its rows chooses when a plan is traced for given shapes:
//
//   y = matmul(x, w) -> y = if rows(x) <= most { matmul(x, w) } else { matmul(x, w) }
#pragma once
#include "dialects/DSpark/OpFactory.h"

namespace dspark {

struct SplitProduct {
  mlir::Operation *few = nullptr, *many = nullptr; // the copies; `few` null: nothing was done
};

/// Replaces `op`, whose operand 0 has rows of its last dim. Not where the number of rows is known, or is no
/// expression over the inputs' symbols.
SplitProduct splitByRows(mlir::Operation *op, int64_t mostRows, ir::OpFactory &factory);

} // namespace dspark

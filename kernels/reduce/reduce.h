// Reductions along axes.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"
#include <string_view>

namespace dspark::reduce_ops {

enum class ReduceKind : uint8_t { Sum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare };
/// Their names as attribute `kind` spells them, in order.
inline constexpr std::string_view kReduceKinds[] = {"sum", "mean", "max",     "min",         "prod",
                                                    "l1",  "l2",   "log_sum", "log_sum_exp", "sum_square"};

// reduce_shape.cpp
InferStatus inferReduce(InferContext &ctx);
InferStatus inferArgReduce(InferContext &ctx);
InferStatus inferCumulative(InferContext &ctx);

} // namespace dspark::reduce_ops

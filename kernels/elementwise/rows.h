// The kernel rows of each operator of the family; elementwise_rows.cpp lists them all.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

std::span<const Kernel> unaryRows();
std::span<const Kernel> binaryRows();
std::span<const Kernel> compareRows();
std::span<const Kernel> selectRows();
std::span<const Kernel> castRows();
std::span<const Kernel> clipRows();

} // namespace dspark

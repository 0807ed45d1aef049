#include "kernels/conv/winograd_loops.h"

namespace dspark {
const WinogradOps winogradOpsAvx512 = {winogradInput, winogradFilters, winogradOutput};
} // namespace dspark

#include "kernels/conv/winograd_loops.h"

namespace dspark {
const WinogradOps winogradOpsAvx2 = {winogradInput, winogradFilters, winogradOutput};
} // namespace dspark

#include "kernels/conv/winograd_loops.h"

namespace dspark {
const WinogradOps winogradOpsBaseline = {winogradInput, winogradFilters, winogradOutput};
} // namespace dspark

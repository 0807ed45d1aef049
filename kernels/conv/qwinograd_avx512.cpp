#include "kernels/conv/qwinograd_loops.h"

namespace dspark {
const QWinogradOps qwinogradOpsAvx512 = {winogradInput, winogradFilters, winogradProducts, winogradOutput};
} // namespace dspark

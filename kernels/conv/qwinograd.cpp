#include "kernels/conv/qwinograd_loops.h"

namespace dspark {
const QWinogradOps qwinogradOpsBaseline = {winogradInput, winogradFilters, winogradProducts, winogradOutput};
} // namespace dspark

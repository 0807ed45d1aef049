#include "kernels/rnn/cell_loops.h"

namespace dspark {
const CellOps cellOpsBaseline = {lstmStep, gruStep, gruResetStep, rnnStep};
} // namespace dspark

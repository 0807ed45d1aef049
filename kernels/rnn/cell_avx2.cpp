#include "kernels/rnn/cell_loops.h"

namespace dspark {
const CellOps cellOpsAvx2 = {lstmStep, gruStep, gruResetStep, rnnStep};
} // namespace dspark

#include "kernels/rnn/cell_loops.h"

namespace dspark {
const CellOps cellOpsAvx512 = {lstmStep, gruStep, gruResetStep, rnnStep};
} // namespace dspark

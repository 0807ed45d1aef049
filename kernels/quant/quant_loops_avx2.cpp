#define DSPARK_QUANT_LOOPS kQuantLoopsAvx2
#include "kernels/quant/quant_loops_impl.h"

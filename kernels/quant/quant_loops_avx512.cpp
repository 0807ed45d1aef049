#define DSPARK_QUANT_LOOPS kQuantLoopsAvx512
#include "kernels/quant/quant_loops_impl.h"

#define DSPARK_QUANT_LOOPS kQuantLoopsBaseline
#include "kernels/quant/quant_loops_impl.h"

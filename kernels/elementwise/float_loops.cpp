#define DSPARK_FLOAT_LOOPS kFloatLoopsBaseline
#include "kernels/elementwise/float_loops_impl.h"

#define DSPARK_FLOAT_LOOPS kFloatLoopsAvx512
#include "kernels/elementwise/float_loops_impl.h"

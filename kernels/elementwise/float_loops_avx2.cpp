#define DSPARK_FLOAT_LOOPS kFloatLoopsAvx2
#include "kernels/elementwise/float_loops_impl.h"

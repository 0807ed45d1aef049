#define DSPARK_FLOAT_REDUCE kFloatReduceAvx2
#include "kernels/reduce/float_reduce_impl.h"

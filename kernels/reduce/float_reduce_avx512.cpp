#define DSPARK_FLOAT_REDUCE kFloatReduceAvx512
#include "kernels/reduce/float_reduce_impl.h"

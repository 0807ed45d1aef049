#define DSPARK_FLOAT_REDUCE kFloatReduceBaseline
#include "kernels/reduce/float_reduce_impl.h"

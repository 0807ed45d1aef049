#define DSPARK_FLOAT_NORM kFloatNormAvx512
#include "kernels/norm/float_norm_impl.h"

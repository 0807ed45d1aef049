#define DSPARK_FLOAT_NORM kFloatNormAvx2
#include "kernels/norm/float_norm_impl.h"

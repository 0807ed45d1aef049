#define DSPARK_FLOAT_NORM kFloatNormBaseline
#include "kernels/norm/float_norm_impl.h"

#define DSPARK_LANE_FOLDS kLaneFoldsAvx512
#include "kernels/fused/lane_folds_impl.h"

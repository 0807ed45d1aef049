#define DSPARK_LANE_FOLDS kLaneFoldsAvx2
#include "kernels/fused/lane_folds_impl.h"

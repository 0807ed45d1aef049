#define DSPARK_LANE_FOLDS kLaneFoldsBaseline
#include "kernels/fused/lane_folds_impl.h"

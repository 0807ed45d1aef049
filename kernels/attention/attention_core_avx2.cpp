#define DSPARK_ATTENTION_CORE kAttentionCoreAvx2
#include "kernels/attention/attention_core_impl.h"

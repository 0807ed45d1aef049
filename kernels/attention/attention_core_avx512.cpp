#define DSPARK_ATTENTION_CORE kAttentionCoreAvx512
#include "kernels/attention/attention_core_impl.h"

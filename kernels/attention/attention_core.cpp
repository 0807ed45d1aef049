#define DSPARK_ATTENTION_CORE kAttentionCoreBaseline
#include "kernels/attention/attention_core_impl.h"

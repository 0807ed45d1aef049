#include "kernels/attention/attention_loops.h"

namespace dspark {

extern const AttentionCore<float> kAttentionCoreF32Avx512 = kCore<float>;

} // namespace dspark

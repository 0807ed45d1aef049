#include "kernels/attention/attention_loops.h"

namespace dspark {

extern const AttentionCore<float> kAttentionCoreF32 = kCore<float>;
extern const AttentionCore<double> kAttentionCoreF64 = kCore<double>;

} // namespace dspark

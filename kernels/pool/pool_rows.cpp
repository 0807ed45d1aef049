#include "kernels/common/families.h"
#include "kernels/pool/pool.h"

namespace dspark {
namespace {

constexpr Kernel kRows[] = {
    {"pool", "pool_f32_avx512", Isa::Avx512, acceptsPoolF32, preparePoolF32, runPoolF32<Isa::Avx512>},
    {"pool", "pool_f32_avx2", Isa::Avx2, acceptsPoolF32, preparePoolF32, runPoolF32<Isa::Avx2>},
    {"pool", "pool_f32", Isa::Baseline, acceptsPoolF32, preparePoolF32, runPoolF32<Isa::Baseline>},
    {"pool", "pool_bytes_avx512", Isa::Avx512, acceptsPoolBytes, preparePoolBytes, runPoolBytes<Isa::Avx512>},
    {"pool", "pool_bytes_avx2", Isa::Avx2, acceptsPoolBytes, preparePoolBytes, runPoolBytes<Isa::Avx2>},
    {"pool", "pool_bytes", Isa::Baseline, acceptsPoolBytes, preparePoolBytes, runPoolBytes<Isa::Baseline>},
    {"pool", "pool_reference", Isa::Baseline, nullptr, preparePoolReference, runPoolReference},
    {"qlinear_pool", "qlinear_pool_avx512", Isa::Avx512, nullptr, prepareQlinearPool,
     runPoolBytes<Isa::Avx512>},
    {"qlinear_pool", "qlinear_pool_avx2", Isa::Avx2, nullptr, prepareQlinearPool, runPoolBytes<Isa::Avx2>},
    {"qlinear_pool", "qlinear_pool", Isa::Baseline, nullptr, prepareQlinearPool, runPoolBytes<Isa::Baseline>},
    {"max_unpool", "max_unpool", Isa::Baseline, nullptr, prepareMaxUnpool, runMaxUnpool},
};

} // namespace

std::span<const Kernel> poolKernels() { return kRows; }

} // namespace dspark

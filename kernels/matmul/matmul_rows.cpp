#include "kernels/common/families.h"
#include "kernels/matmul/matmul_f32.h"
#include "kernels/matmul/matmul_integer.h"
#include "kernels/matmul/matmul_packed.h"
#include "kernels/matmul/matmul_reference.h"
#include "kernels/matmul/packed_experts.h"
#include "kernels/matmul/packed_rows.h"

namespace dspark {
namespace {

constexpr Kernel kRows[] = {
    {"matmul", "matmul_packed_amx", Isa::Amx, acceptsMatmulPacked, prepareMatmulPackedTiles,
     runMatmulPacked<Isa::Amx>},
    {"matmul", "matmul_packed_bf16_avx512", Isa::Avx512, acceptsMatmulDots, prepareMatmulDots,
     runMatmulPacked<Isa::Avx512>},
    {"matmul", "matmul_packed_avx512", Isa::Avx512, acceptsMatmulPacked, prepareMatmulPacked,
     runMatmulPacked<Isa::Avx512>},
    {"matmul", "matmul_packed_avx2", Isa::Avx2, acceptsMatmulPacked, prepareMatmulPacked,
     runMatmulPacked<Isa::Avx2>},
    {"matmul", "matmul_packed", Isa::Baseline, acceptsMatmulPacked, prepareMatmulPacked,
     runMatmulPacked<Isa::Baseline>},
    {"matmul", "matmul_f32_amx", Isa::Amx, acceptsMatmulTiles, prepareMatmulTiles, runMatmulF32<Isa::Amx>},
    {"matmul", "matmul_f32_avx512", Isa::Avx512, acceptsMatmulF32, prepareMatmulF32,
     runMatmulF32<Isa::Avx512>},
    {"matmul", "matmul_f32_avx2", Isa::Avx2, acceptsMatmulF32, prepareMatmulF32, runMatmulF32<Isa::Avx2>},
    {"matmul", "matmul_f32", Isa::Baseline, acceptsMatmulF32, prepareMatmulF32, runMatmulF32<Isa::Baseline>},
    {"matmul", "matmul_reference", Isa::Baseline, nullptr, prepareMatmulReference, runMatmulReference},
    {"multi_matmul", "multi_matmul_packed_amx", Isa::Amx, nullptr, prepareMatmulPackedTiles,
     runMatmulPacked<Isa::Amx>},
    {"multi_matmul", "multi_matmul_packed_bf16_avx512", Isa::Avx512, acceptsMatmulDots, prepareMatmulDots,
     runMatmulPacked<Isa::Avx512>},
    {"multi_matmul", "multi_matmul_packed_avx512", Isa::Avx512, nullptr, prepareMatmulPacked,
     runMatmulPacked<Isa::Avx512>},
    {"multi_matmul", "multi_matmul_packed_avx2", Isa::Avx2, nullptr, prepareMatmulPacked,
     runMatmulPacked<Isa::Avx2>},
    {"multi_matmul", "multi_matmul_packed", Isa::Baseline, nullptr, prepareMatmulPacked,
     runMatmulPacked<Isa::Baseline>},
    {"matmul_dequant", "matmul_dequant_avx512", Isa::Avx512, nullptr, prepareMatmulDequant,
     runMatmulF32<Isa::Avx512>},
    {"matmul_dequant", "matmul_dequant_avx2", Isa::Avx2, nullptr, prepareMatmulDequant,
     runMatmulF32<Isa::Avx2>},
    {"matmul_dequant", "matmul_dequant", Isa::Baseline, nullptr, prepareMatmulDequant,
     runMatmulF32<Isa::Baseline>},
    {"matmul_integer", "matmul_integer_amx", Isa::Amx, nullptr, prepareMatmulInteger,
     runMatmulInteger<Isa::Amx>},
    {"matmul_integer", "matmul_integer_avx512", Isa::Avx512, nullptr, prepareMatmulInteger,
     runMatmulInteger<Isa::Avx512>},
    {"matmul_integer", "matmul_integer_avx2", Isa::Avx2, nullptr, prepareMatmulInteger,
     runMatmulInteger<Isa::Avx2>},
    {"matmul_integer", "matmul_integer", Isa::Baseline, nullptr, prepareMatmulInteger,
     runMatmulInteger<Isa::Baseline>},
    {"qlinear_matmul", "qlinear_matmul_amx", Isa::Amx, nullptr, prepareQlinearMatmul,
     runMatmulInteger<Isa::Amx>},
    {"qlinear_matmul", "qlinear_matmul_avx512", Isa::Avx512, nullptr, prepareQlinearMatmul,
     runMatmulInteger<Isa::Avx512>},
    {"qlinear_matmul", "qlinear_matmul_avx2", Isa::Avx2, nullptr, prepareQlinearMatmul,
     runMatmulInteger<Isa::Avx2>},
    {"qlinear_matmul", "qlinear_matmul", Isa::Baseline, nullptr, prepareQlinearMatmul,
     runMatmulInteger<Isa::Baseline>},
    {"packed_rows", "packed_rows_avx512", Isa::Avx512, nullptr, preparePackedRows,
     runPackedRows<Isa::Avx512>},
    {"packed_rows", "packed_rows_avx2", Isa::Avx2, nullptr, preparePackedRows, runPackedRows<Isa::Avx2>},
    {"packed_rows", "packed_rows", Isa::Baseline, nullptr, preparePackedRows, runPackedRows<Isa::Baseline>},
    {"packed_experts", "packed_experts_avx512", Isa::Avx512, nullptr, preparePackedExperts,
     runPackedExperts<Isa::Avx512>},
    {"packed_experts", "packed_experts_avx2", Isa::Avx2, nullptr, preparePackedExperts,
     runPackedExperts<Isa::Avx2>},
    {"packed_experts", "packed_experts", Isa::Baseline, nullptr, preparePackedExperts,
     runPackedExperts<Isa::Baseline>},
    {"einsum", "einsum", Isa::Baseline, nullptr, prepareEinsum, runEinsum},
};

} // namespace

std::span<const Kernel> matmulKernels() { return kRows; }

} // namespace dspark

#include "kernels/common/families.h"
#include "kernels/conv/conv_f32.h"
#include "kernels/conv/conv_integer.h"
#include "kernels/conv/conv_reference.h"

namespace dspark {
namespace {

// Within a level the special rows come first.
constexpr Kernel kRows[] = {
    {"conv", "conv_f32_amx", Isa::Amx, acceptsConvTiles, prepareConvTiles, runConvF32<Isa::Amx>},
    {"conv", "conv_f32_depthwise_avx512", Isa::Avx512, acceptsDepthwise, prepareDepthwise,
     runDepthwise<Isa::Avx512>},
    {"conv", "conv_f32_winograd_avx512", Isa::Avx512, acceptsConvWinograd, prepareConvWinograd,
     runConvWinograd<Isa::Avx512>},
    {"conv", "conv_f32_winograd_line_avx512", Isa::Avx512, acceptsConvLine, prepareConvLine,
     runConvLine<Isa::Avx512>},
    {"conv", "conv_f32_avx512", Isa::Avx512, acceptsConvF32, prepareConvF32, runConvF32<Isa::Avx512>},
    {"conv", "conv_f32_depthwise_avx2", Isa::Avx2, acceptsDepthwise, prepareDepthwise,
     runDepthwise<Isa::Avx2>},
    {"conv", "conv_f32_winograd_avx2", Isa::Avx2, acceptsConvWinograd, prepareConvWinograd,
     runConvWinograd<Isa::Avx2>},
    {"conv", "conv_f32_winograd_line_avx2", Isa::Avx2, acceptsConvLine, prepareConvLine,
     runConvLine<Isa::Avx2>},
    {"conv", "conv_f32_avx2", Isa::Avx2, acceptsConvF32, prepareConvF32, runConvF32<Isa::Avx2>},
    {"conv", "conv_f32_depthwise", Isa::Baseline, acceptsDepthwise, prepareDepthwise,
     runDepthwise<Isa::Baseline>},
    {"conv", "conv_f32_winograd", Isa::Baseline, acceptsConvWinograd, prepareConvWinograd,
     runConvWinograd<Isa::Baseline>},
    {"conv", "conv_f32_winograd_line", Isa::Baseline, acceptsConvLine, prepareConvLine,
     runConvLine<Isa::Baseline>},
    {"conv", "conv_f32", Isa::Baseline, acceptsConvF32, prepareConvF32, runConvF32<Isa::Baseline>},
    {"conv", "conv_reference", Isa::Baseline, acceptsRowMajorWeights, prepareConvReference, runConvReference},
    {"expand_depthwise", "expand_depthwise_f32_avx512", Isa::Avx512, nullptr, prepareExpandDepthwise,
     runExpandDepthwise<Isa::Avx512>},
    {"expand_depthwise", "expand_depthwise_f32_avx2", Isa::Avx2, nullptr, prepareExpandDepthwise,
     runExpandDepthwise<Isa::Avx2>},
    {"expand_depthwise", "expand_depthwise_f32", Isa::Baseline, nullptr, prepareExpandDepthwise,
     runExpandDepthwise<Isa::Baseline>},
    {"conv_transpose", "conv_transpose_f32_blocks_avx512", Isa::Avx512, acceptsConvBlocks, prepareConvBlocks,
     runConvBlocks<Isa::Avx512>},
    {"conv_transpose", "conv_transpose_f32_avx512", Isa::Avx512, acceptsConvF32, prepareConvTransposeF32,
     runConvF32<Isa::Avx512>},
    {"conv_transpose", "conv_transpose_f32_blocks_avx2", Isa::Avx2, acceptsConvBlocks, prepareConvBlocks,
     runConvBlocks<Isa::Avx2>},
    {"conv_transpose", "conv_transpose_f32_avx2", Isa::Avx2, acceptsConvF32, prepareConvTransposeF32,
     runConvF32<Isa::Avx2>},
    {"conv_transpose", "conv_transpose_f32_blocks", Isa::Baseline, acceptsConvBlocks, prepareConvBlocks,
     runConvBlocks<Isa::Baseline>},
    {"conv_transpose", "conv_transpose_f32", Isa::Baseline, acceptsConvF32, prepareConvTransposeF32,
     runConvF32<Isa::Baseline>},
    {"conv_transpose", "conv_transpose_reference", Isa::Baseline, acceptsRowMajorWeights,
     prepareConvTransposeReference, runConvReference},
    {"conv_integer", "conv_integer_amx", Isa::Amx, acceptsConvInteger, prepareConvInteger,
     runConvInteger<Isa::Amx>},
    {"conv_integer", "conv_integer_avx512", Isa::Avx512, acceptsConvInteger, prepareConvInteger,
     runConvInteger<Isa::Avx512>},
    {"conv_integer", "conv_integer_avx2", Isa::Avx2, acceptsConvInteger, prepareConvInteger,
     runConvInteger<Isa::Avx2>},
    {"conv_integer", "conv_integer", Isa::Baseline, acceptsConvInteger, prepareConvInteger,
     runConvInteger<Isa::Baseline>},
    {"qlinear_conv", "qlinear_conv_amx", Isa::Amx, acceptsConvInteger, prepareQlinearConv,
     runConvInteger<Isa::Amx>},
    {"qlinear_conv", "qlinear_conv_depthwise_avx512", Isa::Avx512, acceptsQlinearDepthwise,
     prepareQlinearDepthwise, runQlinearDepthwise<Isa::Avx512>},
    {"qlinear_conv", "qlinear_conv_depthwise_avx2", Isa::Avx2, acceptsQlinearDepthwise,
     prepareQlinearDepthwise, runQlinearDepthwise<Isa::Avx2>},
    {"qlinear_conv", "qlinear_conv_depthwise", Isa::Baseline, acceptsQlinearDepthwise,
     prepareQlinearDepthwise, runQlinearDepthwise<Isa::Baseline>},
    {"qlinear_conv", "qlinear_conv_winograd_avx512", Isa::Avx512, acceptsQlinearWinograd<Isa::Avx512>,
     prepareQlinearWinograd, runQlinearWinograd<Isa::Avx512>},
    {"qlinear_conv", "qlinear_conv_avx512", Isa::Avx512, acceptsConvInteger, prepareQlinearConv,
     runConvInteger<Isa::Avx512>},
    {"qlinear_conv", "qlinear_conv_winograd_avx2", Isa::Avx2, acceptsQlinearWinograd<Isa::Avx2>,
     prepareQlinearWinograd, runQlinearWinograd<Isa::Avx2>},
    {"qlinear_conv", "qlinear_conv_avx2", Isa::Avx2, acceptsConvInteger, prepareQlinearConv,
     runConvInteger<Isa::Avx2>},
    {"qlinear_conv", "qlinear_conv_winograd", Isa::Baseline, acceptsQlinearWinograd<Isa::Baseline>,
     prepareQlinearWinograd, runQlinearWinograd<Isa::Baseline>},
    {"qlinear_conv", "qlinear_conv", Isa::Baseline, acceptsConvInteger, prepareQlinearConv,
     runConvInteger<Isa::Baseline>},
    {"deform_conv", "deform_conv", Isa::Baseline, nullptr, prepareDeformConv, runDeformConv},
};

} // namespace

std::span<const Kernel> convKernels() { return kRows; }

} // namespace dspark

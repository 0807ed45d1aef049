#include "kernels/common/families.h"
#include "kernels/rnn/rnn_f32.h"
#include "kernels/rnn/rnn_integer.h"

namespace dspark {
namespace {

constexpr Kernel kRows[] = {
    {"lstm", "lstm_f32_avx512", Isa::Avx512, acceptsRnnF32, prepareRnnF32<4>, runRnnF32<Isa::Avx512>},
    {"lstm", "lstm_f32_avx2", Isa::Avx2, acceptsRnnF32, prepareRnnF32<4>, runRnnF32<Isa::Avx2>},
    {"lstm", "lstm_f32", Isa::Baseline, acceptsRnnF32, prepareRnnF32<4>, runRnnF32<Isa::Baseline>},
    {"lstm", "lstm_reference", Isa::Baseline, acceptsRnnReference, prepareRnnReference<4>, runRnnReference},
    {"dynamic_quantize_lstm", "dynamic_quantize_lstm_avx512", Isa::Avx512, nullptr,
     prepareDynamicQuantizeLstm, runDynamicQuantizeLstm<Isa::Avx512>},
    {"dynamic_quantize_lstm", "dynamic_quantize_lstm_avx2", Isa::Avx2, nullptr, prepareDynamicQuantizeLstm,
     runDynamicQuantizeLstm<Isa::Avx2>},
    {"dynamic_quantize_lstm", "dynamic_quantize_lstm", Isa::Baseline, nullptr, prepareDynamicQuantizeLstm,
     runDynamicQuantizeLstm<Isa::Baseline>},
    {"gru", "gru_f32_avx512", Isa::Avx512, acceptsRnnF32, prepareRnnF32<3>, runRnnF32<Isa::Avx512>},
    {"gru", "gru_f32_avx2", Isa::Avx2, acceptsRnnF32, prepareRnnF32<3>, runRnnF32<Isa::Avx2>},
    {"gru", "gru_f32", Isa::Baseline, acceptsRnnF32, prepareRnnF32<3>, runRnnF32<Isa::Baseline>},
    {"gru", "gru_reference", Isa::Baseline, acceptsRnnReference, prepareRnnReference<3>, runRnnReference},
    {"rnn", "rnn_f32_avx512", Isa::Avx512, acceptsRnnF32, prepareRnnF32<1>, runRnnF32<Isa::Avx512>},
    {"rnn", "rnn_f32_avx2", Isa::Avx2, acceptsRnnF32, prepareRnnF32<1>, runRnnF32<Isa::Avx2>},
    {"rnn", "rnn_f32", Isa::Baseline, acceptsRnnF32, prepareRnnF32<1>, runRnnF32<Isa::Baseline>},
    {"rnn", "rnn_reference", Isa::Baseline, acceptsRnnReference, prepareRnnReference<1>, runRnnReference},
};

} // namespace

std::span<const Kernel> rnnKernels() { return kRows; }

} // namespace dspark

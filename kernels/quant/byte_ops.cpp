#include "kernels/quant/byte_ops.h"
#include "kernels/common/broadcast.h"
#include "kernels/matmul/integer_result.h"
#include "kernels/quant/quant_loops.h"

namespace dspark {
namespace {

struct BinaryState {
  BroadcastLoops<2> loops;
  QuantBinary kind;
};

// The parameters of one operand.
struct Parameters {
  uint8_t flip;
  float scale, zero;
  Parameters(DType type, const KernelCall &call, size_t scaleAtOperand)
      : flip(type == DType::I8 ? 0x80 : 0), scale(scaleAt(call.in[scaleAtOperand], 0)),
        zero(float(zeroAt(call.input(scaleAtOperand + 1), 0) + flip)) {}
};

} // namespace

// A look-up is two loads and a store a byte, which the widest shuffles of AVX2 over 16 tables do not beat.
void prepareLookup(const KernelCall &call, KernelWork &work) {
  prepareElementwise(call, work, 0);
  work.bytes = 2.0 * double(call.out[0].elements());
}
void runLookup(const KernelCall &call, const KernelWork &, const KernelPart &part) {
  const uint8_t *table = call.in[1].as<uint8_t>();
  unsigned flip = call.in[0].type == DType::I8 ? 0x80 : 0;
  forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t begin, int64_t n) {
    const uint8_t *x = call.in[0].as<uint8_t>() + begin;
    uint8_t *y = call.out[0].as<uint8_t>() + begin;
#pragma clang loop unroll_count(4)
    for (int64_t i = 0; i < n; ++i)
      y[i] = table[x[i] ^ flip];
  });
}

void prepareQlinearBinary(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<BinaryState>();
  std::string_view kind = call.attrs.s("kind", "add");
  state.kind = kind == "mul" ? QuantBinary::Mul : kind == "sub" ? QuantBinary::Sub : QuantBinary::Add;
  const TensorView operands[] = {call.in[0], call.in[3]};
  prepareElementwise(call, work, 6);
  work.bytes = double(call.in[0].elements() + call.in[3].elements() + call.out[0].elements());
  collapseLoops(call.out[0], operands, state.loops);
}

template <Isa isa>
void runQlinearBinary(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<BinaryState>();
  Parameters a(call.in[0].type, call, 1), b(call.in[3].type, call, 4);
  float yScale = scaleAt(call.in[6], 0);
  ByteRange range = ByteRange::of(call.out[0].type == DType::I8, zeroAt(call.input(7), 0));
  const TensorView operands[] = {call.in[0], call.in[3]};
  forBlocks(state.loops, operands, part, kElementwiseTile, [&](const BlockOperand *x, int64_t i, int64_t n) {
    quantLoops(isa).binary({state.kind, static_cast<const uint8_t *>(x[0].data),
                            static_cast<const uint8_t *>(x[1].data), x[0].isScalar, x[1].isScalar, a.flip,
                            b.flip, a.scale, b.scale, yScale, a.zero, b.zero, range,
                            call.out[0].as<uint8_t>() + i, n});
  });
}
template void runQlinearBinary<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runQlinearBinary<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runQlinearBinary<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark

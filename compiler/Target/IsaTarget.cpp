#include "compiler/Target/IsaTarget.h"

namespace dspark::codegen {
namespace {
struct Level {
  const char *features;
  int bits;
  bool masked;
};
constexpr Level kLevels[kVectorIsaCount] = {
    {"+sse2", 128, false},
    {"+avx2,+fma,+f16c,+bmi2", 256, true},
    {"+avx2,+fma,+f16c,+bmi2,+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vnni", 512, true},
};
} // namespace

llvm::StringRef targetFeatures(Isa level) { return kLevels[int(level)].features; }
int vectorBits(Isa level) { return kLevels[int(level)].bits; }
int64_t vectorWidth(Isa level) { return vectorBits(level) / 32; }
int64_t tileWidth(Isa level) { return 2 * vectorWidth(level); }
bool hasMaskedVectors(Isa level) { return kLevels[int(level)].masked; }

} // namespace dspark::codegen

#include "compiler/Target/FusedCodegen.h"
#include "compiler/Target/FusedRules.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <bit>

namespace dspark {
namespace {

// Feeds fixed-width little-endian numbers, each list behind its length, so that no two specs make the same
// bytes.
class Hasher {
public:
  Hasher &operator<<(uint32_t value) {
    const uint8_t bytes[] = {uint8_t(value), uint8_t(value >> 8), uint8_t(value >> 16), uint8_t(value >> 24)};
    hash.update(bytes);
    return *this;
  }
  Hasher &operator<<(int value) { return *this << uint32_t(value); }
  Hasher &operator<<(float value) { return *this << std::bit_cast<uint32_t>(value); }
  std::string hex(size_t bytes) { return llvm::toHex(llvm::ArrayRef(hash.final()).take_front(bytes), true); }

private:
  llvm::SHA256 hash;
};

} // namespace

std::string FusedKernelSpec::symbol() const {
  Hasher hash;
  hash << program.inputs << uint32_t(program.code.size());
  // Constants that the code reads from `params` do not name it.
  llvm::SmallVector<int> parameters = codegen::parameterConstants(program);
  const int *parameter = parameters.begin();
  for (int k = 0; k < int(program.code.size()); ++k) {
    const FusedInstruction &i = program.code[k];
    hash << int(i.category) << int(i.kind) << i.a << i.b << i.c;
    if (parameter != parameters.end() && *parameter == k)
      ++parameter;
    else
      hash << i.alpha << i.beta;
  }
  hash << uint32_t(program.results.size());
  for (int result : program.results)
    hash << result;
  hash << int(program.rowAxes > 0) << uint32_t(program.kept.size());
  for (int kept : program.kept)
    hash << kept;
  hash << uint32_t(inner.size());
  for (int stride : inner)
    hash << stride;
  for (DType type : types)
    hash << int(type);
  return "dspark_fused_" + hash.hex(16);
}

} // namespace dspark

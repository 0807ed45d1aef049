// GGUF's block types of 1 to 3 bits, whose terms come in runs that index a lattice; each function reads one
// block of 256 terms. What codes mean: kernels/matmul/packed_format.h, kLevels.
#pragma once
#include "runtime/format/PackedBits.h"

namespace dspark {

void readIq1S(const uint8_t *block, BlockValues &values);
void readIq1M(const uint8_t *block, BlockValues &values);
void readIq2Xxs(const uint8_t *block, BlockValues &values);
void readIq2Xs(const uint8_t *block, BlockValues &values);
void readIq2S(const uint8_t *block, BlockValues &values);
void readIq3Xxs(const uint8_t *block, BlockValues &values);
void readIq3S(const uint8_t *block, BlockValues &values);

} // namespace dspark

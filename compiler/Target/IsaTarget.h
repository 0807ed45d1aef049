// What an ISA level means to LLVM. Features are named one by one, never taken from the build machine.
#pragma once
#include "kernels/common/isa.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace dspark::codegen {

/// A feature string for createTargetMachine().
llvm::StringRef targetFeatures(Isa level);
/// The widest vector LLVM should use, in bits.
int vectorBits(Isa level);
/// f32 elements of a vector.
int64_t vectorWidth(Isa level);
/// f32 elements of a full tile: two vectors, so that the latency of one polynomial step hides behind the
/// other.
int64_t tileWidth(Isa level);
/// Whether loads and stores can be masked per lane.
bool hasMaskedVectors(Isa level);

} // namespace dspark::codegen

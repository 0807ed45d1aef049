// Links relocatable objects to one shared object, in process.
#pragma once
#include "runtime/base/Status.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstddef>
#include <vector>

namespace dspark::codegen {

using ObjectBytes = llvm::SmallVector<char, 0>;

/// An undefined symbol is an error: the result must need no library. Thread-safe (links run one at a time,
/// because lld keeps global state; one takes under a millisecond).
StatusOr<std::vector<std::byte>> linkSharedObject(llvm::ArrayRef<ObjectBytes> objects);

} // namespace dspark::codegen

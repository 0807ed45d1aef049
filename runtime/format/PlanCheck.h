// The rules every PLAN section must keep (docs/plan-format.md), checked once when a plan is opened, so that
// nothing behind the reader has to doubt an index.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/format/plan_generated.h"
#include <cstdint>
#include <functional>
#include <span>

namespace dspark {

/// Whether entries of 8 bytes lie where they may be read. FlatBuffers' verifier asks that of a vector's length
/// and of numbers of a table alone.
template <typename T> bool isAligned(const flatbuffers::Vector<T> *vector) {
  return !vector || vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(T) == 0;
}

/// Length of the byte range that blobs of a file lie in; file -1 is the WEIGHTS section.
struct BlobSpace {
  uint64_t bytes = 0;
};

/// Ok, or CorruptFile with a sentence that names the step or value, what was found and what was expected.
/// `files` has one entry per Plan.files.
Status checkPlan(const fb::Plan &plan, BlobSpace weights, std::span<const BlobSpace> files);

} // namespace dspark

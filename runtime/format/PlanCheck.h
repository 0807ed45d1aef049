// The rules every PLAN section must keep (docs/plan-format.md), checked once when a plan is opened, so that
// nothing behind the reader has to doubt an index.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/format/plan_generated.h"
#include <cstdint>
#include <functional>
#include <span>

namespace dspark {

/// Length and address modulo 64 of the byte range that blobs of a file lie in; file -1 is the WEIGHTS
/// section.
struct BlobSpace {
  uint64_t bytes = 0;
};

/// Ok, or CorruptFile with a sentence that names the step or value, what was found and what was expected.
/// `files` has one entry per Plan.files.
Status checkPlan(const fb::Plan &plan, BlobSpace weights, std::span<const BlobSpace> files);

} // namespace dspark

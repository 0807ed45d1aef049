// Constants of which long stretches repeat (fills, masks, packed fills with their zero columns), stored as
// runs of equal lines. A line is 64 bytes: a row of a packed panel of f32. A run is a u64 count and its line;
// the last line is filled up with zeros.
#pragma once
#include "runtime/base/Status.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dspark {

/// The runs of `bytes`; nullopt where they would not be many times smaller, or where `bytes` are so few that
/// mapping them costs less than writing them out.
std::optional<std::vector<std::byte>> lineRuns(std::span<const std::byte> bytes);

/// CorruptFile unless `runs` are whole runs that make exactly `bytes` bytes.
Status checkLineRuns(std::span<const std::byte> runs, uint64_t bytes);

/// Writes out runs that checkLineRuns has seen.
void writeLineRuns(std::span<const std::byte> runs, std::span<std::byte> bytes);

} // namespace dspark

// A plan file in memory around any PLAN section, with hashes that fit, so that a fuzzer gets past them.
#pragma once
#include "runtime/format/Hash.h"
#include "runtime/format/PlanFile.h"
#include <cstring>
#include <span>
#include <vector>

namespace dspark::fuzz {

inline constexpr size_t kWeightBytes = 4096, kPlanOffset = 192, kMaxPlanBytes = 1 << 20;
inline constexpr size_t kFileBytes = size_t(kWeightsAlignment) + kWeightBytes;

struct File {
  alignas(4096) std::byte bytes[kFileBytes] = {};
  size_t lastSize = 0;

  std::span<const std::byte> withPlan(std::span<const uint8_t> plan) {
    if (plan.size() < lastSize) // the rest has never been written
      std::memset(bytes + kPlanOffset + plan.size(), 0, lastSize - plan.size());
    lastSize = plan.size();
    std::memcpy(bytes + kPlanOffset, plan.data(), plan.size());
    auto hashed = [&](SectionKind kind, size_t offset, size_t length) {
      return SectionEntry{uint32_t(kind), 0, offset, length, hashBytes({bytes + offset, length}), 0, 0};
    };
    SectionEntry table[] = {hashed(SectionKind::Plan, kPlanOffset, plan.size()),
                            hashed(SectionKind::Weights, kWeightsAlignment, kWeightBytes)};
    PlanHeader header = {{}, kPlanMajor, kPlanMinor, kPlanMinor, kPlanByteOrder, 2, 0, kFileBytes, 0, {}};
    std::memcpy(header.magic, kPlanMagic, sizeof kPlanMagic);
    header.tableHash = hashPlanTable(header, table);
    std::memcpy(bytes, &header, sizeof header);
    std::memcpy(bytes + sizeof header, table, sizeof table);
    return bytes;
  }
};

} // namespace dspark::fuzz

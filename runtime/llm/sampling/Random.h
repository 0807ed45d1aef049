// Random numbers without a state: each is a function of the request's seed, the sequence, the position and
// what it is for. So a draw depends neither on what else is in the batch nor on preemption, and can be
// repeated. Philox4x32-10 of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC
// 2011).
#pragma once
#include <array>
#include <cstdint>

namespace dspark::llm {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// What a number decides; different purposes at one position are independent.
enum class Purpose : uint32_t {
  Token = 0,  // the token at this position, drawn from the target's distribution
  Accept = 1, // whether the draft at this position stands
  Draft = 2,  // a drafter's own draw
};

struct RandomKey {
  uint64_t seed = 0;
  uint32_t sequence = 0; // which of the request's n choices
};

/// In [0, 1), a multiple of 2^-53. `position` is the token's place in its sequence, prompt included.
double uniform(RandomKey key, uint64_t position, Purpose purpose);

} // namespace dspark::llm

// XXH3-64, the hash of everything in a plan file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace dspark {

uint64_t hashBytes(std::span<const std::byte> bytes);

/// The same hash over bytes that arrive in pieces.
class StreamHash {
public:
  StreamHash();
  ~StreamHash();
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace dspark

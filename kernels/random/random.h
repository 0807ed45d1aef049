// The random family. Numbers come from Philox 4x32-10 (J. Salmon et al., SC'11): element i is a function of
// the seed and i alone, so that results depend neither on threads nor on tiles, and a run repeats exactly. A
// missing seed is 0: the frontend gives each node without one a seed of its own.
#pragma once
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"

namespace dspark {

struct Philox {
  uint64_t key;

  explicit Philox(const Attrs &attrs) {
    // An integer in dropout, a float elsewhere; the bits of the double tell all of them apart.
    key = std::bit_cast<uint64_t>(attrs.f("seed", double(attrs.i("seed", 0))));
  }
  /// Four words for counter i.
  void block(uint64_t i, uint32_t (&words)[4]) const;
  /// The first 53 bits of block i in [0, 1).
  double uniform(uint64_t i) const;
  /// A standard normal value from block i (Box and Muller).
  double normal(uint64_t i) const;
};

#define DSPARK_RANDOM_KERNEL(Name)                                                                           \
  void prepare##Name(const KernelCall &call, KernelWork &work);                                              \
  void run##Name(const KernelCall &call, const KernelWork &work, const KernelPart &part);
DSPARK_RANDOM_KERNEL(RandomUniform)
DSPARK_RANDOM_KERNEL(RandomNormal)
DSPARK_RANDOM_KERNEL(Bernoulli)
DSPARK_RANDOM_KERNEL(Multinomial)
DSPARK_RANDOM_KERNEL(Dropout)
#undef DSPARK_RANDOM_KERNEL

} // namespace dspark

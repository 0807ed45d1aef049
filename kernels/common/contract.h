// Contracts: what a kernel's loops assume of their arguments. They are stated in code so that builds with our
// assertions (presets dev, asan, tsan and fuzz) check them; elsewhere they cost nothing. One that is broken
// is a mistake of the caller in this repository: what users bring is checked long before.
//
// Plain macros and no inline functions but internal ones: the files of the ISA levels include it.
#pragma once
#include <cassert>
#include <cstdint>

#define DSPARK_EXPECTS(condition) assert((condition) && "a contract of the kernel")

namespace dspark {
namespace {

/// Whether p may be read `count` times: it is no null pointer, or nothing is read.
inline bool isReadable(const void *p, int64_t count) { return p || count <= 0; }

} // namespace
} // namespace dspark

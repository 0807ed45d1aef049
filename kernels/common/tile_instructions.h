// The tile instructions under the names that loops over tiles use. Tiles are numbered, since the instructions
// name them; strides count bytes. Included by *_amx.cpp only.
#pragma once
#include <cstdint>
#include <immintrin.h>

namespace dspark {
namespace {

template <int T> inline void zeroTile() { _tile_zero(T); }
/// Rows of 64 bytes (or what the tile's shape says), `stride` apart.
template <int T> inline void loadTile(const void *from, int64_t stride) { _tile_loadd(T, from, stride); }
template <int T> inline void storeTile(void *to, int64_t stride) { _tile_stored(T, to, stride); }

// Sum += A * B, where A has rows of terms and B has rows of [16 columns][terms of 4 bytes].
/// Four unsigned bytes of A by four signed ones of B at a time, added in 32 bits that wrap around.
template <int Sum, int A, int B> inline void dotUnsignedSigned() { _tile_dpbusd(Sum, A, B); }
template <int Sum, int A, int B> inline void dotSignedUnsigned() { _tile_dpbsud(Sum, A, B); }
/// Pairs of bf16: even and odd terms are added up in f32 separately, then together, then to the sum. Numbers
/// below 2^-126 count as zero.
template <int Sum, int A, int B> inline void dotBf16() { _tile_dpbf16ps(Sum, A, B); }

} // namespace
} // namespace dspark

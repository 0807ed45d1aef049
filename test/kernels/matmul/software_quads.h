// What kernels/matmul/igemm_quads.h asks for, in software.
#pragma once
#include <cstdint>

namespace dspark {
namespace {
struct QuadSums {
  int32_t lane[16];
};
inline QuadSums loadQuads(const void *p) {
  QuadSums v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
inline void storeQuads(void *p, QuadSums v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline QuadSums splatQuad(int32_t terms) {
  QuadSums v;
  for (int32_t &lane : v.lane)
    lane = terms;
  return v;
}
// vpdpbusd: four products of an unsigned and a signed byte are added to 32 bits.
inline QuadSums dotQuads(QuadSums sum, QuadSums a, QuadSums b) {
  for (int i = 0; i < 16; ++i)
    for (int byte = 0; byte < 4; ++byte)
      sum.lane[i] += int32_t(uint8_t(a.lane[i] >> 8 * byte)) * int32_t(int8_t(b.lane[i] >> 8 * byte));
  return sum;
}
inline QuadSums takeOff(QuadSums sum, QuadSums columns, int32_t zero) {
  for (int i = 0; i < 16; ++i)
    sum.lane[i] -= columns.lane[i] * zero;
  return sum;
}
} // namespace
} // namespace dspark

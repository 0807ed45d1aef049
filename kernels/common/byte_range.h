// Which whole numbers a quantised byte can hold. Plain data.
#pragma once
#include <cstdint>

namespace dspark {

struct ByteRange {
  int16_t low, high; // bounds less the zero point; NaN becomes low
  int16_t zero;
  bool isSigned;

  static ByteRange of(bool isSigned, int16_t zero) {
    int16_t low = int16_t((isSigned ? -128 : 0) - zero);
    return {low, int16_t(low + 255), zero, isSigned};
  }
};

} // namespace dspark

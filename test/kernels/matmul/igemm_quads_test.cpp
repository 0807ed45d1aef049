// The loops that AVX-512 compiles with VNNI, here with the instruction in software, so that machines without
// it test them too.
#include "test/kernels/matmul/software_quads.h"

#include "kernels/matmul/igemm_quads.h"
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace dspark {
namespace {

TEST(IgemmQuads, SumsAreExactAtEveryTileShape) {
  std::mt19937 rng(1);
  for (bool aSigned : {false, true})
    for (bool bSigned : {false, true})
      for (int64_t k : {1, 4, 7, 64, 130})
        for (int64_t rows : {1, 5, 12, 31})
          for (int64_t columns : {3, 16, 29}) {
            // Extreme bytes in half of the places: 255 x -128 and -128 x -128 must not saturate.
            auto draw = [&] {
              const uint8_t extremes[] = {0, 255, 127, 128};
              uint32_t bits = rng();
              return bits % 2 ? extremes[bits >> 8 & 3] : uint8_t(bits >> 16);
            };
            std::vector<uint8_t> a(size_t(rows * k)), b(size_t(k * columns));
            std::generate(a.begin(), a.end(), draw);
            std::generate(b.begin(), b.end(), draw);
            auto value = [](uint8_t byte, bool isSigned) { return isSigned ? int(int8_t(byte)) : int(byte); };
            int64_t step = (k + 3) / 4 * 4, panels = (columns + 15) / 16;
            std::vector<std::byte> packed(size_t(panels * packedPanelBytes(k))), made(size_t(rows * step));
            for (int64_t p = 0; p < panels; ++p)
              packAny(b.data() + p * 16, bSigned, k, std::min<int64_t>(16, columns - p * 16), columns, 1,
                      packed.data() + p * packedPanelBytes(k));
            std::vector<int16_t> zeros;
            int16_t zero = aSigned ? -128 : 255;
            for (int64_t r = 0; r < rows; ++r) {
              quadRow(a.data() + r * k, aSigned, k, 1, zero, made.data() + r * step);
              zeros.push_back(aSigned ? int16_t(zero + 128) : zero);
            }
            std::vector<int32_t> c(size_t(panels * rows * 16));
            quadTile({made.data(), zeros.data(), rows, k, packed.data(), panels, nullptr, c.data(), nullptr});
            for (int64_t r = 0; r < rows; ++r) {
              int32_t rowSum = 0;
              for (int64_t j = 0; j < columns; ++j) {
                int32_t want = 0;
                rowSum = 0;
                for (int64_t i = 0; i < k; ++i) {
                  int32_t left = value(a[size_t(r * k + i)], aSigned) - zero;
                  want += left * (value(b[size_t(i * columns + j)], bSigned) - (bSigned ? 0 : 128));
                  rowSum += left;
                }
                ASSERT_EQ(c[size_t((j / 16 * rows + r) * 16 + j % 16)], want) << r << " " << j;
              }
              ASSERT_EQ(quadRowSum(made.data() + r * step, k, zeros[size_t(r)]), rowSum);
            }
            std::byte filled[3];
            quadFill(aSigned, 3, zero, filled);
            ASSERT_EQ(quadRowSum(filled, 3, zeros[0]), 0);
          }
}

} // namespace
} // namespace dspark

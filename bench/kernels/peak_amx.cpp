#include "bench/kernels/peak.h"
#include "kernels/common/tile_instructions.h"
#include "kernels/common/tiles.h"

namespace dspark::bench {
namespace {

// Operations per second of products of whole tiles, `terms` for each sum: four sums in turn, operands in
// tiles.
template <typename Products> double tilePeak(int terms, Products products) {
  constexpr int kRounds = 1000;
  TileScope tiles(Isa::Amx);
  double best = 1e9;
  for (int attempt = 0; attempt < 4; ++attempt) {
    double begin = threadSeconds();
    for (int i = 0; i < kRounds; ++i)
      products();
    double time = threadSeconds() - begin;
    best = time < best ? time : best;
  }
  return 2.0 * 4 * kRounds * kTileRows * (kTileBytes / 4) * terms / best;
}

double bytePeak() {
  return tilePeak(64, [] {
    dotUnsignedSigned<0, 4, 6>();
    dotUnsignedSigned<1, 4, 7>();
    dotUnsignedSigned<2, 5, 6>();
    dotUnsignedSigned<3, 5, 7>();
  });
}
double bf16Peak() {
  return tilePeak(32, [] {
    dotBf16<0, 4, 6>();
    dotBf16<1, 4, 7>();
    dotBf16<2, 5, 6>();
    dotBf16<3, 5, 7>();
  });
}

} // namespace

extern double (*const byte_peak_amx)();
double (*const byte_peak_amx)() = bytePeak;
extern double (*const bf16_peak_amx)();
double (*const bf16_peak_amx)() = bf16Peak;
} // namespace dspark::bench

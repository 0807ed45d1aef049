// string_concat and equality of strings, both with numpy broadcasting.
#include "kernels/common/broadcast.h"
#include "kernels/text/text.h"

namespace dspark::text {
namespace {

struct BroadcastState {
  BroadcastLoops<2> loops;
};

// Calls f(i, a, b) for the elements of the part's tiles.
template <typename F>
void forPairs(const KernelCall &call, const KernelWork &work, const KernelPart &part, F f) {
  forBlocks(work.get<BroadcastState>().loops, call.in, part, INT64_MAX,
            [&](const BlockOperand *x, int64_t i, int64_t n) {
              auto *a = static_cast<const StringElement *>(x[0].data);
              auto *b = static_cast<const StringElement *>(x[1].data);
              for (int64_t k = 0; k < n; ++k)
                f(i + k, a[x[0].isScalar ? 0 : k], b[x[1].isScalar ? 0 : k]);
            });
}

} // namespace

void prepareEqual(const KernelCall &call, KernelWork &work) {
  collapseLoops(call.out[0], call.in, work.make<BroadcastState>().loops);
  prepareElementwise(call, work, 1);
}

void runEqual(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  auto *y = call.out[0].as<uint8_t>();
  forPairs(call, work, part,
           [&](int64_t i, std::string_view a, std::string_view b) { y[i] = uint8_t(a == b); });
}

void prepareConcat(const KernelCall &call, KernelWork &work) {
  collapseLoops(call.out[0], call.in, work.make<BroadcastState>().loops);
}

void runConcat(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  auto *y = call.out[0].as<StringElement>();
  KernelPart whole = part; // forBlocks counts in tiles of elements
  whole.begin = 0;
  whole.end = uint32_t((call.out[0].elements() + kElementwiseTile - 1) / kElementwiseTile);
  forPairs(call, work, whole, [&](int64_t i, std::string_view a, std::string_view b) {
    y[i] = join(StringRun::current(), a, b);
  });
}

} // namespace dspark::text

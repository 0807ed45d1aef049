// expand_depthwise computes what its two convolutions compute, to the bit: both parts add up the same
// products in the same order, whatever the bands and chunks are.
#include "kernels/common/bf16_speed.h"
#include "kernels/conv/conv_f32.h"
#include "runtime/format/PackedLayout.h"
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using namespace test;

struct Case {
  int64_t batch, height, width, inputs, channels;
  int64_t kernel = 3, stride = 1, dilation = 1;
  std::vector<int64_t> pads = {1, 1, 1, 1};
  bool hasBias = true;
};

Tensor packed(const Tensor &w, const char *layout, const ConvWeight &shape) {
  Tensor p = w;
  p.bytes.assign(*packedBytes(layout, shape), std::byte(0xff));
  EXPECT_TRUE(packWeight(layout, shape, w.bytes, p.bytes).isOk());
  return p;
}

const Kernel *rowNamed(const char *op, const std::string &name) {
  for (const Kernel *row : rowsOf(op))
    if (row->name == name)
      return row;
  ADD_FAILURE() << "no row " << name;
  return nullptr;
}

// Level Amx has none of its own.
const Kernel &depthwiseRowOf(Isa isa) {
  isa = std::min(isa, std::min(machineIsa(), Isa::Avx512));
  for (const Kernel &row : allKernels())
    if (row.accepts == acceptsDepthwise && row.isa == isa)
      return row;
  std::abort();
}

class ExpandDepthwise : public testing::TestWithParam<Case> {};

TEST_P(ExpandDepthwise, IsTheTwoConvolutions) {
  const Case &c = GetParam();
  std::mt19937 rng(7);
  Tensor x = uniform({c.batch, c.height, c.width, c.inputs}, rng);
  Tensor w1 = uniform({c.channels, c.inputs, 1, 1}, rng);
  Tensor w2 = uniform({c.channels, 1, c.kernel, c.kernel}, rng);
  Tensor b1 = c.hasBias ? uniform({c.channels}, rng) : Tensor{};
  Tensor b2 = c.hasBias ? uniform({c.channels}, rng) : Tensor{};
  ConvWeight expansion{1, c.inputs, c.channels, 1, false};
  Tensor filters =
      packed(w2, "depthwise", ConvWeight{c.channels, c.channels, c.channels, c.kernel * c.kernel, false});
  AttrList expand, window, both;
  expand.set("layout", "nhwc").set("activation", "silu");
  for (AttrList *attrs : {&window, &both})
    attrs->set("layout", "nhwc")
        .set("packed", "depthwise")
        .set("group", c.channels)
        .set("pads", c.pads)
        .set("strides", std::vector<int64_t>{c.stride, c.stride})
        .set("dilations", std::vector<int64_t>{c.dilation, c.dilation})
        .set("activation", "relu");
  both.set("expand_activation", "silu");

  for (const Kernel *row : rowsOf("expand_depthwise")) {
    std::string kind = std::string(row->name).substr(std::strlen("expand_depthwise_")); // f32_avx2 and so on
    if (kind == "bf16_avx512" && !multipliesBf16())
      continue;
    const char *layout = kind.starts_with("bf16") ? "bf16" : "panel16";
    Tensor panels = packed(w1, layout, expansion);
    AttrList expandAttrs = expand, bothAttrs = both;
    expandAttrs.set("packed", layout);
    bothAttrs.set("expand_packed", layout);
    std::vector<Tensor> in = {x, panels, b1};
    std::vector<Tensor> middle = runRow(*rowNamed("conv", "conv_" + kind), in, expandAttrs);
    in = {middle.at(0), filters, b2};
    std::vector<Tensor> expected = runRow(depthwiseRowOf(row->isa), in, window);
    in = {x, panels, b1, filters, b2};
    std::vector<Tensor> found = runRow(*row, in, bothAttrs);
    EXPECT_EQ(expected.at(0).bytes, found.at(0).bytes) << row->name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ExpandDepthwise,
    testing::Values(Case{1, 5, 7, 3, 17}, Case{2, 12, 12, 16, 96},
                    Case{1, 28, 28, 40, 240, 5, 2, 1, {2, 2, 2, 2}}, Case{1, 9, 200, 24, 144, 3, 2},
                    Case{3, 14, 14, 80, 480, 5, 1, 1, {2, 2, 2, 2}},
                    Case{1, 33, 5, 300, 32, 3, 1, 2, {2, 2, 2, 2}},
                    Case{1, 64, 3, 8, 8, 3, 1, 1, {0, 0, 0, 0}, false}, Case{1, 1, 1, 4, 4},
                    Case{1, 150, 150, 16, 64, 3, 2, 1, {0, 0, 1, 1}}, Case{0, 8, 8, 4, 8},
                    Case{1, 16, 700, 4, 48, 7, 3, 1, {6, 0, 0, 6}}));

} // namespace
} // namespace dspark

// What the tests of Winograd's convolutions share: images with 3x3 filters, packed operands, the rows that
// transform, and the promises that are the same for all.
#pragma once
#include "runtime/format/PackedLayout.h"
#include "test/kernels/kernel_case.h"

namespace dspark::test {

/// Channels-last images and a 3x3 convolution of stride 1.
struct ImageCase {
  int64_t batch, height, width, inputs, outputs;
  std::vector<int64_t> pads = {1, 1, 1, 1};

  int64_t outHeight() const { return height + pads[0] + pads[2] - 2; }
  int64_t outWidth() const { return width + pads[1] + pads[3] - 2; }
  AttrList attrs(const char *layout) const {
    AttrList list;
    list.set("layout", "nhwc").set("packed", layout).set("pads", pads);
    return list;
  }
};

/// w [outputs, inputs, taps...] in that layout.
inline Tensor packedFilters(const char *layout, const Tensor &w) {
  ConvWeight weight{1, w.dims[1], w.dims[0], w.elements() / (w.dims[0] * w.dims[1]), false};
  weight.elementBytes = dtypeBits(w.type) / 8;
  weight.isSigned = w.type != DType::U8;
  Tensor p = w;
  p.bytes.assign(*packedBytes(layout, weight), std::byte(0xff));
  EXPECT_TRUE(packWeight(layout, weight, w.bytes, p.bytes).isOk());
  return p;
}

/// Rows of `op` whose name holds `part`, but not `without`.
inline std::vector<const Kernel *> rowsNamed(const char *op, std::string_view part,
                                             std::string_view without = "") {
  std::vector<const Kernel *> rows = rowsOf(op);
  std::erase_if(rows, [&](const Kernel *row) {
    std::string_view name = row->name;
    return name.find(part) == name.npos || (!without.empty() && name.find(without) != name.npos);
  });
  return rows;
}

/// An image has the same bits alone, beside others, and however work is dealt to threads.
inline void expectBitsOfFirstImage(const std::vector<const Kernel *> &rows, std::vector<Tensor> in,
                                   const AttrList &attrs) {
  std::vector<Tensor> one = in;
  one[0].dims[0] = 1;
  one[0].bytes.resize(one[0].bytes.size() / size_t(in[0].dims[0]));
  for (const Kernel *row : rows) {
    Tensor all = runRow(*row, in, attrs)[0], first = runRow(*row, one, attrs, 1, 1)[0];
    EXPECT_EQ(0, std::memcmp(all.bytes.data(), first.bytes.data(), first.bytes.size())) << row->name;
  }
}

/// Each row's error, as the root of the sum of squares, is below `times` that of its level's direct product.
inline void expectErrorOfDirectSum(const std::vector<const Kernel *> &rows, std::vector<Tensor> in,
                                   const AttrList &attrs, const std::vector<double> &exact, double times) {
  auto error = [&](const Kernel &row) {
    Tensor y = runRow(row, in, attrs)[0];
    double squares = 0;
    for (size_t i = 0; i < exact.size(); ++i)
      squares += std::pow(double(y.as<float>()[i]) - exact[i], 2);
    return std::sqrt(squares);
  };
  for (const Kernel *row : rows)
    for (const Kernel *direct : rowsOf("conv")) {
      std::string_view name = direct->name;
      if (direct->isa == row->isa && (name == "conv_f32" || name.starts_with("conv_f32_avx")))
        EXPECT_LT(error(*row), times * error(*direct)) << row->name;
    }
}

} // namespace dspark::test

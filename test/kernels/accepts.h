// Whether a row of the catalogue takes a call; what none takes goes to the next row.
#pragma once
#include "test/kernels/kernel_case.h"

namespace dspark::test {

inline bool accepts(const Kernel &row, std::vector<Tensor> &in, const AttrList &attrs) {
  std::vector<Tensor> out = inferResults(row.op, in, attrs, 1);
  std::vector<TensorView> inViews, outViews = {out[0].view()};
  for (Tensor &t : in)
    inViews.push_back(t.view());
  KernelCall call;
  call.in = inViews;
  call.out = outViews;
  call.attrs = attrs.view();
  return !row.accepts || row.accepts(call);
}

} // namespace dspark::test

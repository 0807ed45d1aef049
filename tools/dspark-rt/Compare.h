// Results against expected tensors, with the rule of ONNX's backend tests (numpy.testing.assert_allclose).
#pragma once
#include "kernels/common/kernel.h"
#include "runtime/base/Status.h"
#include "tools/dspark-rt/HostTensor.h"

namespace dspark {

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

/// Ok if type and dims are equal and |found - expected| <= absolute + relative * |expected| everywhere (NaN
/// equals NaN); else Mismatch with the first and the worst place. `largest` becomes the largest difference.
Status compareTensors(const TensorView &found, const HostTensor &expected, const Tolerance &tolerance,
                      double &largest);

} // namespace dspark

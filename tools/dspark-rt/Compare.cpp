#include "tools/dspark-rt/Compare.h"
#include "kernels/common/numeric.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dspark {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string indexText(int64_t flat, const std::vector<int64_t> &dims) {
  std::string text;
  for (size_t i = dims.size(); i-- > 0; flat /= dims[i])
    text = std::to_string(flat % dims[i]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

// Complex numbers are compared as twice as many real ones.
DType realType(DType type) {
  return type == DType::C64 ? DType::F32 : type == DType::C128 ? DType::F64 : type;
}

bool isClose(double found, double expected, const Tolerance &tolerance) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found))
    return expected == found;
  return std::fabs(found - expected) <= tolerance.absolute + tolerance.relative * std::fabs(expected);
}

} // namespace

Status compareTensors(const TensorView &found, const HostTensor &expected, const Tolerance &tolerance,
                      double &largest) {
  HostTensor form{"", found.type, {found.dims, found.dims + found.rank}, {}};
  if (found.type != expected.type || form.dims != expected.dims)
    return {Code::Mismatch, "is " + form.str() + ", expected " + expected.str()};
  if (expected.type == DType::String) {
    auto *strings = found.as<const StringElement>();
    for (size_t i = 0; i < expected.strings.size(); ++i)
      if (std::string_view(strings[i]) != expected.strings[i])
        return {Code::Mismatch, "at " + indexText(int64_t(i), expected.dims) + " it is '" +
                                    std::string(strings[i]) + "', expected '" + expected.strings[i] + "'"};
    largest = 0;
    return Status::ok();
  }
  DType type = realType(expected.type);
  int64_t count = expected.elements() * (type == expected.type ? 1 : 2), wrong = 0, first = -1, worst = -1;
  double worstApart = -1;
  largest = 0;
  constexpr int64_t kChunk = 4096;
  double a[kChunk], b[kChunk], firstFound = 0, firstExpected = 0, worstFound = 0, worstExpected = 0;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    int64_t n = std::min(kChunk, count - begin);
    loadAsF64(type, found.data, begin, n, a);
    loadAsF64(type, expected.bytes.data(), begin, n, b);
    for (int64_t i = 0; i < n; ++i) {
      double apart = a[i] == b[i] ? 0 : std::fabs(a[i] - b[i]);
      if (std::isfinite(apart))
        largest = std::max(largest, apart);
      if (isClose(a[i], b[i], tolerance))
        continue;
      if (wrong++ == 0)
        first = begin + i, firstFound = a[i], firstExpected = b[i];
      if (!(apart <= worstApart))
        worst = begin + i, worstApart = apart, worstFound = a[i], worstExpected = b[i];
    }
  }
  if (wrong == 0)
    return Status::ok();
  std::vector<int64_t> dims = expected.dims;
  if (type != expected.type)
    dims.push_back(2);
  std::string text = "differs in " + std::to_string(wrong) + " of " + std::to_string(count) +
                     " elements: at " + indexText(first, dims) + " it is " + number(firstFound) +
                     ", expected " + number(firstExpected);
  if (worst != first)
    text += "; the largest difference is at " + indexText(worst, dims) + ": " + number(worstFound) +
            ", expected " + number(worstExpected);
  return {Code::Mismatch, text};
}

} // namespace dspark

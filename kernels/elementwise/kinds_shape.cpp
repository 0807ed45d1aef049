#include "kernels/elementwise/kinds.h"

namespace dspark {
namespace {

#define DSPARK_KIND_NAME(name) #name,
constexpr std::string_view kUnaryNames[] = {
#define DSPARK_UNARY DSPARK_KIND_NAME
#include "kernels/elementwise/kinds.def"
};
constexpr std::string_view kBinaryNames[] = {
#define DSPARK_BINARY DSPARK_KIND_NAME
#include "kernels/elementwise/kinds.def"
};
constexpr std::string_view kCompareNames[] = {
#define DSPARK_COMPARE DSPARK_KIND_NAME
#include "kernels/elementwise/kinds.def"
};

template <typename Kind, size_t N> Kind find(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name)
      return Kind(i);
  return Kind::kCount;
}

} // namespace

UnaryKind unaryKind(std::string_view name) { return find<UnaryKind>(kUnaryNames, name); }
BinaryKind binaryKind(std::string_view name) { return find<BinaryKind>(kBinaryNames, name); }
CompareKind compareKind(std::string_view name) { return find<CompareKind>(kCompareNames, name); }
std::string_view kindName(UnaryKind kind) { return kUnaryNames[int(kind)]; }
std::string_view kindName(BinaryKind kind) { return kBinaryNames[int(kind)]; }
std::string_view kindName(CompareKind kind) { return kCompareNames[int(kind)]; }

UnaryDefaults unaryDefaults(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::k_leaky_relu:
    return {0.01f, 0};
  case UnaryKind::k_elu:
    return {1, 0};
  case UnaryKind::k_celu:
    return {1, 0};
  case UnaryKind::k_selu:
    return {1.67326319217681884765625f, 1.05070102214813232421875f}; // alpha, gamma
  case UnaryKind::k_thresholded_relu:
    return {1, 0};
  case UnaryKind::k_hard_sigmoid:
    return {0.2f, 0.5f};
  case UnaryKind::k_hard_swish:
    return {1.0 / 6, 0.5};
  case UnaryKind::k_swish:
    return {1, 0};
  case UnaryKind::k_shrink:
    return {0.5, 0}; // lambd, bias
  default:
    return {0, 0};
  }
}

} // namespace dspark

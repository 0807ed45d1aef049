// Enums for the kinds of elementwise operations, made from kinds.def.
#pragma once
#include <cstdint>
#include <string_view>

namespace dspark {

#define DSPARK_KIND_ENUM(name) k_##name,
enum class UnaryKind : uint8_t {
#define DSPARK_UNARY DSPARK_KIND_ENUM
#include "kernels/elementwise/kinds.def"
  kCount
};
enum class BinaryKind : uint8_t {
#define DSPARK_BINARY DSPARK_KIND_ENUM
#include "kernels/elementwise/kinds.def"
  kCount
};
enum class CompareKind : uint8_t {
#define DSPARK_COMPARE DSPARK_KIND_ENUM
#include "kernels/elementwise/kinds.def"
  kCount
};
#undef DSPARK_KIND_ENUM

/// The kind of that name, or kCount.
UnaryKind unaryKind(std::string_view name);
BinaryKind binaryKind(std::string_view name);
CompareKind compareKind(std::string_view name);
std::string_view kindName(UnaryKind kind);
std::string_view kindName(BinaryKind kind);
std::string_view kindName(CompareKind kind);

/// The parameters an operation of that kind has when the model gives none (ONNX's defaults).
struct UnaryDefaults {
  double alpha, beta;
};
UnaryDefaults unaryDefaults(UnaryKind kind);

} // namespace dspark

// The element types of GGUF tensors: how many elements share a block, and the block's bytes.
#pragma once
#include <cstdint>
#include <string_view>

namespace dspark::checkpoint {

// DSPARK_GGML_TYPE(name, number in the file, elements per block, bytes per block)
#define DSPARK_GGML_TYPES(DSPARK_GGML_TYPE)                                                                  \
  DSPARK_GGML_TYPE(F32, 0, 1, 4)                                                                             \
  DSPARK_GGML_TYPE(F16, 1, 1, 2)                                                                             \
  DSPARK_GGML_TYPE(Q4_0, 2, 32, 18)                                                                          \
  DSPARK_GGML_TYPE(Q4_1, 3, 32, 20)                                                                          \
  DSPARK_GGML_TYPE(Q5_0, 6, 32, 22)                                                                          \
  DSPARK_GGML_TYPE(Q5_1, 7, 32, 24)                                                                          \
  DSPARK_GGML_TYPE(Q8_0, 8, 32, 34)                                                                          \
  DSPARK_GGML_TYPE(Q8_1, 9, 32, 36)                                                                          \
  DSPARK_GGML_TYPE(Q2_K, 10, 256, 84)                                                                        \
  DSPARK_GGML_TYPE(Q3_K, 11, 256, 110)                                                                       \
  DSPARK_GGML_TYPE(Q4_K, 12, 256, 144)                                                                       \
  DSPARK_GGML_TYPE(Q5_K, 13, 256, 176)                                                                       \
  DSPARK_GGML_TYPE(Q6_K, 14, 256, 210)                                                                       \
  DSPARK_GGML_TYPE(Q8_K, 15, 256, 292)                                                                       \
  DSPARK_GGML_TYPE(IQ2_XXS, 16, 256, 66)                                                                     \
  DSPARK_GGML_TYPE(IQ2_XS, 17, 256, 74)                                                                      \
  DSPARK_GGML_TYPE(IQ3_XXS, 18, 256, 98)                                                                     \
  DSPARK_GGML_TYPE(IQ1_S, 19, 256, 50)                                                                       \
  DSPARK_GGML_TYPE(IQ4_NL, 20, 32, 18)                                                                       \
  DSPARK_GGML_TYPE(IQ3_S, 21, 256, 110)                                                                      \
  DSPARK_GGML_TYPE(IQ2_S, 22, 256, 82)                                                                       \
  DSPARK_GGML_TYPE(IQ4_XS, 23, 256, 136)                                                                     \
  DSPARK_GGML_TYPE(I8, 24, 1, 1)                                                                             \
  DSPARK_GGML_TYPE(I16, 25, 1, 2)                                                                            \
  DSPARK_GGML_TYPE(I32, 26, 1, 4)                                                                            \
  DSPARK_GGML_TYPE(I64, 27, 1, 8)                                                                            \
  DSPARK_GGML_TYPE(F64, 28, 1, 8)                                                                            \
  DSPARK_GGML_TYPE(IQ1_M, 29, 256, 56)                                                                       \
  DSPARK_GGML_TYPE(BF16, 30, 1, 2)                                                                           \
  DSPARK_GGML_TYPE(TQ1_0, 34, 256, 54)                                                                       \
  DSPARK_GGML_TYPE(TQ2_0, 35, 256, 66)                                                                       \
  DSPARK_GGML_TYPE(MXFP4, 39, 32, 17)                                                                        \
  DSPARK_GGML_TYPE(NVFP4, 40, 64, 36)                                                                        \
  DSPARK_GGML_TYPE(Q1_0, 41, 128, 18)                                                                        \
  DSPARK_GGML_TYPE(Q2_0, 42, 64, 18)

enum class GgmlType : uint32_t {
#define DSPARK_GGML_TYPE(name, number, elements, bytes) name = number,
  DSPARK_GGML_TYPES(DSPARK_GGML_TYPE)
#undef DSPARK_GGML_TYPE
};

struct GgmlTypeInfo {
  std::string_view name;
  GgmlType type;
  uint32_t elements, bytes;
};

/// Null for a number that stands for no type.
inline const GgmlTypeInfo *ggmlTypeInfo(uint32_t number) {
  static constexpr GgmlTypeInfo types[] = {
#define DSPARK_GGML_TYPE(name, number, elements, bytes) {#name, GgmlType::name, elements, bytes},
      DSPARK_GGML_TYPES(DSPARK_GGML_TYPE)
#undef DSPARK_GGML_TYPE
  };
  for (const GgmlTypeInfo &info : types)
    if (uint32_t(info.type) == number)
      return &info;
  return nullptr;
}

} // namespace dspark::checkpoint

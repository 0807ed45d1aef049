// Narrow number formats: every code, and rounding checked at and around the midpoint of every pair of
// neighbours.
#include "kernels/common/numeric.h"
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace dspark {
namespace {

const DType kFormats[] = {DType::F16,    DType::BF16,       DType::F8E4M3FN, DType::F8E4M3FNUZ,
                          DType::F8E5M2, DType::F8E5M2FNUZ, DType::F4E2M1};

TEST(Numeric, F16AndBf16DecodeEveryCode) {
  for (uint32_t code = 0; code < 65536; ++code) {
    double f16 = decodeSmall(smallFloat(DType::F16), code), bf16 = decodeSmall(smallFloat(DType::BF16), code);
    EXPECT_TRUE(f16 == f16ToF32(uint16_t(code)) || (std::isnan(f16) && std::isnan(f16ToF32(uint16_t(code)))));
    EXPECT_TRUE(bf16 == bf16ToF32(uint16_t(code)) ||
                (std::isnan(bf16) && std::isnan(bf16ToF32(uint16_t(code)))));
  }
}

TEST(Numeric, FastEncodersAgreeWithTheGeneralOne) {
  for (uint64_t code = 0; code < (uint64_t(1) << 32); code += 4099) {
    float x = std::bit_cast<float>(uint32_t(code));
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(f16ToF32(f32ToF16(x))) && std::isnan(bf16ToF32(f32ToBf16(x))));
      continue;
    }
    EXPECT_EQ(f32ToF16(x), encodeSmall(smallFloat(DType::F16), x, false)) << x;
    EXPECT_EQ(f32ToBf16(x), encodeSmall(smallFloat(DType::BF16), x, false)) << x;
  }
}

TEST(Numeric, RoundsToNearestEven) {
  for (DType type : kFormats) {
    SmallFloat f = smallFloat(type);
    uint32_t signBit = 1u << (f.exponentBits + f.mantissaBits);
    for (uint32_t code = 0; code < f.largest; ++code) {
      double low = decodeSmall(f, code), high = decodeSmall(f, code + 1), middle = (low + high) / 2;
      ASSERT_LT(low, high);
      EXPECT_EQ(encodeSmall(f, low, false), code);
      EXPECT_EQ(encodeSmall(f, middle, false), code % 2 == 0 ? code : code + 1) << dtypeName(type) << middle;
      EXPECT_EQ(encodeSmall(f, std::nextafter(middle, low), false), code);
      EXPECT_EQ(encodeSmall(f, std::nextafter(middle, high), false), code + 1);
      uint32_t negative = code == 0 && !f.signedZero ? 0 : code | signBit;
      EXPECT_EQ(encodeSmall(f, -low, false), negative);
    }
    EXPECT_EQ(encodeSmall(f, decodeSmall(f, f.largest), false), f.largest);
  }
}

// The tables in the documentation of ONNX's Cast.
TEST(Numeric, OverflowOfF8) {
  struct Row {
    DType type;
    uint32_t maxPositive, infPlain, negInfPlain, nan;
  };
  for (Row row :
       {Row{DType::F8E4M3FN, 0x7e, 0x7f, 0xff, 0x7f}, Row{DType::F8E4M3FNUZ, 0x7f, 0x80, 0x80, 0x80},
        Row{DType::F8E5M2, 0x7b, 0x7c, 0xfc, 0x7e}, Row{DType::F8E5M2FNUZ, 0x7f, 0x80, 0x80, 0x80}}) {
    SmallFloat f = smallFloat(row.type);
    for (double huge : {1e30, double(INFINITY)}) {
      EXPECT_EQ(encodeSmall(f, huge, true), row.maxPositive);
      EXPECT_EQ(encodeSmall(f, -huge, true), row.maxPositive | 0x80);
      EXPECT_EQ(encodeSmall(f, huge, false), row.infPlain);
      EXPECT_EQ(encodeSmall(f, -huge, false), row.negInfPlain);
    }
    EXPECT_EQ(encodeSmall(f, NAN, true), row.nan);
    EXPECT_TRUE(std::isnan(decodeSmall(f, row.nan)));
  }
  EXPECT_EQ(decodeSmall(smallFloat(DType::F8E4M3FN), 0x7e), 448);
  EXPECT_EQ(decodeSmall(smallFloat(DType::F8E4M3FNUZ), 0x7f), 240);
  EXPECT_EQ(decodeSmall(smallFloat(DType::F8E5M2), 0x7b), 57344);
  EXPECT_EQ(decodeSmall(smallFloat(DType::F8E5M2FNUZ), 0x7f), 57344);
  EXPECT_EQ(decodeSmall(smallFloat(DType::F4E2M1), 0x7), 6);
}

TEST(Numeric, E8m0RoundsAndSaturates) {
  EXPECT_EQ(encodeE8m0(1, E8m0Round::Up, true), 127);
  EXPECT_EQ(encodeE8m0(1.001, E8m0Round::Up, true), 128);
  EXPECT_EQ(encodeE8m0(1.999, E8m0Round::Down, true), 127);
  EXPECT_EQ(encodeE8m0(1.499, E8m0Round::Nearest, true), 127);
  EXPECT_EQ(encodeE8m0(1.5, E8m0Round::Nearest, true), 128);
  EXPECT_EQ(encodeE8m0(0, E8m0Round::Up, true), 0);
  EXPECT_EQ(encodeE8m0(1e300, E8m0Round::Up, true), 254);
  EXPECT_EQ(encodeE8m0(1e300, E8m0Round::Nearest, false), 255);
  EXPECT_EQ(encodeE8m0(NAN, E8m0Round::Up, true), 255);
  EXPECT_EQ(decodeE8m0(0), 0x1p-127);
}

TEST(Numeric, BlocksRoundTripEveryType) {
  for (int t = 1; t < kDTypeCount; ++t) {
    DType type = DType(t);
    int bits = dtypeBits(type);
    if (bits == 0 || type == DType::C64 || type == DType::C128 || type == DType::String)
      continue;
    // Values every type but the unsigned and tiny ones can hold.
    bool tiny = bits == 2 || type == DType::Bool, positive = !isFloat(type) && !isSigned(type);
    std::vector<double> in;
    for (int i = 0; i < 29; ++i)
      in.push_back(type == DType::F8E8M0 ? std::ldexp(1.0, i - 14)
                                         : (i % (tiny ? 2 : 5)) * (positive ? 1
                                                                   : i % 2  ? -1
                                                                            : 1));
    std::vector<uint8_t> bytes(29 * 8 + 8, 0xee);
    std::vector<double> out(29);
    storeFromF64(type, bytes.data(), 0, 8, in.data());
    storeFromF64(type, bytes.data(), 8, 21, in.data() + 8);
    loadAsF64(type, bytes.data(), 0, 3, out.data());
    loadAsF64(type, bytes.data(), 3, 26, out.data() + 3);
    EXPECT_EQ(in, out) << dtypeName(type);
    EXPECT_EQ(bytes[size_t(dtypeBytes(type, 29))], 0xee) << "wrote past the end: " << dtypeName(type);
  }
}

TEST(Numeric, TruncationIsDefinedForEveryInput) {
  EXPECT_EQ(truncateTo<int32_t>(-2.9), -2);
  EXPECT_EQ(truncateTo<int32_t>(3e9), INT32_MIN);
  EXPECT_EQ(truncateTo<int64_t>(NAN), INT64_MIN);
  EXPECT_EQ(truncateTo<uint8_t>(300.7), 44);
  EXPECT_EQ(truncateTo<uint32_t>(4e9), 4000000000u);
  EXPECT_EQ(truncateTo<uint64_t>(1.5e19), 15000000000000000000u);
  EXPECT_EQ(truncateTo<uint64_t>(-1.0), UINT64_MAX);
}

} // namespace
} // namespace dspark

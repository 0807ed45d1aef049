// Builds f32 scalar arithmetic in a linalg body, transcendentals as polynomials. Everything made here is
// elementwise arith and math, so it vectorises as it stands and no call to libm is left at any ISA level.
//
// No fast-math flags are set: whether a multiply and an add fuse is decided here (fma()) and never by LLVM,
// so that the vector body and the tail of a row round alike and a result does not depend on where its element
// lies in a tile.
#pragma once
#include "kernels/common/isa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include <initializer_list>

namespace dspark::codegen {

class ScalarMath {
public:
  using Value = mlir::Value;
  using Cmp = mlir::arith::CmpFPredicate;
  ScalarMath(mlir::OpBuilder &builder, mlir::Location loc, Isa level) : b(builder), loc(loc), level(level) {}

  Value constant(float value);
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);
  /// x * y + z, rounded once where the level has FMA and twice elsewhere.
  Value fma(Value x, Value y, Value z);
  Value neg(Value x);
  Value abs(Value x);
  Value sqrt(Value x);
  Value copySign(Value magnitude, Value sign);
  Value cmp(Cmp predicate, Value x, Value y); // i1
  Value select(Value condition, Value x, Value y);
  Value nonZero(Value x);          // i1: x != 0
  Value fromBool(Value condition); // 1.0 or 0.0
  Value either(Value x, Value y);  // i1
  Value both(Value x, Value y);    // i1
  Value differ(Value x, Value y);  // i1

  /// NaN if either is NaN.
  Value max(Value x, Value y);
  Value min(Value x, Value y);
  /// x where it is NaN; hi where lo > hi. The bounds are no NaN.
  Value clamp(Value x, float lo, float hi);

  Value round(Value x); // half to even
  Value floor(Value x);
  Value ceil(Value x);

  /// 2^shift * e^x, exact in range and denormals.
  Value exp(Value x, int shift = 0);
  /// e^x - 1 for x below 88.
  Value expm1(Value x);
  Value log(Value x);
  Value log1p(Value x);
  Value sigmoid(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value gelu(Value x);
  Value geluTanh(Value x);
  Value softplus(Value x);
  Value mish(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);

private:
  Value intConstant(int32_t value);
  Value bits(Value x);       // f32 -> i32
  Value fromBits(Value i);   // i32 -> f32
  Value powerOfTwo(Value n); // i32 n in [-126, 127] -> 2^n
  Value shiftLeft(Value i, int by);
  Value shiftRight(Value i, int by); // arithmetic
  Value addInt(Value i, Value j);
  Value subInt(Value i, Value j);
  /// Horner, highest power first.
  Value polynomial(Value x, std::initializer_list<float> coefficients);
  /// x = n ln2 + r with |r| <= ln2/2; n as an integer.
  struct Reduced {
    Value n, r;
  };
  Reduced reduceByLn2(Value x);
  Value expTail(Value r, Value r2);
  Value expm1Rest(Value r);
  Value asinKernel(Value a, Value &isBig); // of a = |x|

  mlir::OpBuilder &b;
  mlir::Location loc;
  Isa level;
};

} // namespace dspark::codegen

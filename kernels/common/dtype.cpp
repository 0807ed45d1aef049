#include "kernels/common/dtype.h"

namespace dspark {
namespace {

struct Row {
  std::string_view name;
  int bits;
  char kind; // 'f' float, 's' signed integer, 'u' unsigned integer, 'b' bool, 'c' complex, '-' other
};
// Indexed by DType.
constexpr Row kRows[kDTypeCount] = {
    {"none", 0, '-'},       {"f32", 32, 'f'},     {"u8", 8, 'u'},         {"i8", 8, 's'},
    {"u16", 16, 'u'},       {"i16", 16, 's'},     {"i32", 32, 's'},       {"i64", 64, 's'},
    {"string", 128, '-'},   {"bool", 8, 'b'},     {"f16", 16, 'f'},       {"f64", 64, 'f'},
    {"u32", 32, 'u'},       {"u64", 64, 'u'},     {"c64", 64, 'c'},       {"c128", 128, 'c'},
    {"bf16", 16, 'f'},      {"f8e4m3fn", 8, 'f'}, {"f8e4m3fnuz", 8, 'f'}, {"f8e5m2", 8, 'f'},
    {"f8e5m2fnuz", 8, 'f'}, {"u4", 4, 'u'},       {"i4", 4, 's'},         {"f4e2m1", 4, 'f'},
    {"f8e8m0", 8, 'f'},     {"u2", 2, 'u'},       {"i2", 2, 's'},
};
const Row &row(DType type) { return kRows[int(type) < kDTypeCount ? int(type) : 0]; }

} // namespace

int dtypeBits(DType type) { return row(type).bits; }
std::string_view dtypeName(DType type) { return row(type).name; }
DType dtypeFromName(std::string_view name) {
  for (int i = 1; i < kDTypeCount; ++i)
    if (kRows[i].name == name)
      return DType(i);
  return DType::Undefined;
}
bool isFloat(DType type) { return row(type).kind == 'f'; }
bool isInteger(DType type) { return row(type).kind == 's' || row(type).kind == 'u'; }
bool isSigned(DType type) { return row(type).kind == 's'; }

} // namespace dspark

// Tensors made from a few numbers.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/numeric.h"
#include "kernels/common/operand.h"
#include "kernels/index/rows.h"
#include "kernels/movement/strided_copy.h"

namespace dspark::index_ops {
namespace {

using movement::copyRun;
using movement::dispatchBytes;

void prepareBytes(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.out[0].type, call.out[0].elements());
  work.tiles[0] = tilesForBytes(bytes);
  work.bytes = double(bytes);
}

// --- constant_of_shape: the value as 16 bytes of repeated elements ---

struct FillState {
  alignas(16) char pattern[16];
};

bool acceptsConstant(const KernelCall &call) {
  DType type = call.out[0].type;
  return (isFloat(type) || isInteger(type) || type == DType::Bool) && dtypeBits(type) > 0;
}

void prepareConstant(const KernelCall &call, KernelWork &work) {
  prepareBytes(call, work);
  FillState &s = work.make<FillState>();
  DType type = call.out[0].type;
  int bits = dtypeBits(type);
  if (isFloat(type)) {
    // Eight elements, so that packed types fill whole bytes; they repeat within the pattern.
    double values[8];
    for (double &value : values)
      value = call.attrs.f("value", double(call.attrs.i("value", 0)));
    char bytes[64] = {};
    storeFromF64(type, bytes, 0, 8, values);
    int unit = std::max(bits / 8, 1);
    for (int i = 0; i < 16; ++i)
      s.pattern[i] = bytes[i % unit];
    return;
  }
  uint64_t value = uint64_t(call.attrs.i("value", int64_t(call.attrs.f("value", 0))));
  for (int i = bits; i < 8; i *= 2) // packed types: repeat within a byte
    value = (value & ((1u << i) - 1)) * ((1u << i) + 1);
  int unit = std::max(bits / 8, 1);
  for (int i = 0; i < 16; ++i)
    s.pattern[i] = char(value >> (i % unit * 8));
}

void runConstant(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  RowRange range(dtypeBytes(call.out[0].type, call.out[0].elements()), work.tiles[0], part);
  const char *pattern = work.get<FillState>().pattern;
  char *y = call.out[0].as<char>();
  int64_t i = range.begin;
  for (; i < range.end && i % 16 != 0; ++i)
    y[i] = pattern[i % 16];
  for (; i + 16 <= range.end; i += 16)
    __builtin_memcpy(y + i, pattern, 16);
  for (; i < range.end; ++i)
    y[i] = pattern[i % 16];
}

// --- range: start + i * delta ---

bool acceptsRange(const KernelCall &call) { return isPlainNumber(call.out[0].type); }

void runRange(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  RowRange range(call.out[0].elements(), work.tiles[0], part);
  dispatchNumber(call.out[0].type, [&]<typename T>() {
    // Integers wrap; 16-bit floats are computed in f32.
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>;
    Wide start = Wide(*call.in[0].as<const T>()), delta = Wide(*call.in[2].as<const T>());
    for (int64_t i = range.begin; i < range.end; ++i)
      call.out[0].as<T>()[i] = T(start + Wide(i) * delta);
  });
}

// --- eye_like: ones at column = row + k ---

void runEye(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &y = call.out[0];
  int64_t columns = y.dims[1], k = std::clamp(call.attrs.i("k", 0), -y.dims[0], columns);
  RowRange rows(y.dims[0], work.tiles[0], part);
  dispatchNumber(y.type, [&]<typename T>() {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      T *to = y.as<T>() + row * columns;
      std::fill(to, to + columns, T(0));
      if (row + k >= 0 && row + k < columns)
        to[row + k] = T(1);
    }
  });
}

// --- one_hot: y is [outer, depth, inner]; an index outside [-depth, depth) leaves its column off ---

bool acceptsOneHot(const KernelCall &call) {
  return isPlainNumber(call.in[0].type) && dtypeBits(call.in[2].type) >= 8;
}

void runOneHot(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &indices = call.in[0], &y = call.out[0];
  int64_t axis = call.attrs.i("axis", -1);
  axis += axis < 0 ? y.rank : 0;
  int64_t depth = y.dims[axis], inner = y.elements(int(axis) + 1, y.rank);
  RowRange outer(y.elements(0, int(axis)), work.tiles[0], part);
  auto spread = [&]<typename V>(auto indexAt) {
    V off = call.in[2].as<const V>()[0], on = call.in[2].as<const V>()[1];
    for (int64_t o = outer.begin; o < outer.end; ++o) {
      V *to = y.as<V>() + o * depth * inner;
      std::fill(to, to + depth * inner, off);
      for (int64_t i = 0; i < inner; ++i) {
        int64_t index = indexAt(o * inner + i);
        index += index < 0 ? depth : 0;
        if (index >= 0 && index < depth)
          to[index * inner + i] = on;
      }
    }
  };
  dispatchNumber(indices.type, [&]<typename I>() {
    auto indexAt = [&](int64_t k) {
      I value = indices.as<const I>()[k];
      if constexpr (std::is_integral_v<I>)
        return int64_t(value);
      else
        return truncateTo<int64_t>(double(value));
    };
    dispatchBytes(dtypeBits(y.type) / 8, [&]<typename V>() { spread.template operator()<V>(indexAt); });
  });
}

constexpr Kernel kRows[] = {
    {"constant_of_shape", "constant_of_shape_any", Isa::Baseline, acceptsConstant, prepareConstant,
     runConstant},
    {"range", "range_any", Isa::Baseline, acceptsRange, prepareBytes, runRange},
    {"eye_like", "eye_like_any", Isa::Baseline, acceptsRange, prepareBytes, runEye},
    {"one_hot", "one_hot_any", Isa::Baseline, acceptsOneHot, prepareBytes, runOneHot},
};

} // namespace

std::span<const Kernel> fillKernels() { return kRows; }

} // namespace dspark::index_ops

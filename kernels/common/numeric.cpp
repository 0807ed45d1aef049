#include "kernels/common/numeric.h"
#include <array>

namespace dspark {
namespace {

template <DType type> constexpr auto makeTable() {
  std::array<float, 256> table{};
  for (int i = 0; i < 256; ++i)
    table[i] = float(decodeSmall(smallFloat(type), i & (type == DType::F4E2M1 ? 15 : 255)));
  return table;
}
template <DType type> constexpr std::array<float, 256> kTable = makeTable<type>();

template <typename T> void loadPlain(const void *data, int64_t begin, int64_t n, double *out) {
  const T *in = static_cast<const T *>(data) + begin;
  for (int64_t i = 0; i < n; ++i)
    out[i] = double(in[i]);
}
template <DType type> void loadTable(const void *data, int64_t begin, int64_t n, double *out) {
  const uint8_t *in = static_cast<const uint8_t *>(data) + begin;
  for (int64_t i = 0; i < n; ++i)
    out[i] = kTable<type>[in[i]];
}
template <typename T> void storePlain(void *data, int64_t begin, int64_t n, const double *in) {
  T *out = static_cast<T *>(data) + begin;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      out[i] = T(in[i]);
    else
      out[i] = truncateTo<T>(in[i]);
  }
}
/// `encode` gives the code of element i.
template <typename F> void storePacked(void *data, int64_t begin, int64_t n, int bits, F encode) {
  int perByte = 8 / bits;
  uint8_t *out = static_cast<uint8_t *>(data) + begin / perByte;
  for (int64_t i = 0; i < n; i += perByte) {
    uint32_t byte = 0;
    for (int64_t k = 0; k < perByte && i + k < n; ++k)
      byte |= (encode(i + k) & ((1u << bits) - 1)) << (k * bits);
    *out++ = uint8_t(byte);
  }
}

} // namespace

void loadAsF64(DType type, const void *data, int64_t begin, int64_t n, double *out) {
  const auto *bytes = static_cast<const uint8_t *>(data);
  const auto *words = static_cast<const uint16_t *>(data);
  switch (type) {
  case DType::F32:
    return loadPlain<float>(data, begin, n, out);
  case DType::F64:
    return loadPlain<double>(data, begin, n, out);
  case DType::U8:
    return loadPlain<uint8_t>(data, begin, n, out);
  case DType::I8:
    return loadPlain<int8_t>(data, begin, n, out);
  case DType::U16:
    return loadPlain<uint16_t>(data, begin, n, out);
  case DType::I16:
    return loadPlain<int16_t>(data, begin, n, out);
  case DType::U32:
    return loadPlain<uint32_t>(data, begin, n, out);
  case DType::I32:
    return loadPlain<int32_t>(data, begin, n, out);
  case DType::U64:
    return loadPlain<uint64_t>(data, begin, n, out);
  case DType::I64:
    return loadPlain<int64_t>(data, begin, n, out);
  case DType::F8E4M3FN:
    return loadTable<DType::F8E4M3FN>(data, begin, n, out);
  case DType::F8E4M3FNUZ:
    return loadTable<DType::F8E4M3FNUZ>(data, begin, n, out);
  case DType::F8E5M2:
    return loadTable<DType::F8E5M2>(data, begin, n, out);
  case DType::F8E5M2FNUZ:
    return loadTable<DType::F8E5M2FNUZ>(data, begin, n, out);
  case DType::Bool:
    for (int64_t i = 0; i < n; ++i)
      out[i] = bytes[begin + i] != 0;
    return;
  case DType::F16:
    for (int64_t i = 0; i < n; ++i)
      out[i] = f16ToF32(words[begin + i]);
    return;
  case DType::BF16:
    for (int64_t i = 0; i < n; ++i)
      out[i] = bf16ToF32(words[begin + i]);
    return;
  case DType::F8E8M0:
    for (int64_t i = 0; i < n; ++i)
      out[i] = decodeE8m0(bytes[begin + i]);
    return;
  case DType::F4E2M1:
    for (int64_t i = 0; i < n; ++i)
      out[i] = kTable<DType::F4E2M1>[loadPacked(data, begin + i, 4)];
    return;
  case DType::U4:
  case DType::U2:
    for (int64_t i = 0; i < n; ++i)
      out[i] = loadPacked(data, begin + i, dtypeBits(type));
    return;
  case DType::I4:
  case DType::I2:
    for (int64_t i = 0; i < n; ++i)
      out[i] = signExtend(loadPacked(data, begin + i, dtypeBits(type)), dtypeBits(type));
    return;
  case DType::Undefined:
  case DType::String:
  case DType::C64:
  case DType::C128:
    return;
  }
}

void storeFromF64(DType type, void *data, int64_t begin, int64_t n, const double *in,
                  const NarrowOptions &options) {
  auto *bytes = static_cast<uint8_t *>(data) + begin;
  switch (type) {
  case DType::F32:
    return storePlain<float>(data, begin, n, in);
  case DType::F64:
    return storePlain<double>(data, begin, n, in);
  case DType::U8:
    return storePlain<uint8_t>(data, begin, n, in);
  case DType::I8:
    return storePlain<int8_t>(data, begin, n, in);
  case DType::U16:
    return storePlain<uint16_t>(data, begin, n, in);
  case DType::I16:
    return storePlain<int16_t>(data, begin, n, in);
  case DType::U32:
    return storePlain<uint32_t>(data, begin, n, in);
  case DType::I32:
    return storePlain<int32_t>(data, begin, n, in);
  case DType::U64:
    return storePlain<uint64_t>(data, begin, n, in);
  case DType::I64:
    return storePlain<int64_t>(data, begin, n, in);
  case DType::Bool:
    for (int64_t i = 0; i < n; ++i)
      bytes[i] = in[i] != 0;
    return;
  case DType::F16:
  case DType::BF16:
    for (int64_t i = 0; i < n; ++i)
      static_cast<uint16_t *>(data)[begin + i] = uint16_t(encodeSmall(smallFloat(type), in[i], false));
    return;
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
    for (int64_t i = 0; i < n; ++i)
      bytes[i] = uint8_t(encodeSmall(smallFloat(type), in[i], options.saturate));
    return;
  case DType::F8E8M0:
    for (int64_t i = 0; i < n; ++i)
      bytes[i] = encodeE8m0(in[i], options.round, options.saturate);
    return;
  case DType::F4E2M1:
    return storePacked(data, begin, n, 4,
                       [&](int64_t i) { return encodeSmall(smallFloat(type), in[i], true); });
  case DType::U4:
  case DType::I4:
  case DType::U2:
  case DType::I2:
    return storePacked(data, begin, n, dtypeBits(type),
                       [&](int64_t i) { return uint32_t(truncateTo<int64_t>(in[i])); });
  case DType::Undefined:
  case DType::String:
  case DType::C64:
  case DType::C128:
    return;
  }
}

} // namespace dspark

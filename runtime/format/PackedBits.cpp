#include "runtime/format/PackedBits.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

void store(uint8_t *&at, uint32_t bits, int bytes) {
  std::memcpy(at, &bits, size_t(bytes));
  at += bytes;
}

// One number of 16 columns per group: value(column, group).
template <typename Value> void putGroups(uint8_t *&at, int64_t groups, int bytes, Value value) {
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t column = 0; column < kPackedColumns; ++column)
      store(at, value(column, g), bytes);
}

void putHeader(const PackedFormat &format, const BlockValues (&columns)[kPackedColumns], int64_t groups,
               uint8_t *at) {
  auto scale = [&](int64_t c, int64_t g) { return columns[c].scale[size_t(g)]; };
  auto zero = [&](int64_t c, int64_t g) { return columns[c].zero[size_t(g)]; };
  if (!format.isSuper()) {
    putGroups(at, groups, scaleBytes(format.scale), scale);
    if (format.zero != ZeroKind::Constant)
      putGroups(at, groups, format.zero == ZeroKind::Byte ? 1 : scaleBytes(format.scale), zero);
    return;
  }
  putGroups(at, 1, 2, [&](int64_t c, int64_t) { return columns[c].factor; });
  if (hasMinima(format.scale))
    putGroups(at, 1, 2, [&](int64_t c, int64_t) { return columns[c].minFactor; });
  putGroups(at, groups, 1, scale);
  if (format.scale == ScaleKind::SuperU8)
    putGroups(at, groups, 1, zero);
}

// A code of quad q of the step, byte `at` of its vector.
void putCode(CodeKind kind, uint8_t *lines, unsigned code, int q, int64_t at) {
  CodePieces pieces = codePieces(int(kCodeLines[int(kind)]), q);
  for (int i = pieces.count - 1; i >= 0; --i) {
    const CodePiece &piece = pieces.of[i];
    lines[piece.line * 64 + at] |= uint8_t((code & ((1u << piece.bits) - 1)) << piece.at);
    code >>= piece.bits;
  }
}

void putCodes(const PackedFormat &format, const std::vector<uint8_t> &codes, int64_t column, uint8_t *lines) {
  for (size_t term = 0; term < codes.size(); ++term) {
    auto step = int64_t(term) / kStepTerms, in = int64_t(term) % kStepTerms;
    putCode(format.code, lines + step * format.stepBytes(), codes[term], int(in / 4), column * 4 + in % 4);
  }
}

// 16 columns from `first` on; those beyond `end` are zeros.
void packPanel(const PackedFormat &format, int64_t k, int64_t first, int64_t end, const BlockSource &source,
               BlockValues (&columns)[kPackedColumns], uint8_t *out) {
  int64_t groups = format.groupsPerBlock(k);
  for (int64_t block = 0; block < format.blocks(k); ++block, out += format.blockBytes(k)) {
    std::memset(out, 0, size_t(format.blockBytes(k)));
    for (int64_t c = 0; c < kPackedColumns; ++c) {
      BlockValues &values = columns[c];
      values.codes.assign(size_t(format.blockTerms(k)), 0);
      values.scale.assign(size_t(groups), 0);
      values.zero.assign(size_t(groups), 0);
      values.factor = values.minFactor = 0;
      if (first + c >= end)
        continue;
      source.read(first + c, block, values);
      putCodes(format, values.codes, c, out + format.headerBytes(k));
    }
    putHeader(format, columns, groups, out);
  }
}

} // namespace

std::optional<int64_t> gatedBytes(const PackedFormat &format, int64_t k, int64_t n) {
  std::optional<int64_t> half = n % 2 == 0 ? format.bytes(k, n / 2) : std::nullopt;
  return half && *half <= INT64_MAX / 2 ? std::optional(*half * 2) : std::nullopt;
}

Status packBlocks(const PackedFormat &format, int64_t k, int64_t n, const BlockSource &source,
                  std::span<std::byte> out, bool isGated) {
  std::optional<int64_t> bytes = isGated ? gatedBytes(format, k, n) : format.bytes(k, n);
  if (!bytes || uint64_t(*bytes) != out.size())
    return invalidArgument("packing a weight of " + std::to_string(k) + " terms and " + std::to_string(n) +
                           " columns: expected " + (bytes ? std::to_string(*bytes) : "representable") +
                           " packed bytes, found " + std::to_string(out.size()));
  BlockValues columns[kPackedColumns];
  auto *at = reinterpret_cast<uint8_t *>(out.data());
  int64_t columnsOfEach = isGated ? n / 2 : n;
  for (int64_t first = 0; first < columnsOfEach; first += kPackedColumns)
    for (int64_t part = 0; part < n; part += columnsOfEach, at += format.panelBytes(k))
      packPanel(format, k, part + first, part + columnsOfEach, source, columns, at);
  return Status::ok();
}

namespace {

// Columns [first, end) as panels, `panelStep` panels apart. Sources lie anywhere in a file.
template <size_t EachBytes>
void packFloatPanels(const PackedFormat &format, int64_t k, int64_t first, int64_t end, int64_t termStride,
                     int64_t columnStride, const std::byte *from, std::byte *to, int64_t panelStep) {
  bool isPaired = format.code == CodeKind::BF16;
  for (; first < end; first += kPackedColumns, to += panelStep * format.panelBytes(k))
    for (int64_t c = 0; c < std::min(kPackedColumns, end - first); ++c)
      for (int64_t term = 0; term < k; ++term) {
        int64_t at = isPaired ? (term / 2 * kPackedColumns + c) * 2 + term % 2 : term * kPackedColumns + c;
        std::memcpy(to + size_t(at) * EachBytes,
                    from + size_t(term * termStride + (first + c) * columnStride) * EachBytes, EachBytes);
      }
}

} // namespace

Status packFloats(std::string_view layout, int64_t k, int64_t n, bool isTransposed,
                  std::span<const std::byte> source, std::span<std::byte> out, bool isGated) {
  std::optional<PackedFormat> format = PackedFormat::named(layout);
  if (!format || !format->isFloat())
    return invalidArgument("packed layout: expected f16, bf16 or f32, found " + std::string(layout));
  std::optional<int64_t> bytes = isGated ? gatedBytes(*format, k, n) : format->bytes(k, n);
  size_t each = format->code == CodeKind::F32 ? 4 : 2;
  if (!bytes || uint64_t(*bytes) != out.size() || source.size() / each != uint64_t(k) * uint64_t(n))
    return invalidArgument("packing " + std::string(layout) + ": sizes do not fit " + std::to_string(k) +
                           " terms and " + std::to_string(n) + " columns");
  std::memset(out.data(), 0, out.size());
  auto pack = each == 4 ? packFloatPanels<4> : packFloatPanels<2>;
  int64_t termStride = isTransposed ? 1 : n, columnStride = isTransposed ? k : 1;
  int64_t parts = isGated ? 2 : 1, columnsOfEach = n / parts;
  for (int64_t part = 0; part < parts; ++part)
    pack(*format, k, part * columnsOfEach, (part + 1) * columnsOfEach, termStride, columnStride,
         source.data(), out.data() + part * format->panelBytes(k), parts);
  return Status::ok();
}

} // namespace dspark

// Weights in few bits: how one packed matrix is laid out. The same bytes serve one row, few rows and many,
// at every ISA level (docs/packed-weights.md has the pictures).
//
// A panel is 16 columns of B (16 output features), its terms (K) in blocks. A block is a header, which holds
// the scales of 16 columns, followed by steps of 32 terms. Inside a step, 4 consecutive terms of the 16
// columns make one 64-byte vector [16][4], a *quad*; a step has 8 quads, stored in as many lines of 64 bytes
// as codes have bits:
//
//   2, 4, 8 bits   the quads one after the other, 4, 2 or 1 in a line, the first in the lowest bits
//   3 bits         quads 0 .. 5 likewise, 2 in a line; what is left of the lines, 2 bits each, holds 6 and 7
//   5 bits         quads 0 .. 4, 1 in a line; 5, 6 and 7 in the 3 bits that are left of each
//   6 bits         quads 0 .. 2, 1 in a line, quad 3 in the 2 bits that are left of each; so do 4 .. 7
//
// Most quads then are an `and` away, whatever their number of bits (codePieces says where each lies). Weights
// that are floats have no header: f32 and f16 as [32][16], bf16 as [16][16][2].
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace dspark {

inline constexpr int64_t kPackedColumns = 16, kStepTerms = 32, kQuads = 8, kSuperTerms = 256;

enum class CodeKind : uint8_t {
  U2,
  U3,
  U4,
  U5,
  U6,
  U8,
  Nl4,    // from here on codes name levels (kLevels): ggml's IQ4
  Fp4,    // 4-bit floats e2m1, doubled so that they are integers
  Iq1s,   // 2 bits: eighths of -1, 0 and 1 plus 1/8
  Iq1m,   // 3 bits: the same and their negatives
  Iq2,    // 3 bits
  Iq3xxs, // 4 bits
  Iq3s,   // 4 bits: odd numbers
  F16,
  BF16,
  F32,
};

/// Lines of 64 bytes of one step, by CodeKind; as many as a code has bits.
inline constexpr int64_t kCodeLines[] = {2, 3, 4, 5, 6, 8, 4, 4, 2, 3, 3, 4, 4, 16, 16, 32};

/// Where the codes of one quad lie: bits [at, at + bits) of every byte of a line of the step. Pieces follow
/// each other from the highest bits of the code to the lowest.
struct CodePiece {
  int line, at, bits;
};
struct CodePieces {
  int count;
  CodePiece of[3];
};
constexpr CodePieces codePieces(int bits, int quad) {
  int whole = bits == 3 ? 2 : bits > 4 ? 1 : 8 / bits; // quads of one piece in a line
  if (bits == 3 && quad >= 6)
    return {2, {{quad - 6, 6, 2}, {2, quad, 1}}};
  if (bits == 5 && quad == 6)
    return {3, {{1, 5, 3}, {3, 5, 1}, {4, 5, 1}}};
  if (bits == 5 && quad >= 5)
    return {2, {{quad - 5, 5, 3}, {quad == 5 ? 3 : 4, 6, 2}}};
  if (bits == 6 && quad % 4 == 3)
    return {3, {{quad / 4 * 3 + 2, 6, 2}, {quad / 4 * 3 + 1, 6, 2}, {quad / 4 * 3, 6, 2}}};
  if (bits == 6)
    return {1, {{quad / 4 * 3 + quad % 4, 0, 6}}};
  return {1, {{quad / whole, quad % whole * bits, bits}}};
}

/// What codes of the kinds from Nl4 on name (the numbers are those of ggml's block types).
struct Levels {
  int8_t of[16];
  int zero; // makes a level an unsigned code; the format's zeroPoint takes it off again
};
inline constexpr Levels kLevels[] = {
    {{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 128},
    {{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}, 12},
    {{-7, 1, 9}, 7},
    {{-9, -7, -1, 1, 7, 9}, 9},
    {{8, 25, 43, 0, -8, -25, -43}, 43},
    {{4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62}, 62},
    {{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15}, 15},
};
constexpr bool hasLevels(CodeKind kind) { return kind >= CodeKind::Nl4 && kind < CodeKind::F16; }
/// Of a kind that has levels.
constexpr const Levels &levelsOf(CodeKind kind) { return kLevels[int(kind) - int(CodeKind::Nl4)]; }

/// How a group's scale is stored. The Super kinds have blocks of 256 terms with one f16 factor, times one
/// byte per group.
enum class ScaleKind : uint8_t {
  None, // weights that are floats
  F32,
  F16,
  BF16,
  E8M0,         // 2^(e-128); for doubled Fp4 codes
  Ue4m3,        // an unsigned f8, halved
  SuperI8,      // signed bytes
  SuperEighths, // signed bytes that count eighths of the factor
  SuperU8,      // bytes, then as many bytes of minima, to be multiplied by a second f16 factor
  SuperNibbles, // the same in one byte: the scale low, the minimum high
};

/// Whether a second f16 factor and minima follow, of a Super kind.
constexpr bool hasMinima(ScaleKind kind) { return kind >= ScaleKind::SuperU8; }

/// What a group's second number means; w is the weight, s the scale, q the code.
enum class ZeroKind : uint8_t {
  Constant, // none is stored: w = s (q - zeroPoint)
  Byte,     // w = s (q - z), z a byte
  Value,    // the same, z of the scale's type
  Offset,   // w = s q + o, o of the scale's type; for the Super kinds o = -(factor * minimum)
};

struct PackedFormat {
  CodeKind code = CodeKind::U4;
  ScaleKind scale = ScaleKind::F16;
  ZeroKind zero = ZeroKind::Constant;
  int zeroPoint = 0;  // of ZeroKind::Constant
  int64_t group = 32; // terms that share a scale: 16 or a multiple of 32; 0: all terms of a column

  /// The format that the `packed` attribute names: a block type of GGUF ("q4_0", "q6_k", "mxfp4" ...), "f16",
  /// "bf16", "f32", or int<bits>_g<group or "row">_<scale type>[_zp|_zv|_zo]: codes of 2, 3, 4, 5, 6 or 8
  /// bits with zero points 2^(bits-1), or stored ones as bytes (_zp), as values (_zv) or as offsets (_zo).
  static std::optional<PackedFormat> named(std::string_view name);

  bool isFloat() const { return scale == ScaleKind::None; }
  bool isSuper() const { return scale >= ScaleKind::SuperI8; }
  /// Scales per step.
  int scalesPerStep() const { return group == 16 ? 2 : 1; }
  /// Terms of one block.
  int64_t blockTerms(int64_t k) const;
  /// Scales of one column in a block's header.
  int64_t groupsPerBlock(int64_t k) const;
  int64_t headerBytes(int64_t k) const;
  int64_t stepBytes() const;
  int64_t blockBytes(int64_t k) const { return headerBytes(k) + blockTerms(k) / kStepTerms * stepBytes(); }
  int64_t blocks(int64_t k) const;
  /// One panel of a matrix with k terms, 0 < k < 2^40.
  int64_t panelBytes(int64_t k) const { return blocks(k) * blockBytes(k); }
  /// The whole matrix; nullopt if a size is negative or the product exceeds 2^62.
  std::optional<int64_t> bytes(int64_t k, int64_t n) const;
};

/// Bytes per stored scale or value of that kind; 0 for None and the Super kinds.
int scaleBytes(ScaleKind kind);

} // namespace dspark

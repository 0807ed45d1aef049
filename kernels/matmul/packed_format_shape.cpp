#include "kernels/matmul/packed_format.h"
#include <algorithm>
#include <charconv>

namespace dspark {
namespace {

struct NamedFormat {
  std::string_view name;
  PackedFormat format;
};

using enum CodeKind;
using enum ZeroKind;
constexpr PackedFormat levels(CodeKind code, ScaleKind scale, int64_t group) {
  return {code, scale, Constant, levelsOf(code).zero, group};
}
constexpr NamedFormat kNamed[] = {
    {"q4_0", {U4, ScaleKind::F16, Constant, 8, 32}},
    {"q4_1", {U4, ScaleKind::F16, Offset, 0, 32}},
    {"q5_0", {U5, ScaleKind::F16, Constant, 16, 32}},
    {"q5_1", {U5, ScaleKind::F16, Offset, 0, 32}},
    {"q8_0", {U8, ScaleKind::F16, Constant, 128, 32}},
    {"q8_k", {U8, ScaleKind::F32, Constant, 128, 256}},
    {"q2_k", {U2, ScaleKind::SuperNibbles, Offset, 0, 16}},
    {"q3_k", {U3, ScaleKind::SuperI8, Constant, 4, 16}},
    {"q4_k", {U4, ScaleKind::SuperU8, Offset, 0, 32}},
    {"q5_k", {U5, ScaleKind::SuperU8, Offset, 0, 32}},
    {"q6_k", {U6, ScaleKind::SuperI8, Constant, 32, 16}},
    {"iq4_nl", levels(Nl4, ScaleKind::F16, 32)},
    {"iq4_xs", levels(Nl4, ScaleKind::SuperI8, 32)},
    {"iq1_s", levels(Iq1s, ScaleKind::SuperEighths, 32)},
    {"iq1_m", levels(Iq1m, ScaleKind::SuperEighths, 16)},
    {"iq2_xxs", levels(Iq2, ScaleKind::SuperEighths, 32)},
    {"iq2_xs", levels(Iq2, ScaleKind::SuperEighths, 16)},
    {"iq2_s", levels(Iq2, ScaleKind::SuperEighths, 16)},
    {"iq3_xxs", levels(Iq3xxs, ScaleKind::SuperEighths, 32)},
    {"iq3_s", levels(Iq3s, ScaleKind::SuperI8, 32)},
    {"q1_0", {U2, ScaleKind::F16, Constant, 1, 128}},
    {"q2_0", {U2, ScaleKind::F16, Constant, 1, 64}},
    {"tq1_0", {U2, ScaleKind::F16, Constant, 1, 256}},
    {"tq2_0", {U2, ScaleKind::F16, Constant, 1, 256}},
    {"mxfp4", levels(Fp4, ScaleKind::E8M0, 32)},
    {"nvfp4", levels(Fp4, ScaleKind::Ue4m3, 16)},
    {"f16", {CodeKind::F16, ScaleKind::None, Constant, 0, 32}},
    {"bf16", {CodeKind::BF16, ScaleKind::None, Constant, 0, 32}},
    {"f32", {CodeKind::F32, ScaleKind::None, Constant, 0, 32}},
};

bool eat(std::string_view &text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}
bool eatNumber(std::string_view &text, int64_t &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return false;
  text.remove_prefix(size_t(end - text.data()));
  return true;
}

bool eatCode(std::string_view &text, PackedFormat &format) {
  int64_t bits;
  if (!eat(text, "int") || !eatNumber(text, bits))
    return false;
  constexpr CodeKind kKinds[] = {U2, U2, U2, U3, U4, U5, U6, U6, U8};
  if (bits < 2 || bits > 8 || bits == 7)
    return false;
  format.code = kKinds[bits];
  format.zeroPoint = 1 << (bits - 1);
  return true;
}
bool eatGroup(std::string_view &text, PackedFormat &format) {
  if (!eat(text, "_g"))
    return false;
  if (eat(text, "row")) {
    format.group = 0;
    return true;
  }
  return eatNumber(text, format.group) && format.group <= (1 << 20) &&
         (format.group == 16 || (format.group > 0 && format.group % kStepTerms == 0));
}
bool eatScale(std::string_view &text, PackedFormat &format) {
  format.scale = eat(text, "_f32")    ? ScaleKind::F32
                 : eat(text, "_f16")  ? ScaleKind::F16
                 : eat(text, "_bf16") ? ScaleKind::BF16
                                      : ScaleKind::None;
  return format.scale != ScaleKind::None;
}

} // namespace

std::optional<PackedFormat> PackedFormat::named(std::string_view name) {
  for (const NamedFormat &known : kNamed)
    if (known.name == name)
      return known.format;
  PackedFormat format;
  if (!eatCode(name, format) || !eatGroup(name, format) || !eatScale(name, format))
    return std::nullopt;
  if (name == "_zp" || name == "_zv" || name == "_zo") {
    format.zero = name == "_zp" ? Byte : name == "_zv" ? Value : Offset;
    format.zeroPoint = 0;
  } else if (!name.empty()) {
    return std::nullopt;
  }
  return format;
}

int scaleBytes(ScaleKind kind) {
  switch (kind) {
  case ScaleKind::F32:
    return 4;
  case ScaleKind::F16:
  case ScaleKind::BF16:
    return 2;
  case ScaleKind::E8M0:
  case ScaleKind::Ue4m3:
    return 1;
  default:
    return 0;
  }
}

int64_t PackedFormat::blockTerms(int64_t k) const {
  if (isSuper())
    return kSuperTerms;
  return group == 0 ? (k + kStepTerms - 1) / kStepTerms * kStepTerms : std::max(group, kStepTerms);
}

int64_t PackedFormat::groupsPerBlock(int64_t k) const { return group == 0 ? 1 : blockTerms(k) / group; }

int64_t PackedFormat::headerBytes(int64_t k) const {
  int64_t groups = groupsPerBlock(k);
  switch (scale) {
  case ScaleKind::None:
    return 0;
  case ScaleKind::SuperI8:
  case ScaleKind::SuperEighths:
    return kPackedColumns * (2 + groups);
  case ScaleKind::SuperU8:
    return kPackedColumns * (4 + 2 * groups);
  case ScaleKind::SuperNibbles:
    return kPackedColumns * (4 + groups);
  default:
    int64_t zeroBytes = zero == Constant ? 0 : zero == Byte ? 1 : scaleBytes(scale);
    return kPackedColumns * groups * (scaleBytes(scale) + zeroBytes);
  }
}

int64_t PackedFormat::stepBytes() const { return kCodeLines[int(code)] * 64; }

int64_t PackedFormat::blocks(int64_t k) const {
  int64_t terms = blockTerms(k);
  return terms == 0 ? 0 : (k + terms - 1) / terms;
}

std::optional<int64_t> PackedFormat::bytes(int64_t k, int64_t n) const {
  if (k < 0 || n < 0 || k >= int64_t(1) << 40)
    return std::nullopt;
  int64_t panels = n / kPackedColumns + (n % kPackedColumns != 0), all;
  if (__builtin_mul_overflow(panels, panelBytes(k), &all) || all > int64_t(1) << 62)
    return std::nullopt;
  return all;
}

} // namespace dspark

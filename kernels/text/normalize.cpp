// string_normalizer: drops stop words, then changes case. Case is that of Unicode's simple mappings, by the C
// library's C.UTF-8 locale (only ASCII where a system lacks it); bytes that are no UTF-8 stay as they are.
#include "kernels/text/text.h"
#include <algorithm>
#include <clocale>
#include <cwctype>

namespace dspark::text {
namespace {

enum class Case { Keep, Lower, Upper };

locale_t utf8Locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

// The code point at the front of `text` and its length in bytes; 0 bytes where it is malformed.
int decode(std::string_view text, uint32_t &point) {
  auto byte = [&](size_t i) { return uint32_t(uint8_t(text[i])); };
  uint32_t first = byte(0);
  int length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0 || size_t(length) > text.size())
    return 0;
  point = length == 1 ? first : first & (0x7fu >> length);
  for (int i = 1; i < length; ++i) {
    if (byte(size_t(i)) >> 6 != 2)
      return 0;
    point = point << 6 | (byte(size_t(i)) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return point >= kLeast[length] && point <= 0x10ffff ? length : 0;
}

int encode(uint32_t point, char *to) {
  if (point < 0x80) {
    to[0] = char(point);
    return 1;
  }
  int length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (int i = length - 1; i > 0; --i, point >>= 6)
    to[i] = char(0x80 | (point & 0x3f));
  to[0] = char((0xf00 >> length & 0xff) | point);
  return length;
}

uint32_t mapped(uint32_t point, Case form) {
  if (point < 0x80 || !utf8Locale()) {
    bool isLower = point >= 'a' && point <= 'z', isUpper = point >= 'A' && point <= 'Z';
    return form == Case::Upper && isLower ? point - 32 : form == Case::Lower && isUpper ? point + 32 : point;
  }
  return uint32_t(form == Case::Upper ? towupper_l(wint_t(point), utf8Locale())
                                      : towlower_l(wint_t(point), utf8Locale()));
}

// Calls f(bytes, length) for each character of `text` in the given case.
template <typename F> void forMapped(std::string_view text, Case form, F f) {
  while (!text.empty()) {
    uint32_t point = 0;
    char bytes[4] = {text[0]};
    int length = decode(text, point);
    f(bytes, length == 0 ? 1 : encode(mapped(point, form), bytes));
    text.remove_prefix(size_t(std::max(length, 1)));
  }
}

StringElement withCase(StringRun &run, std::string_view text, Case form) {
  if (form == Case::Keep)
    return text;
  size_t size = 0;
  forMapped(text, form, [&](const char *, int length) { size += size_t(length); });
  char *to = size > 0 ? run.take(size) : nullptr;
  if (!to)
    return {};
  size_t at = 0;
  forMapped(text, form, [&](const char *bytes, int length) {
    std::copy(bytes, bytes + length, to + at);
    at += size_t(length);
  });
  return std::string_view(to, size);
}

bool isSame(std::string_view a, std::string_view b, bool isExact) {
  if (isExact)
    return a == b;
  while (!a.empty() && !b.empty()) {
    uint32_t x = 0, y = 0;
    int n = decode(a, x), m = decode(b, y);
    bool isEqual = n == 0 || m == 0 ? a[0] == b[0] : mapped(x, Case::Lower) == mapped(y, Case::Lower);
    if (!isEqual)
      return false;
    a.remove_prefix(size_t(std::max(n, 1)));
    b.remove_prefix(size_t(std::max(m, 1)));
  }
  return a.empty() && b.empty();
}

} // namespace

void runNormalize(const KernelCall &call, const KernelWork &, const KernelPart &) {
  std::string_view action = call.attrs.s("case_change_action", "NONE");
  Case form = action == "LOWER" ? Case::Lower : action == "UPPER" ? Case::Upper : Case::Keep;
  bool isExact = call.attrs.i("is_case_sensitive", 0) != 0;
  auto *x = call.in[0].as<const StringElement>();
  auto *stop = call.input(1).as<const StringElement>();
  int64_t stops = call.has(1) ? call.in[1].elements() : 0, kept = 0;
  auto *y = call.out[0].as<StringElement>();
  for (int64_t i = 0, n = call.in[0].elements(); i < n; ++i)
    if (std::none_of(stop, stop + stops, [&](std::string_view word) { return isSame(x[i], word, isExact); }))
      y[kept++] = withCase(StringRun::current(), x[i], form);
  if (kept == 0)
    y[kept++] = StringElement();
  int last = call.out[0].rank - 1;
  for (int i = 0; i < last; ++i)
    call.outDims[0][i] = 1;
  call.outDims[0][last] = kept;
}

} // namespace dspark::text

// cast from and to strings. Numbers are written in the shortest form that reads back as the same number
// ("0.1", "1e+20"), and read in plain or scientific notation; NaN, INF and -INF stand for themselves, as ONNX
// has it. Bools are 0 and 1.
#include "kernels/common/element.h"
#include "kernels/text/text.h"
#include <algorithm>
#include <charconv>

namespace dspark::text {
namespace {

constexpr std::string_view kWhite = " \t\n\r";

bool isSameAscii(std::string_view text, std::string_view upper) {
  return std::equal(text.begin(), text.end(), upper.begin(), upper.end(),
                    [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 32 : a) == b; });
}

// Numbers beyond double's range become infinite or 0, those in between what is nearest.
bool parseReal(std::string_view text, double &value) {
  bool isNegative = text.starts_with('-');
  std::string_view digits = text.substr(isNegative || text.starts_with('+') ? 1 : 0);
  if (isSameAscii(digits, "NAN") || isSameAscii(digits, "INF") || isSameAscii(digits, "INFINITY")) {
    value = isSameAscii(digits, "NAN") ? __builtin_nan("") : __builtin_inf();
  } else {
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.starts_with('-') || end != digits.data() + digits.size() ||
        error == std::errc::invalid_argument)
      return false;
    if (error == std::errc::result_out_of_range)
      value = digits.find("e-") != digits.npos || digits.find("E-") != digits.npos ? 0 : __builtin_inf();
  }
  value = isNegative ? -value : value;
  return true;
}

template <typename T> bool parse(std::string_view text, T &value) {
  size_t begin = text.find_first_not_of(kWhite);
  text =
      begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kWhite) + 1 - begin);
  double real = 0;
  if constexpr (std::is_integral_v<T>) {
    std::string_view digits = text.substr(text.starts_with('+') ? 1 : 0);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && end == digits.data() + digits.size() && !digits.empty())
      return true;
    bool isNumber = parseReal(text, real);
    value = saturate<T>(real); // "1e3", "2.5": cut off, as a cast from a float does
    return isNumber;
  } else {
    bool isNumber = parseReal(text, real);
    value = fromReal<T>(real);
    return isNumber;
  }
}

template <typename T> StringElement format(StringRun &run, T value) {
  char text[40];
  std::to_chars_result written{};
  if constexpr (std::is_integral_v<T>) {
    written = std::to_chars(text, text + sizeof text, value);
  } else {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    Real real = value;
    if (real != real)
      return std::string_view("NaN");
    if (std::abs(real) == std::numeric_limits<Real>::infinity())
      return std::string_view(real > 0 ? "INF" : "-INF");
    written = std::to_chars(text, text + sizeof text, real);
  }
  return join(run, std::string_view(text, size_t(written.ptr - text)), {});
}

} // namespace

void runToText(const KernelCall &call, const KernelWork &, const KernelPart &) {
  auto *y = call.out[0].as<StringElement>();
  int64_t n = call.in[0].elements();
  if (call.in[0].type == DType::String)
    std::copy_n(call.in[0].as<const StringElement>(), n, y);
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    for (int64_t i = 0; i < n; ++i)
      y[i] = format(StringRun::current(), call.in[0].as<const T>()[i]);
  });
}

void runFromText(const KernelCall &call, const KernelWork &, const KernelPart &) {
  auto *x = call.in[0].as<const StringElement>();
  dispatchNumber(call.out[0].type, [&]<typename T>() {
    for (int64_t i = 0, n = call.in[0].elements(); i < n; ++i) {
      T value{};
      if (!parse(x[i], value))
        StringRun::current().refuse("'" + std::string(std::string_view(x[i]).substr(0, 80)) +
                                    "' is no number");
      call.out[0].as<T>()[i] = value;
    }
  });
  if (call.out[0].type == DType::Bool)
    for (int64_t i = 0, n = call.in[0].elements(); i < n; ++i)
      call.out[0].as<uint8_t>()[i] = call.out[0].as<uint8_t>()[i] != 0;
}

} // namespace dspark::text

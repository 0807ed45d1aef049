// The text form of dim expressions: sum := product {("+"|"-") product}; product := atom {"*" atom};
// atom := number | symbol | "-" atom | "(" sum ")" | function "(" sum "," sum ")".
#include "kernels/common/dim.h"
#include <cctype>
#include <charconv>

namespace dspark {
namespace {

constexpr int kMaxDepth = 100;

class Parser {
public:
  Parser(std::string_view text, DimTable &table) : text(text), table(table) {}

  std::optional<Dim> parse() {
    std::optional<Dim> dim = sum();
    skipSpace();
    return dim && at == text.size() && !dim->isUnknown() ? dim : std::nullopt;
  }

private:
  void skipSpace() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(char c) {
    skipSpace();
    if (at < text.size() && text[at] == c) {
      ++at;
      return true;
    }
    return false;
  }

  std::optional<Dim> sum() {
    if (++depth > kMaxDepth)
      return std::nullopt;
    std::optional<Dim> left = product();
    while (left) {
      bool minus = false;
      if (!take('+')) {
        if (!take('-'))
          break;
        minus = true;
      }
      std::optional<Dim> right = product();
      if (!right)
        return std::nullopt;
      left = minus ? *left - *right : *left + *right;
    }
    --depth;
    return left;
  }

  std::optional<Dim> product() {
    std::optional<Dim> left = atom();
    while (left && take('*')) {
      std::optional<Dim> right = atom();
      if (!right)
        return std::nullopt;
      left = *left * *right;
    }
    return left;
  }

  std::optional<Dim> atom() {
    if (take('-')) {
      if (++depth > kMaxDepth)
        return std::nullopt;
      std::optional<Dim> operand = atom();
      --depth;
      return operand ? std::optional(*operand * Dim(-1)) : std::nullopt;
    }
    if (take('(')) {
      std::optional<Dim> inner = sum();
      return inner && take(')') ? inner : std::nullopt;
    }
    skipSpace();
    if (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      int64_t number = 0;
      auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (error != std::errc())
        return std::nullopt;
      at = size_t(end - text.data());
      return Dim(number);
    }
    size_t begin = at;
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '.'))
      ++at;
    if (begin == at)
      return std::nullopt;
    std::string_view name = text.substr(begin, at - begin);
    return at < text.size() && text[at] == '(' ? call(name) : table.symbol(name);
  }

  std::optional<Dim> call(std::string_view name) {
    take('(');
    std::optional<Dim> a = sum();
    if (!a || !take(','))
      return std::nullopt;
    std::optional<Dim> b = sum();
    if (!b || !take(')'))
      return std::nullopt;
    if (name == "floordiv")
      return floorDiv(*a, *b);
    if (name == "ceildiv")
      return ceilDiv(*a, *b);
    if (name == "mod")
      return mod(*a, *b);
    if (name == "min")
      return min(*a, *b);
    if (name == "max")
      return max(*a, *b);
    if (name == "broadcast")
      return broadcast(*a, *b);
    return std::nullopt;
  }

  std::string_view text;
  DimTable &table;
  size_t at = 0;
  int depth = 0;
};

} // namespace

std::optional<Dim> DimTable::parse(std::string_view text) { return Parser(text, *this).parse(); }

} // namespace dspark

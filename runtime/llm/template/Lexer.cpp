#include "runtime/llm/template/Lexer.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>
#include <cstdint>

namespace dspark::llm::tmpl {
namespace {

bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || uint8_t(c) >= 0x80;
}

constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*",
                                           "/",  "%",  "~",  "|",  "(",  ")",  "[", "]", "{",
                                           "}",  ",",  ".",  ":",  "=",  "<",  ">", ";"};

class Scanner {
public:
  explicit Scanner(std::string_view source) : source(source) {}

  std::vector<LexToken> run() {
    while (at < source.size())
      if (!text())
        break;
    add(TokenType::End, "");
    return std::move(tokens);
  }

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw TemplateError{"line " + std::to_string(line) + ": " + what};
  }
  void add(TokenType type, std::string text) { tokens.push_back({type, std::move(text), line}); }
  bool starts(std::string_view mark) const { return source.substr(at).starts_with(mark); }

  void advance(size_t count) {
    line += size_t(std::count(source.begin() + int64_t(at), source.begin() + int64_t(at + count), '\n'));
    at += count;
  }

  // Text up to the next tag, then the tag. False at the end of the source.
  bool text() {
    size_t tag = at;
    while (true) {
      tag = source.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source.size()) {
        addText(source.substr(at), false, false);
        return false;
      }
      if (const char kind = source[tag + 1]; kind == '{' || kind == '%' || kind == '#')
        break;
      ++tag;
    }
    const char kind = source[tag + 1];
    const char mark = tag + 2 < source.size() ? source[tag + 2] : ' ';
    addText(source.substr(at, tag - at), mark == '-', kind != '{' && mark != '+');
    advance(tag + 2 - at);
    if (mark == '-' || mark == '+')
      advance(1);
    trimNewline = trimSpace = false;
    if (kind == '#')
      comment();
    else if (kind == '%' && !raw())
      inside(TokenType::BlockBegin, TokenType::BlockEnd, "%}");
    else if (kind == '{')
      inside(TokenType::PrintBegin, TokenType::PrintEnd, "}}");
    return true;
  }

  // `stripAll`: the tag behind it has a minus. `stripIndent`: it is a block at which lstrip_blocks applies.
  void addText(std::string_view body, bool stripAll, bool stripIndent) {
    const size_t whole = body.size();
    if (trimSpace)
      while (!body.empty() && isSpace(body.front()))
        body.remove_prefix(1);
    else if (trimNewline && body.starts_with("\n"))
      body.remove_prefix(1);
    if (stripAll) {
      while (!body.empty() && isSpace(body.back()))
        body.remove_suffix(1);
    } else if (stripIndent) {
      const size_t lineStart = body.find_last_not_of(" \t");
      const bool ownLine =
          lineStart == std::string_view::npos ? atLineStart(whole - body.size()) : body[lineStart] == '\n';
      if (ownLine)
        body = body.substr(0, lineStart == std::string_view::npos ? 0 : lineStart + 1);
    }
    if (!body.empty())
      add(TokenType::Text, std::string(body));
    if (whole == source.size() - at)
      advance(whole);
  }

  // Whether the text that starts at `at` plus `skipped` starts a line.
  bool atLineStart(size_t skipped) const {
    const size_t begin = at + skipped;
    return begin == 0 || source[begin - 1] == '\n';
  }

  // Behind a tag's end mark: what the following text loses.
  void closed(bool minus, bool plus, bool block) {
    trimSpace = minus;
    trimNewline = block && !plus;
  }

  void comment() {
    const size_t end = source.find("#}", at);
    if (end == std::string_view::npos)
      fail("a comment is not closed");
    const char mark = end > at ? source[end - 1] : ' ';
    advance(end + 2 - at);
    closed(mark == '-', mark == '+', true);
  }

  // {% raw %} ... {% endraw %} is text; `at` is behind "{%".
  bool raw() {
    size_t p = source.find_first_not_of(" \t\r\n", at);
    if (p == std::string_view::npos || !source.substr(p).starts_with("raw"))
      return false;
    const size_t close = source.find("%}", p),
                 end = close == std::string_view::npos ? close : source.find("endraw", close);
    if (p + 3 < source.size() && isNameStart(source[p + 3]))
      return false;
    if (end == std::string_view::npos)
      fail("a raw block is not closed");
    const size_t open = source.rfind("{%", end), after = source.find("%}", end);
    if (open == std::string_view::npos || open < close || after == std::string_view::npos)
      fail("a raw block is not closed");
    add(TokenType::Text, std::string(source.substr(close + 2, open - close - 2)));
    advance(after + 2 - at);
    closed(source[after - 1] == '-', false, true);
    return true;
  }

  void inside(TokenType begin, TokenType end, std::string_view mark) {
    add(begin, "");
    int depth = 0; // of brackets: a "}}" that closes two dicts ends no tag
    while (true) {
      while (at < source.size() && isSpace(source[at]))
        advance(1);
      if (at >= source.size())
        fail("a tag is not closed");
      const bool marked = source[at] == '-' || source[at] == '+';
      if (depth == 0 && (starts(mark) || (marked && source.substr(at + 1).starts_with(mark)))) {
        const char sign = marked ? source[at] : ' ';
        advance(mark.size() + (marked ? 1 : 0));
        add(end, "");
        closed(sign == '-', sign == '+', end == TokenType::BlockEnd);
        return;
      }
      token();
      if (const LexToken &last = tokens.back(); last.type == TokenType::Operator)
        depth += last.text == "{" || last.text == "[" || last.text == "("   ? 1
                 : last.text == "}" || last.text == "]" || last.text == ")" ? -1
                                                                            : 0;
    }
  }

  void token() {
    const char c = source[at];
    if (c == '"' || c == '\'')
      return string(c);
    if (isDigit(c))
      return number();
    if (isNameStart(c)) {
      size_t end = at;
      while (end < source.size() && (isNameStart(source[end]) || isDigit(source[end])))
        ++end;
      add(TokenType::Name, std::string(source.substr(at, end - at)));
      return advance(end - at);
    }
    for (std::string_view op : kOperators)
      if (starts(op)) {
        add(TokenType::Operator, std::string(op));
        return advance(op.size());
      }
    fail(std::string("\"") + c + "\" starts no token");
  }

  void number() {
    size_t end = at;
    const auto digits = [&] {
      while (end < source.size() && (isDigit(source[end]) || source[end] == '_'))
        ++end;
    };
    digits();
    bool real = false;
    if (end + 1 < source.size() && source[end] == '.' && isDigit(source[end + 1])) {
      real = true;
      ++end;
      digits();
    }
    if (end + 1 < source.size() && (source[end] == 'e' || source[end] == 'E')) {
      const size_t exponent = end + 1 + (source[end + 1] == '-' || source[end + 1] == '+');
      if (exponent < source.size() && isDigit(source[exponent])) {
        real = true;
        end = exponent;
        digits();
      }
    }
    std::string text(source.substr(at, end - at));
    std::erase(text, '_');
    add(real ? TokenType::Float : TokenType::Integer, text);
    advance(end - at);
  }

  void string(char quote) {
    std::string out;
    size_t p = at + 1;
    while (true) {
      if (p >= source.size())
        fail("a string is not closed");
      const char c = source[p++];
      if (c == quote)
        break;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (p >= source.size())
        fail("a string is not closed");
      escape(source[p++], p, out);
    }
    add(TokenType::String, std::move(out));
    advance(p - at);
  }

  // Python's escapes; an unknown one stays as it is. `p` is behind the letter.
  void escape(char letter, size_t &p, std::string &out) const {
    constexpr std::string_view letters = "abfnrtv0\\'\"", values{"\a\b\f\n\r\t\v\0\\'\"", 11};
    if (const size_t i = letters.find(letter); i != std::string_view::npos) {
      out += values[i];
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
      char32_t value = 0;
      for (size_t i = 0; i < digits; ++i, ++p) {
        const char c = p < source.size() ? source[p] : ' ';
        const int digit = isDigit(c)             ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
          fail("a hexadecimal escape has too few digits");
        value = value << 4 | char32_t(digit);
      }
      appendUtf8(out, value > 0x10FFFF || (value >= 0xD800 && value < 0xE000) ? 0xFFFD : value);
    } else if (letter != '\n') {
      out.append(1, '\\').append(1, letter);
    }
  }

  std::string_view source;
  size_t at = 0, line = 1;
  bool trimNewline = false, trimSpace = false;
  std::vector<LexToken> tokens;
};

} // namespace

std::vector<LexToken> tokenize(std::string_view source) {
  if (source.ends_with("\n")) // Jinja drops one
    source.remove_suffix(1);
  return Scanner(source).run();
}

} // namespace dspark::llm::tmpl

// The tokens of a template as a parser takes them, with the sentences for what it did not expect.
#pragma once
#include "runtime/llm/template/Lexer.h"
#include <algorithm>

namespace dspark::llm::tmpl {

class TokenStream {
public:
  explicit TokenStream(std::string_view source) : tokens(tokenize(source)) {}

  const LexToken &peek(size_t ahead = 0) const { return tokens[std::min(next + ahead, tokens.size() - 1)]; }
  bool at(TokenType type) const { return peek().type == type; }
  bool at(TokenType type, std::string_view text) const { return at(type) && peek().text == text; }
  bool atOperator(std::string_view text) const { return at(TokenType::Operator, text); }
  bool atName(std::string_view text) const { return at(TokenType::Name, text); }
  LexToken take() { return tokens[next < tokens.size() - 1 ? next++ : next]; }

  bool accept(TokenType type, std::string_view text) {
    if (!at(type, text))
      return false;
    take();
    return true;
  }
  bool acceptOperator(std::string_view text) { return accept(TokenType::Operator, text); }
  bool acceptName(std::string_view text) { return accept(TokenType::Name, text); }

  [[noreturn]] void fail(const std::string &expected) const {
    const LexToken &token = peek();
    constexpr const char *names[] = {"text",     "\"{%\"", "\"%}\"", "\"{{\"", "\"}}\"", "",
                                     "a string", "",       "",       "",       "the end"};
    const char *name = names[size_t(token.type)];
    throw TemplateError{"line " + std::to_string(token.line) + ": expected " + expected + ", found " +
                        (*name ? std::string(name) : "\"" + token.text + "\"")};
  }
  void expectOperator(std::string_view text) {
    if (!acceptOperator(text))
      fail("\"" + std::string(text) + "\"");
  }
  std::string expectName() {
    if (!at(TokenType::Name))
      fail("a name");
    return take().text;
  }
  void expectBlockEnd() {
    if (!at(TokenType::BlockEnd))
      fail("\"%}\"");
    take();
  }

  size_t line() const { return peek().line; }

  /// One level of nesting as long as it lives; throws beyond the deepest.
  struct Nested {
    explicit Nested(TokenStream &stream) : stream(stream) {
      constexpr int kDeepest = 200;
      if (++stream.depth > kDeepest)
        throw TemplateError{"line " + std::to_string(stream.line()) + ": nested more than " +
                            std::to_string(kDeepest) + " deep"};
    }
    ~Nested() { --stream.depth; }
    Nested(const Nested &) = delete;
    TokenStream &stream;
  };

private:
  std::vector<LexToken> tokens;
  size_t next = 0;
  int depth = 0;
};

} // namespace dspark::llm::tmpl

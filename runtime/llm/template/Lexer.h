// Template source to tokens. Between tags there is text; inside a tag, the tokens of expressions. White space
// is trimmed as Jinja does with trim_blocks and lstrip_blocks on, which is how chat templates are written.
#pragma once
#include "runtime/llm/template/Value.h"

namespace dspark::llm::tmpl {

enum class TokenType {
  Text,
  BlockBegin,
  BlockEnd,
  PrintBegin,
  PrintEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End
};

struct LexToken {
  TokenType type;
  std::string text; // strings without quotes and escapes
  size_t line;
};

/// Throws TemplateError with the line: an unclosed tag or string, a character that starts no token.
std::vector<LexToken> tokenize(std::string_view source);

} // namespace dspark::llm::tmpl

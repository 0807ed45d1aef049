// The operands of expressions: literals, displays, and what stands behind a value: attributes, subscripts,
// calls.
#include "runtime/llm/template/ExpressionParser.h"
#include <charconv>

namespace dspark::llm::tmpl {

ExpressionPtr ExpressionParser::parsePrimary() {
  if (stream.at(TokenType::Name))
    return parseNameOrConstant();
  if (stream.at(TokenType::String)) {
    std::string text = stream.take().text;
    while (stream.at(TokenType::String))
      text += stream.take().text;
    return std::make_unique<Literal>(Value(std::move(text)));
  }
  if (stream.at(TokenType::Integer) || stream.at(TokenType::Float))
    return parseNumber();
  if (stream.acceptOperator("("))
    return parseParenthesis();
  if (stream.acceptOperator("["))
    return parseList();
  if (stream.acceptOperator("{"))
    return parseDict();
  stream.fail("an expression");
}

ExpressionPtr ExpressionParser::parseNameOrConstant() {
  const std::string name = stream.take().text;
  if (name == "true" || name == "True" || name == "false" || name == "False")
    return std::make_unique<Literal>(Value(name[0] == 't' || name[0] == 'T'));
  if (name == "none" || name == "None")
    return std::make_unique<Literal>(Value());
  auto node = make<Name>(name);
  return node;
}

ExpressionPtr ExpressionParser::parseNumber() {
  const LexToken token = stream.take();
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (token.type == TokenType::Float) {
    double value = 0;
    std::from_chars(begin, end, value);
    return std::make_unique<Literal>(Value(value));
  }
  int64_t value = 0;
  if (std::from_chars(begin, end, value).ec != std::errc())
    throw TemplateError{"line " + std::to_string(token.line) + ": the number " + token.text +
                        " has more than 64 bits"};
  return std::make_unique<Literal>(Value(value));
}

ExpressionPtr ExpressionParser::parseParenthesis() {
  if (stream.acceptOperator(")")) {
    auto empty = make<Sequence>();
    empty->tuple = true;
    return empty;
  }
  ExpressionPtr value = parseTuple();
  stream.expectOperator(")");
  return value;
}

ExpressionPtr ExpressionParser::parseList() {
  auto list = make<Sequence>();
  while (!stream.acceptOperator("]")) {
    list->elements.push_back(parseExpression());
    if (!stream.atOperator("]"))
      stream.expectOperator(",");
  }
  return list;
}

ExpressionPtr ExpressionParser::parseDict() {
  auto dict = make<DictDisplay>();
  while (!stream.acceptOperator("}")) {
    ExpressionPtr key = parseExpression();
    stream.expectOperator(":");
    ExpressionPtr value = parseExpression();
    dict->entries.emplace_back(std::move(key), std::move(value));
    if (!stream.atOperator("}"))
      stream.expectOperator(",");
  }
  return dict;
}

ExpressionPtr ExpressionParser::parsePostfix(ExpressionPtr value) {
  while (true) {
    if (stream.acceptOperator(".")) {
      auto node = make<Attribute>();
      node->object = std::move(value);
      if (!stream.at(TokenType::Integer)) {
        node->name = stream.expectName();
        value = std::move(node);
        continue;
      }
      auto element = make<Subscript>(); // a.0 is a[0]
      element->object = std::move(node->object);
      element->key = parseNumber();
      value = std::move(element);
    } else if (stream.acceptOperator("[")) {
      value = parseSubscript(std::move(value));
    } else if (stream.atOperator("(")) {
      value = parseCall(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parseSubscript(ExpressionPtr object) {
  ExpressionPtr parts[3];
  size_t count = 0;
  bool slice = false;
  if (!stream.atOperator(":"))
    parts[0] = parseTuple();
  while (stream.acceptOperator(":")) {
    slice = true;
    if (++count > 2)
      stream.fail("\"]\"");
    if (!stream.atOperator(":") && !stream.atOperator("]"))
      parts[count] = parseExpression();
  }
  stream.expectOperator("]");
  if (!slice) {
    auto node = make<Subscript>();
    node->object = std::move(object);
    node->key = std::move(parts[0]);
    return node;
  }
  auto node = make<Slice>();
  node->object = std::move(object);
  node->begin = std::move(parts[0]);
  node->end = std::move(parts[1]);
  node->step = std::move(parts[2]);
  return node;
}

ExpressionPtr ExpressionParser::parseCall(ExpressionPtr callee) {
  auto node = make<CallExpression>();
  node->callee = std::move(callee);
  node->arguments = parseArguments();
  return node;
}

ArgumentList ExpressionParser::parseArguments() {
  ArgumentList arguments;
  stream.expectOperator("(");
  while (!stream.acceptOperator(")")) {
    if (stream.acceptOperator("**"))
      arguments.unpackNamed = parseExpression();
    else if (stream.acceptOperator("*"))
      arguments.unpackPositional = parseExpression();
    else if (stream.at(TokenType::Name) && stream.peek(1).type == TokenType::Operator &&
             stream.peek(1).text == "=") {
      std::string name = stream.take().text;
      stream.take();
      arguments.named.emplace_back(std::move(name), parseExpression());
    } else {
      arguments.positional.push_back(parseExpression());
    }
    if (!stream.atOperator(")"))
      stream.expectOperator(",");
  }
  return arguments;
}

} // namespace dspark::llm::tmpl

#include "runtime/llm/template/ExpressionParser.h"

namespace dspark::llm::tmpl {

ExpressionPtr ExpressionParser::parseTuple() {
  return parseTupleOf([this] { return parseExpression(); });
}

ExpressionPtr ExpressionParser::parseTupleUnconditional() {
  return parseTupleOf([this] { return parseOr(); });
}

template <typename ParseElement> ExpressionPtr ExpressionParser::parseTupleOf(ParseElement parseElement) {
  ExpressionPtr first = parseElement();
  if (!stream.atOperator(","))
    return first;
  auto tuple = make<Sequence>();
  tuple->tuple = true;
  tuple->elements.push_back(std::move(first));
  while (stream.acceptOperator(","))
    if (!stream.at(TokenType::BlockEnd) && !stream.at(TokenType::PrintEnd) && !stream.atOperator(")"))
      tuple->elements.push_back(parseElement());
  return tuple;
}

ExpressionPtr ExpressionParser::parseExpression() {
  const TokenStream::Nested nested(stream);
  ExpressionPtr value = parseOr();
  while (stream.acceptName("if")) {
    auto node = make<Conditional>();
    node->then = std::move(value);
    node->condition = parseOr();
    if (stream.acceptName("else"))
      node->otherwise = parseExpression();
    value = std::move(node);
  }
  return value;
}

ExpressionPtr ExpressionParser::parseOr() {
  return parseLogic("or", [this] { return parseLogic("and", [this] { return parseNot(); }); });
}

template <typename ParseOperand>
ExpressionPtr ExpressionParser::parseLogic(std::string_view word, ParseOperand parseOperand) {
  ExpressionPtr left = parseOperand();
  while (stream.acceptName(word)) {
    auto node = make<Logic>();
    node->isAnd = word == "and";
    node->left = std::move(left);
    node->right = parseOperand();
    left = std::move(node);
  }
  return left;
}

ExpressionPtr ExpressionParser::parseNot() {
  const TokenStream::Nested nested(stream);
  if (!stream.acceptName("not"))
    return parseCompare();
  auto node = make<Unary>();
  node->op = "not";
  node->operand = parseNot();
  return node;
}

ExpressionPtr ExpressionParser::parseCompare() {
  ExpressionPtr first = parseSum();
  std::vector<std::pair<std::string, ExpressionPtr>> rest;
  while (true) {
    std::string op;
    for (std::string_view candidate : {"==", "!=", "<=", ">=", "<", ">"})
      if (op.empty() && stream.acceptOperator(candidate))
        op = candidate;
    if (op.empty() && stream.acceptName("in"))
      op = "in";
    if (op.empty() && stream.atName("not") && stream.peek(1).type == TokenType::Name &&
        stream.peek(1).text == "in") {
      stream.take();
      stream.take();
      op = "not in";
    }
    if (op.empty())
      break;
    ExpressionPtr operand = parseSum();
    rest.emplace_back(std::move(op), std::move(operand));
  }
  if (rest.empty())
    return first;
  auto node = make<Compare>();
  node->first = std::move(first);
  node->rest = std::move(rest);
  return node;
}

template <typename ParseOperand>
ExpressionPtr ExpressionParser::parseBinary(Words ops, ParseOperand parseOperand) {
  ExpressionPtr left = parseOperand();
  while (true) {
    std::string op;
    for (std::string_view candidate : ops)
      if (op.empty() && stream.acceptOperator(candidate))
        op = candidate;
    if (op.empty())
      return left;
    auto node = make<Binary>();
    node->op = std::move(op);
    node->left = std::move(left);
    node->right = parseOperand();
    left = std::move(node);
  }
}

ExpressionPtr ExpressionParser::parseSum() {
  return parseBinary({"+", "-"}, [this] { return parseBinary({"~"}, [this] { return parseProduct(); }); });
}

ExpressionPtr ExpressionParser::parseProduct() {
  return parseBinary({"*", "/", "//", "%"},
                     [this] { return parseBinary({"**"}, [this] { return parseUnary(true); }); });
}

ExpressionPtr ExpressionParser::parseUnary(bool withFilters) {
  const TokenStream::Nested nested(stream);
  ExpressionPtr value;
  if (stream.atOperator("-") || stream.atOperator("+")) {
    auto node = make<Unary>();
    node->op = stream.take().text;
    node->operand = parseUnary(false);
    value = std::move(node);
  } else {
    value = parsePrimary();
  }
  value = parsePostfix(std::move(value));
  return withFilters ? parseFiltersAndTests(std::move(value)) : std::move(value);
}

std::unique_ptr<const FilterExpression> ExpressionParser::parseFilter(ExpressionPtr input) {
  auto node = make<FilterExpression>();
  node->name = stream.expectName();
  while (stream.acceptOperator("."))
    node->name += "." + stream.expectName();
  node->input = std::move(input);
  if (stream.atOperator("("))
    node->arguments = parseArguments();
  return node;
}

ExpressionPtr ExpressionParser::parseFiltersAndTests(ExpressionPtr value) {
  while (true) {
    if (stream.acceptOperator("|")) {
      value = parseFilter(std::move(value));
    } else if (stream.acceptName("is")) {
      value = parseTest(std::move(value));
    } else if (stream.atOperator("(")) {
      value = parseCall(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parseTest(ExpressionPtr input) {
  auto node = make<TestExpression>();
  node->negated = stream.acceptName("not");
  node->name = stream.expectName();
  node->input = std::move(input);
  if (stream.atOperator("("))
    node->arguments = parseArguments();
  else if (startsOperand())
    node->arguments.positional.push_back(parsePostfix(parsePrimary()));
  return node;
}

// A test takes one argument without parentheses: x is divisibleby 3.
bool ExpressionParser::startsOperand() const {
  if (stream.at(TokenType::Name))
    return !stream.atName("else") && !stream.atName("or") && !stream.atName("and") && !stream.atName("is") &&
           !stream.atName("if") && !stream.atName("in") && !stream.atName("not") &&
           !stream.atName("recursive");
  return stream.at(TokenType::String) || stream.at(TokenType::Integer) || stream.at(TokenType::Float) ||
         stream.atOperator("[") || stream.atOperator("{");
}

} // namespace dspark::llm::tmpl

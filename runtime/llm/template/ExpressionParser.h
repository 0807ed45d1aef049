// Expressions of the template language, by Jinja's precedence: conditional, or, and, not, comparison, sum,
// concatenation, product, power, sign, then filters and tests, attributes, subscripts and calls.
#pragma once
#include "runtime/llm/template/Nodes.h"
#include "runtime/llm/template/TokenStream.h"

namespace dspark::llm::tmpl {

/// Parses from `stream`, which must outlive it; throws TemplateError with the line, what was found and
/// expected.
class ExpressionParser {
public:
  explicit ExpressionParser(TokenStream &stream) : stream(stream) {}

  /// Commas make a tuple.
  ExpressionPtr parseTuple();
  ExpressionPtr parseTupleUnconditional();
  ExpressionPtr parseExpression();
  std::unique_ptr<const FilterExpression> parseFilter(ExpressionPtr input);

private:
  using Words = std::initializer_list<std::string_view>;

  template <typename ParseElement> ExpressionPtr parseTupleOf(ParseElement parseElement);
  ExpressionPtr parseOr();
  template <typename ParseOperand> ExpressionPtr parseLogic(std::string_view word, ParseOperand parseOperand);
  ExpressionPtr parseNot();
  ExpressionPtr parseCompare();
  template <typename ParseOperand> ExpressionPtr parseBinary(Words ops, ParseOperand parseOperand);
  ExpressionPtr parseSum();
  ExpressionPtr parseProduct();
  ExpressionPtr parseUnary(bool withFilters);
  ExpressionPtr parsePrimary();
  ExpressionPtr parseNameOrConstant();
  ExpressionPtr parseNumber();
  ExpressionPtr parseParenthesis();
  ExpressionPtr parseList();
  ExpressionPtr parseDict();
  ExpressionPtr parsePostfix(ExpressionPtr value);
  ExpressionPtr parseSubscript(ExpressionPtr object);
  ExpressionPtr parseCall(ExpressionPtr callee);
  ArgumentList parseArguments();
  ExpressionPtr parseFiltersAndTests(ExpressionPtr value);
  ExpressionPtr parseTest(ExpressionPtr input);
  bool startsOperand() const;

  /// A node that remembers its line.
  template <typename T, typename... Parts> std::unique_ptr<T> make(Parts &&...parts) {
    auto node = std::make_unique<T>(std::forward<Parts>(parts)...);
    node->line = stream.line();
    return node;
  }

  TokenStream &stream;
};

} // namespace dspark::llm::tmpl

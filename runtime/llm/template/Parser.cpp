#include "runtime/llm/template/Parser.h"
#include "runtime/llm/template/Lexer.h"
#include <charconv>

namespace dspark::llm::tmpl {
namespace {

constexpr int kDeepest = 200;

using Names = std::initializer_list<std::string_view>;

class Parser {
public:
  explicit Parser(std::string_view source) : tokens(tokenize(source)) {}

  Body run() {
    Body body = parseBody({});
    if (!at(TokenType::End))
      fail("the end of the template");
    return body;
  }

private:
  // ---- tokens

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

  struct Nested {
    explicit Nested(Parser &parser) : parser(parser) {
      if (++parser.depth > kDeepest)
        throw TemplateError{"line " + std::to_string(parser.peek().line) + ": nested more than " +
                            std::to_string(kDeepest) + " deep"};
    }
    ~Nested() { --parser.depth; }
    Parser &parser;
  };

  template <typename T> std::unique_ptr<T> make() {
    auto node = std::make_unique<T>();
    node->line = peek().line;
    return node;
  }

  // ---- statements

  // Up to a block whose name is in `ends`; that name is consumed, its end is not.
  Body parseBody(Names ends, std::string *which = nullptr) {
    const Nested nested(*this);
    Body body;
    while (!at(TokenType::End)) {
      if (at(TokenType::Text)) {
        auto text = std::make_unique<TextStatement>();
        text->text = take().text;
        body.push_back(std::move(text));
      } else if (at(TokenType::PrintBegin)) {
        take();
        auto print = std::make_unique<Print>();
        print->value = parseTuple();
        if (!at(TokenType::PrintEnd))
          fail("\"}}\"");
        take();
        body.push_back(std::move(print));
      } else {
        if (!at(TokenType::BlockBegin))
          fail("text or a tag");
        for (std::string_view end : ends)
          if (peek(1).type == TokenType::Name && peek(1).text == end) {
            take();
            std::string name = take().text;
            if (which)
              *which = std::move(name);
            return body;
          }
        take();
        body.push_back(parseStatement());
      }
    }
    if (ends.size())
      fail("a block \"" + std::string(*ends.begin()) + "\"");
    return body;
  }

  std::unique_ptr<const Statement> parseStatement() {
    const std::string name = expectName();
    if (name == "if")
      return parseIf();
    if (name == "for")
      return parseFor();
    if (name == "set")
      return parseSet();
    if (name == "macro")
      return parseMacro();
    if (name == "call")
      return parseCallBlock();
    if (name == "filter")
      return parseFilterBlock();
    if (name == "with")
      return parseWith();
    if (name == "generation") {
      auto block = std::make_unique<Block>();
      expectBlockEnd();
      block->body = parseBody({"endgeneration"});
      expectBlockEnd();
      return block;
    }
    if (name == "do") {
      auto statement = std::make_unique<Evaluate>();
      statement->value = parseTuple();
      expectBlockEnd();
      return statement;
    }
    if (name == "break" || name == "continue") {
      if (!loops)
        throw TemplateError{"line " + std::to_string(peek().line) + ": \"" + name + "\" outside of a loop"};
      auto jump = std::make_unique<Jump>();
      jump->signal = name == "break" ? Interpreter::Signal::Break : Interpreter::Signal::Continue;
      expectBlockEnd();
      return jump;
    }
    throw TemplateError{"line " + std::to_string(peek().line) + ": the block \"" + name +
                        "\" is not supported"};
  }

  std::unique_ptr<const Statement> parseIf() {
    auto statement = std::make_unique<If>();
    std::string end = "elif";
    while (end == "elif") {
      ExpressionPtr condition = parseTuple();
      expectBlockEnd();
      Body body = parseBody({"endif", "elif", "else"}, &end);
      statement->branches.emplace_back(std::move(condition), std::move(body));
    }
    if (end == "else") {
      expectBlockEnd();
      statement->otherwise = parseBody({"endif"});
    }
    expectBlockEnd();
    return statement;
  }

  std::unique_ptr<const Statement> parseFor() {
    auto statement = std::make_unique<For>();
    statement->target = parseTarget();
    if (!acceptName("in"))
      fail("\"in\"");
    statement->iterable = parseTupleUnconditional();
    if (acceptName("if"))
      statement->filter = parseExpression();
    statement->recursive = acceptName("recursive");
    expectBlockEnd();
    std::string end;
    ++loops;
    statement->body = parseBody({"endfor", "else"}, &end);
    --loops;
    if (end == "else") {
      expectBlockEnd();
      statement->otherwise = parseBody({"endfor"});
    }
    expectBlockEnd();
    return statement;
  }

  Target parseTarget() {
    Target target;
    const bool parenthesis = acceptOperator("(");
    target.names.push_back(expectName());
    if (acceptOperator(".")) {
      target.attribute = expectName();
      return target;
    }
    while (acceptOperator(","))
      if (at(TokenType::Name) && !atName("in"))
        target.names.push_back(expectName());
    if (parenthesis)
      expectOperator(")");
    return target;
  }

  std::unique_ptr<const Statement> parseSet() {
    auto statement = std::make_unique<Set>();
    statement->target = parseTarget();
    if (acceptOperator("=")) {
      statement->value = parseTuple();
      expectBlockEnd();
      return statement;
    }
    statement->filters = parseFilterChain();
    expectBlockEnd();
    statement->body = parseBody({"endset"});
    expectBlockEnd();
    return statement;
  }

  void parseParameters(Macro &macro) {
    if (!acceptOperator("("))
      return;
    while (!acceptOperator(")")) {
      std::string name = expectName();
      ExpressionPtr otherwise = acceptOperator("=") ? parseExpression() : nullptr;
      macro.parameters.emplace_back(std::move(name), std::move(otherwise));
      if (!atOperator(")"))
        expectOperator(",");
    }
  }

  std::unique_ptr<const Statement> parseMacro() {
    auto macro = std::make_unique<Macro>();
    macro->name = expectName();
    parseParameters(*macro);
    expectBlockEnd();
    const int outer = std::exchange(loops, 0);
    macro->body = parseBody({"endmacro"});
    loops = outer;
    if (at(TokenType::Name))
      take();
    expectBlockEnd();
    return macro;
  }

  std::unique_ptr<const Statement> parseCallBlock() {
    auto statement = std::make_unique<CallBlock>();
    statement->caller.name = "caller";
    parseParameters(statement->caller);
    ExpressionPtr target = parseExpression();
    const auto *call = dynamic_cast<const CallExpression *>(target.get());
    if (!call)
      fail("a call in the block \"call\"");
    target.release();
    statement->target.reset(call);
    expectBlockEnd();
    const int outer = std::exchange(loops, 0);
    statement->caller.body = parseBody({"endcall"});
    loops = outer;
    expectBlockEnd();
    return statement;
  }

  std::vector<std::unique_ptr<const FilterExpression>> parseFilterChain() {
    std::vector<std::unique_ptr<const FilterExpression>> filters;
    while (acceptOperator("|"))
      filters.push_back(parseFilter(nullptr));
    return filters;
  }

  std::unique_ptr<const Statement> parseFilterBlock() {
    auto statement = std::make_unique<FilterBlock>();
    statement->filters.push_back(parseFilter(nullptr));
    for (auto &filter : parseFilterChain())
      statement->filters.push_back(std::move(filter));
    expectBlockEnd();
    statement->body = parseBody({"endfilter"});
    expectBlockEnd();
    return statement;
  }

  std::unique_ptr<const Statement> parseWith() {
    auto statement = std::make_unique<With>();
    while (!at(TokenType::BlockEnd)) {
      std::string name = expectName();
      expectOperator("=");
      statement->variables.emplace_back(std::move(name), parseExpression());
      if (!at(TokenType::BlockEnd))
        expectOperator(",");
    }
    expectBlockEnd();
    statement->body = parseBody({"endwith"});
    expectBlockEnd();
    return statement;
  }

  // ---- expressions, by falling breadth of what they hold

  ExpressionPtr parseTuple() {
    return parseTupleOf([this] { return parseExpression(); });
  }
  ExpressionPtr parseTupleUnconditional() {
    return parseTupleOf([this] { return parseOr(); });
  }

  template <typename ParseElement> ExpressionPtr parseTupleOf(ParseElement parseElement) {
    ExpressionPtr first = parseElement();
    if (!atOperator(","))
      return first;
    auto tuple = make<Sequence>();
    tuple->tuple = true;
    tuple->elements.push_back(std::move(first));
    while (acceptOperator(","))
      if (!at(TokenType::BlockEnd) && !at(TokenType::PrintEnd) && !atOperator(")"))
        tuple->elements.push_back(parseElement());
    return tuple;
  }

  ExpressionPtr parseExpression() {
    const Nested nested(*this);
    ExpressionPtr value = parseOr();
    while (acceptName("if")) {
      auto node = make<Conditional>();
      node->then = std::move(value);
      node->condition = parseOr();
      if (acceptName("else"))
        node->otherwise = parseExpression();
      value = std::move(node);
    }
    return value;
  }

  ExpressionPtr parseOr() {
    return parseLogic("or", [this] { return parseLogic("and", [this] { return parseNot(); }); });
  }

  template <typename ParseOperand>
  ExpressionPtr parseLogic(std::string_view word, ParseOperand parseOperand) {
    ExpressionPtr left = parseOperand();
    while (acceptName(word)) {
      auto node = make<Logic>();
      node->isAnd = word == "and";
      node->left = std::move(left);
      node->right = parseOperand();
      left = std::move(node);
    }
    return left;
  }

  ExpressionPtr parseNot() {
    const Nested nested(*this);
    if (!acceptName("not"))
      return parseCompare();
    auto node = make<Unary>();
    node->op = "not";
    node->operand = parseNot();
    return node;
  }

  ExpressionPtr parseCompare() {
    ExpressionPtr first = parseSum();
    std::vector<std::pair<std::string, ExpressionPtr>> rest;
    while (true) {
      std::string op;
      for (std::string_view candidate : {"==", "!=", "<=", ">=", "<", ">"})
        if (op.empty() && acceptOperator(candidate))
          op = candidate;
      if (op.empty() && acceptName("in"))
        op = "in";
      if (op.empty() && atName("not") && peek(1).type == TokenType::Name && peek(1).text == "in") {
        take();
        take();
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

  template <typename ParseOperand> ExpressionPtr parseBinary(Names ops, ParseOperand parseOperand) {
    ExpressionPtr left = parseOperand();
    while (true) {
      std::string op;
      for (std::string_view candidate : ops)
        if (op.empty() && acceptOperator(candidate))
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

  ExpressionPtr parseSum() {
    return parseBinary({"+", "-"}, [this] { return parseBinary({"~"}, [this] { return parseProduct(); }); });
  }
  ExpressionPtr parseProduct() {
    return parseBinary({"*", "/", "//", "%"},
                       [this] { return parseBinary({"**"}, [this] { return parseUnary(true); }); });
  }

  ExpressionPtr parseUnary(bool withFilters) {
    const Nested nested(*this);
    ExpressionPtr value;
    if (atOperator("-") || atOperator("+")) {
      auto node = make<Unary>();
      node->op = take().text;
      node->operand = parseUnary(false);
      value = std::move(node);
    } else {
      value = parsePrimary();
    }
    value = parsePostfix(std::move(value));
    return withFilters ? parseFiltersAndTests(std::move(value)) : std::move(value);
  }

  ExpressionPtr parsePrimary() {
    if (at(TokenType::Name))
      return parseNameOrConstant();
    if (at(TokenType::String)) {
      std::string text = take().text;
      while (at(TokenType::String))
        text += take().text;
      return std::make_unique<Literal>(Value(std::move(text)));
    }
    if (at(TokenType::Integer) || at(TokenType::Float))
      return parseNumber();
    if (acceptOperator("("))
      return parseParenthesis();
    if (acceptOperator("["))
      return parseList();
    if (acceptOperator("{"))
      return parseDict();
    fail("an expression");
  }

  ExpressionPtr parseNameOrConstant() {
    const std::string name = take().text;
    if (name == "true" || name == "True" || name == "false" || name == "False")
      return std::make_unique<Literal>(Value(name[0] == 't' || name[0] == 'T'));
    if (name == "none" || name == "None")
      return std::make_unique<Literal>(Value());
    auto node = make<Name>(name);
    return node;
  }
  template <typename T> std::unique_ptr<T> make(const std::string &argument) {
    auto node = std::make_unique<T>(argument);
    node->line = peek().line;
    return node;
  }

  ExpressionPtr parseNumber() {
    const LexToken token = take();
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

  ExpressionPtr parseParenthesis() {
    if (acceptOperator(")")) {
      auto empty = make<Sequence>();
      empty->tuple = true;
      return empty;
    }
    ExpressionPtr value = parseTuple();
    expectOperator(")");
    return value;
  }

  ExpressionPtr parseList() {
    auto list = make<Sequence>();
    while (!acceptOperator("]")) {
      list->elements.push_back(parseExpression());
      if (!atOperator("]"))
        expectOperator(",");
    }
    return list;
  }

  ExpressionPtr parseDict() {
    auto dict = make<DictDisplay>();
    while (!acceptOperator("}")) {
      ExpressionPtr key = parseExpression();
      expectOperator(":");
      ExpressionPtr value = parseExpression();
      dict->entries.emplace_back(std::move(key), std::move(value));
      if (!atOperator("}"))
        expectOperator(",");
    }
    return dict;
  }

  ExpressionPtr parsePostfix(ExpressionPtr value) {
    while (true) {
      if (acceptOperator(".")) {
        auto node = make<Attribute>();
        node->object = std::move(value);
        if (!at(TokenType::Integer)) {
          node->name = expectName();
          value = std::move(node);
          continue;
        }
        auto element = make<Subscript>(); // a.0 is a[0]
        element->object = std::move(node->object);
        element->key = parseNumber();
        value = std::move(element);
      } else if (acceptOperator("[")) {
        value = parseSubscript(std::move(value));
      } else if (atOperator("(")) {
        auto node = make<CallExpression>();
        node->callee = std::move(value);
        node->arguments = parseArguments();
        value = std::move(node);
      } else {
        return value;
      }
    }
  }

  ExpressionPtr parseSubscript(ExpressionPtr object) {
    ExpressionPtr parts[3];
    size_t count = 0;
    bool slice = false;
    if (!atOperator(":"))
      parts[0] = parseTuple();
    while (acceptOperator(":")) {
      slice = true;
      if (++count > 2)
        fail("\"]\"");
      if (!atOperator(":") && !atOperator("]"))
        parts[count] = parseExpression();
    }
    expectOperator("]");
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

  ArgumentList parseArguments() {
    ArgumentList arguments;
    expectOperator("(");
    while (!acceptOperator(")")) {
      if (acceptOperator("**"))
        arguments.unpackNamed = parseExpression();
      else if (acceptOperator("*"))
        arguments.unpackPositional = parseExpression();
      else if (at(TokenType::Name) && peek(1).type == TokenType::Operator && peek(1).text == "=") {
        std::string name = take().text;
        take();
        arguments.named.emplace_back(std::move(name), parseExpression());
      } else {
        arguments.positional.push_back(parseExpression());
      }
      if (!atOperator(")"))
        expectOperator(",");
    }
    return arguments;
  }

  std::unique_ptr<const FilterExpression> parseFilter(ExpressionPtr input) {
    auto node = make<FilterExpression>();
    node->name = expectName();
    while (acceptOperator("."))
      node->name += "." + expectName();
    node->input = std::move(input);
    if (atOperator("("))
      node->arguments = parseArguments();
    return node;
  }

  ExpressionPtr parseFiltersAndTests(ExpressionPtr value) {
    while (true) {
      if (acceptOperator("|")) {
        value = parseFilter(std::move(value));
      } else if (acceptName("is")) {
        value = parseTest(std::move(value));
      } else if (atOperator("(")) {
        auto node = make<CallExpression>();
        node->callee = std::move(value);
        node->arguments = parseArguments();
        value = std::move(node);
      } else {
        return value;
      }
    }
  }

  ExpressionPtr parseTest(ExpressionPtr input) {
    auto node = make<TestExpression>();
    node->negated = acceptName("not");
    node->name = expectName();
    node->input = std::move(input);
    if (atOperator("("))
      node->arguments = parseArguments();
    else if (startsOperand())
      node->arguments.positional.push_back(parsePostfix(parsePrimary()));
    return node;
  }

  // A test takes one argument without parentheses: x is divisibleby 3.
  bool startsOperand() const {
    if (at(TokenType::Name))
      return !atName("else") && !atName("or") && !atName("and") && !atName("is") && !atName("if") &&
             !atName("in") && !atName("not") && !atName("recursive");
    return at(TokenType::String) || at(TokenType::Integer) || at(TokenType::Float) || atOperator("[") ||
           atOperator("{");
  }

  std::vector<LexToken> tokens;
  size_t next = 0;
  int depth = 0, loops = 0;
};

} // namespace

Body parse(std::string_view source) { return Parser(source).run(); }

} // namespace dspark::llm::tmpl

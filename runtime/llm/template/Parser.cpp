#include "runtime/llm/template/Parser.h"
#include "runtime/llm/template/ExpressionParser.h"

namespace dspark::llm::tmpl {
namespace {

using Names = std::initializer_list<std::string_view>;

class Parser {
public:
  explicit Parser(std::string_view source) : stream(source), expressions(stream) {}

  Body run() {
    Body body = parseBody({});
    if (!stream.at(TokenType::End))
      stream.fail("the end of the template");
    return body;
  }

private:
  // Up to a block whose name is in `ends`; that name is consumed, its end is not.
  Body parseBody(Names ends, std::string *which = nullptr) {
    const TokenStream::Nested nested(stream);
    Body body;
    while (!stream.at(TokenType::End)) {
      if (stream.at(TokenType::Text)) {
        auto text = std::make_unique<TextStatement>();
        text->text = stream.take().text;
        body.push_back(std::move(text));
      } else if (stream.at(TokenType::PrintBegin)) {
        stream.take();
        auto print = std::make_unique<Print>();
        print->value = expressions.parseTuple();
        if (!stream.at(TokenType::PrintEnd))
          stream.fail("\"}}\"");
        stream.take();
        body.push_back(std::move(print));
      } else {
        if (!stream.at(TokenType::BlockBegin))
          stream.fail("text or a tag");
        for (std::string_view end : ends)
          if (stream.peek(1).type == TokenType::Name && stream.peek(1).text == end) {
            stream.take();
            std::string name = stream.take().text;
            if (which)
              *which = std::move(name);
            return body;
          }
        stream.take();
        body.push_back(parseStatement());
      }
    }
    if (ends.size())
      stream.fail("a block \"" + std::string(*ends.begin()) + "\"");
    return body;
  }

  std::unique_ptr<const Statement> parseStatement() {
    const std::string name = stream.expectName();
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
      stream.expectBlockEnd();
      block->body = parseBody({"endgeneration"});
      stream.expectBlockEnd();
      return block;
    }
    if (name == "do") {
      auto statement = std::make_unique<Evaluate>();
      statement->value = expressions.parseTuple();
      stream.expectBlockEnd();
      return statement;
    }
    if (name == "break" || name == "continue") {
      if (!loops)
        throw TemplateError{"line " + std::to_string(stream.line()) + ": \"" + name + "\" outside of a loop"};
      auto jump = std::make_unique<Jump>();
      jump->signal = name == "break" ? Interpreter::Signal::Break : Interpreter::Signal::Continue;
      stream.expectBlockEnd();
      return jump;
    }
    throw TemplateError{"line " + std::to_string(stream.line()) + ": the block \"" + name +
                        "\" is not supported"};
  }

  std::unique_ptr<const Statement> parseIf() {
    auto statement = std::make_unique<If>();
    std::string end = "elif";
    while (end == "elif") {
      ExpressionPtr condition = expressions.parseTuple();
      stream.expectBlockEnd();
      Body body = parseBody({"endif", "elif", "else"}, &end);
      statement->branches.emplace_back(std::move(condition), std::move(body));
    }
    if (end == "else") {
      stream.expectBlockEnd();
      statement->otherwise = parseBody({"endif"});
    }
    stream.expectBlockEnd();
    return statement;
  }

  std::unique_ptr<const Statement> parseFor() {
    auto statement = std::make_unique<For>();
    statement->target = parseTarget();
    if (!stream.acceptName("in"))
      stream.fail("\"in\"");
    statement->iterable = expressions.parseTupleUnconditional();
    if (stream.acceptName("if"))
      statement->filter = expressions.parseExpression();
    statement->recursive = stream.acceptName("recursive");
    stream.expectBlockEnd();
    std::string end;
    ++loops;
    statement->body = parseBody({"endfor", "else"}, &end);
    --loops;
    if (end == "else") {
      stream.expectBlockEnd();
      statement->otherwise = parseBody({"endfor"});
    }
    stream.expectBlockEnd();
    return statement;
  }

  Target parseTarget() {
    Target target;
    const bool parenthesis = stream.acceptOperator("(");
    target.names.push_back(stream.expectName());
    if (stream.acceptOperator(".")) {
      target.attribute = stream.expectName();
      return target;
    }
    while (stream.acceptOperator(","))
      if (stream.at(TokenType::Name) && !stream.atName("in"))
        target.names.push_back(stream.expectName());
    if (parenthesis)
      stream.expectOperator(")");
    return target;
  }

  std::unique_ptr<const Statement> parseSet() {
    auto statement = std::make_unique<Set>();
    statement->target = parseTarget();
    if (stream.acceptOperator("=")) {
      statement->value = expressions.parseTuple();
      stream.expectBlockEnd();
      return statement;
    }
    statement->filters = parseFilterChain();
    stream.expectBlockEnd();
    statement->body = parseBody({"endset"});
    stream.expectBlockEnd();
    return statement;
  }

  void parseParameters(Macro &macro) {
    if (!stream.acceptOperator("("))
      return;
    while (!stream.acceptOperator(")")) {
      std::string name = stream.expectName();
      ExpressionPtr otherwise = stream.acceptOperator("=") ? expressions.parseExpression() : nullptr;
      macro.parameters.emplace_back(std::move(name), std::move(otherwise));
      if (!stream.atOperator(")"))
        stream.expectOperator(",");
    }
  }

  std::unique_ptr<const Statement> parseMacro() {
    auto macro = std::make_unique<Macro>();
    macro->name = stream.expectName();
    parseParameters(*macro);
    stream.expectBlockEnd();
    const int outer = std::exchange(loops, 0);
    macro->body = parseBody({"endmacro"});
    loops = outer;
    if (stream.at(TokenType::Name))
      stream.take();
    stream.expectBlockEnd();
    return macro;
  }

  std::unique_ptr<const Statement> parseCallBlock() {
    auto statement = std::make_unique<CallBlock>();
    statement->caller.name = "caller";
    parseParameters(statement->caller);
    ExpressionPtr target = expressions.parseExpression();
    const auto *call = dynamic_cast<const CallExpression *>(target.get());
    if (!call)
      stream.fail("a call in the block \"call\"");
    target.release();
    statement->target.reset(call);
    stream.expectBlockEnd();
    const int outer = std::exchange(loops, 0);
    statement->caller.body = parseBody({"endcall"});
    loops = outer;
    stream.expectBlockEnd();
    return statement;
  }

  std::vector<std::unique_ptr<const FilterExpression>> parseFilterChain() {
    std::vector<std::unique_ptr<const FilterExpression>> filters;
    while (stream.acceptOperator("|"))
      filters.push_back(expressions.parseFilter(nullptr));
    return filters;
  }

  std::unique_ptr<const Statement> parseFilterBlock() {
    auto statement = std::make_unique<FilterBlock>();
    statement->filters.push_back(expressions.parseFilter(nullptr));
    for (auto &filter : parseFilterChain())
      statement->filters.push_back(std::move(filter));
    stream.expectBlockEnd();
    statement->body = parseBody({"endfilter"});
    stream.expectBlockEnd();
    return statement;
  }

  std::unique_ptr<const Statement> parseWith() {
    auto statement = std::make_unique<With>();
    while (!stream.at(TokenType::BlockEnd)) {
      std::string name = stream.expectName();
      stream.expectOperator("=");
      statement->variables.emplace_back(std::move(name), expressions.parseExpression());
      if (!stream.at(TokenType::BlockEnd))
        stream.expectOperator(",");
    }
    stream.expectBlockEnd();
    statement->body = parseBody({"endwith"});
    stream.expectBlockEnd();
    return statement;
  }

  TokenStream stream;
  ExpressionParser expressions;
  int loops = 0;
};

} // namespace

Body parse(std::string_view source) { return Parser(source).run(); }

} // namespace dspark::llm::tmpl

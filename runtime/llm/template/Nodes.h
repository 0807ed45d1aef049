// The syntax tree of a template. Expressions give values, statements print and assign.
#pragma once
#include "runtime/llm/template/Interpreter.h"

namespace dspark::llm::tmpl {

struct Expression {
  virtual ~Expression() = default;
  virtual Value evaluate(Interpreter &) const = 0;
  size_t line = 0;
};
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Statement {
  virtual ~Statement() = default;
  virtual void run(Interpreter &) const = 0;
};
using Body = std::vector<std::unique_ptr<const Statement>>;

/// Stops early at break and continue.
void runBody(Interpreter &, const Body &);

struct Literal : Expression {
  Value value;
  explicit Literal(Value value) : value(std::move(value)) {}
  Value evaluate(Interpreter &) const override { return value; }
};

struct Name : Expression {
  std::string name;
  explicit Name(std::string name) : name(std::move(name)) {}
  Value evaluate(Interpreter &interpreter) const override { return interpreter.lookup(name); }
};

struct Sequence : Expression { // [a, b] or (a, b)
  std::vector<ExpressionPtr> elements;
  bool tuple = false;
  Value evaluate(Interpreter &) const override;
};

struct DictDisplay : Expression {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
  Value evaluate(Interpreter &) const override;
};

struct Unary : Expression { // - + not
  std::string op;
  ExpressionPtr operand;
  Value evaluate(Interpreter &) const override;
};

struct Binary : Expression { // arithmetic and ~
  std::string op;
  ExpressionPtr left, right;
  Value evaluate(Interpreter &) const override;
};

struct Logic : Expression { // and, or
  bool isAnd = false;
  ExpressionPtr left, right;
  Value evaluate(Interpreter &) const override;
};

struct Compare : Expression { // a < b < c, in, not in
  ExpressionPtr first;
  std::vector<std::pair<std::string, ExpressionPtr>> rest;
  Value evaluate(Interpreter &) const override;
};

struct Conditional : Expression { // a if condition else b
  ExpressionPtr condition, then, otherwise;
  Value evaluate(Interpreter &) const override;
};

struct Attribute : Expression {
  ExpressionPtr object;
  std::string name;
  Value evaluate(Interpreter &) const override;
};

struct Subscript : Expression {
  ExpressionPtr object, key;
  Value evaluate(Interpreter &) const override;
};

struct Slice : Expression { // object[begin:end:step], parts may be null
  ExpressionPtr object, begin, end, step;
  Value evaluate(Interpreter &) const override;
};

struct ArgumentList {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr unpackPositional, unpackNamed; // *a, **b
  Arguments evaluate(Interpreter &) const;
};

struct CallExpression : Expression {
  ExpressionPtr callee;
  ArgumentList arguments;
  Value evaluate(Interpreter &) const override;
};

struct FilterExpression : Expression {
  ExpressionPtr input; // null inside {% filter %}: the block's output
  std::string name;
  ArgumentList arguments;
  Value evaluate(Interpreter &) const override;
  Value apply(Interpreter &, const Value &input) const;
};

struct TestExpression : Expression {
  ExpressionPtr input;
  std::string name;
  bool negated = false;
  ArgumentList arguments;
  Value evaluate(Interpreter &) const override;
};

/// Where an assignment goes: names (several unpack a sequence) or one attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  std::string attribute;
  void assign(Interpreter &, const Value &) const;
};

struct TextStatement : Statement {
  std::string text;
  void run(Interpreter &interpreter) const override { interpreter.print(text); }
};

struct Print : Statement {
  ExpressionPtr value;
  void run(Interpreter &) const override;
};

struct Evaluate : Statement { // {% do %}
  ExpressionPtr value;
  void run(Interpreter &interpreter) const override { value->evaluate(interpreter); }
};

struct If : Statement {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
  void run(Interpreter &) const override;
};

struct For : Statement {
  Target target;
  ExpressionPtr iterable, filter; // filter may be null
  Body body, otherwise;
  bool recursive = false;
  void run(Interpreter &) const override;
  void loop(Interpreter &, const Value &over, int depth) const;
};

struct Set : Statement {
  Target target;
  ExpressionPtr value; // null: the output of `body`
  Body body;
  std::vector<std::unique_ptr<const FilterExpression>> filters;
  void run(Interpreter &) const override;
};

struct Macro : Statement {
  std::string name;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters; // default may be null
  Body body;
  void run(Interpreter &) const override;
  Value bind(std::shared_ptr<Scope> definedIn) const;
};

struct CallBlock : Statement { // {% call(x) f() %} body {% endcall %}
  std::unique_ptr<const CallExpression> target;
  Macro caller;
  void run(Interpreter &) const override;
};

struct FilterBlock : Statement {
  std::vector<std::unique_ptr<const FilterExpression>> filters;
  Body body;
  void run(Interpreter &) const override;
};

struct With : Statement {
  std::vector<std::pair<std::string, ExpressionPtr>> variables;
  Body body;
  void run(Interpreter &) const override;
};

struct Block : Statement { // {% generation %}: prints its body
  Body body;
  void run(Interpreter &interpreter) const override { runBody(interpreter, body); }
};

struct Jump : Statement {
  Interpreter::Signal signal;
  void run(Interpreter &interpreter) const override { interpreter.signal = signal; }
};

} // namespace dspark::llm::tmpl

#include "runtime/llm/template/Nodes.h"
#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/template/Strings.h"
#include <algorithm>
#include <cmath>

namespace dspark::llm::tmpl {
namespace {

[[noreturn]] void failTypes(const std::string &op, const Value &a, const Value &b) {
  throw TemplateError{"\"" + op + "\" does not take values of type " + a.typeName() + " and " + b.typeName() +
                      (a.isUndefined() ? " (\"" + a.as<Undefined>()->name + "\" is undefined)" : "")};
}

int64_t floorDivide(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == INT64_MIN))
    throw TemplateError{"division by zero or beyond 64 bits"};
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

int64_t integerPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent && i < 64; ++i)
    if (__builtin_mul_overflow(result, base, &result))
      throw TemplateError{"a power has more than 64 bits"};
  if (exponent > 64 && base != 0 && base != 1 && base != -1)
    throw TemplateError{"a power has more than 64 bits"};
  return exponent > 64 && base == -1 && exponent % 2 == 0 ? 1 : exponent > 64 ? base : result;
}

Value integerArithmetic(const std::string &op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(a, b, &result);
  else if (op == "-")
    overflow = __builtin_sub_overflow(a, b, &result);
  else if (op == "*")
    overflow = __builtin_mul_overflow(a, b, &result);
  else if (op == "//")
    result = floorDivide(a, b);
  else if (op == "%")
    result = a - floorDivide(a, b) * b;
  else if (op == "**" && b >= 0)
    result = integerPower(a, b);
  else if (op == "**")
    return std::pow(double(a), double(b));
  else if (b == 0)
    throw TemplateError{"division by zero"};
  else
    return double(a) / double(b);
  if (overflow)
    throw TemplateError{"an integer has more than 64 bits"};
  return result;
}

Value floatArithmetic(const std::string &op, double a, double b) {
  if (op == "+")
    return a + b;
  if (op == "-")
    return a - b;
  if (op == "*")
    return a * b;
  if (op == "**")
    return std::pow(a, b);
  if (b == 0)
    throw TemplateError{"division by zero"};
  if (op == "/")
    return a / b;
  const double quotient = std::floor(a / b);
  return op == "//" ? quotient : a - quotient * b;
}

Value repeat(Interpreter &interpreter, const Value &what, int64_t count) {
  const int64_t times = std::max<int64_t>(count, 0);
  if (const std::string *text = what.string()) {
    uint64_t size = 0;
    if (__builtin_mul_overflow(uint64_t(text->size()), uint64_t(times), &size))
      size = UINT64_MAX;
    interpreter.charge(size);
    std::string out;
    for (int64_t i = 0; i < times && !text->empty(); ++i)
      out += *text;
    return out;
  }
  uint64_t size = 0;
  if (__builtin_mul_overflow(uint64_t(what.items()->size()) * sizeof(Value), uint64_t(times), &size))
    size = UINT64_MAX;
  interpreter.charge(size);
  List out;
  for (int64_t i = 0; i < times && !what.items()->empty(); ++i)
    out.insert(out.end(), what.items()->begin(), what.items()->end());
  return what.as<Tuple>() ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

// Two texts become one; "+" escapes what stands beside markup, "~" does not.
Value joinTexts(Interpreter &interpreter, const Value &a, const Value &b, bool escapes) {
  const bool markup = escapes && (a.isMarkup() || b.isMarkup());
  const auto part = [&](const Value &value) {
    return markup && !value.isMarkup() ? escapeHtml(toString(value)) : toString(value);
  };
  std::string text = part(a) + part(b);
  interpreter.charge(text.size());
  return markup ? Value::markupText(std::move(text)) : Value(std::move(text));
}

Value add(Interpreter &interpreter, const Value &a, const Value &b) {
  if (a.string() && b.string())
    return joinTexts(interpreter, a, b, true);
  if (!a.items() || !b.items() || bool(a.as<Tuple>()) != bool(b.as<Tuple>()))
    failTypes("+", a, b);
  interpreter.charge((a.items()->size() + b.items()->size()) * sizeof(Value));
  List out = *a.items();
  out.insert(out.end(), b.items()->begin(), b.items()->end());
  return a.as<Tuple>() ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

bool contains(const Value &container, const Value &element) {
  if (const std::string *text = container.string()) {
    if (!element.string())
      throw TemplateError{std::string("\"in\" a string takes a string, not a value of type ") +
                          element.typeName()};
    return text->find(*element.string()) != std::string::npos;
  }
  if (const List *items = container.items())
    return std::any_of(items->begin(), items->end(), [&](const Value &item) { return equal(item, element); });
  if (const Dict *entries = container.entries())
    return findKey(*entries, element);
  if (container.isUndefined())
    return false;
  throw TemplateError{std::string("\"in\" does not take a value of type ") + container.typeName()};
}

bool compare(const std::string &op, const Value &a, const Value &b) {
  if (op == "==")
    return equal(a, b);
  if (op == "!=")
    return !equal(a, b);
  if (op == "in")
    return contains(b, a);
  if (op == "not in")
    return !contains(b, a);
  if (op == "<")
    return less(a, b);
  if (op == ">")
    return less(b, a);
  return op == "<=" ? !less(b, a) : !less(a, b);
}

// The output of a body instead of printing it.
std::string capture(Interpreter &interpreter, const Body &body) {
  std::string outer = std::exchange(interpreter.output, {});
  runBody(interpreter, body);
  return std::exchange(interpreter.output, std::move(outer));
}

} // namespace

void runBody(Interpreter &interpreter, const Body &body) {
  for (const auto &statement : body) {
    interpreter.step();
    statement->run(interpreter);
    if (interpreter.signal != Interpreter::Signal::None)
      return;
  }
}

Value Sequence::evaluate(Interpreter &interpreter) const {
  List items;
  for (const ExpressionPtr &element : elements)
    items.push_back(element->evaluate(interpreter));
  interpreter.charge(items.size() * sizeof(Value));
  return tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Value DictDisplay::evaluate(Interpreter &interpreter) const {
  Dict dict;
  for (const auto &[key, value] : entries) {
    Value k = key->evaluate(interpreter);
    setKey(dict, std::move(k), value->evaluate(interpreter));
  }
  interpreter.charge(dict.size() * 2 * sizeof(Value));
  return Value::dict(std::move(dict));
}

Value Unary::evaluate(Interpreter &interpreter) const {
  const Value value = operand->evaluate(interpreter);
  if (op == "not")
    return !value.truthy();
  if (const double *number = value.as<double>())
    return op == "-" ? -*number : *number;
  return integerArithmetic(op, 0, value.integer());
}

Value Binary::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  const Value a = left->evaluate(interpreter), b = right->evaluate(interpreter);
  if (op == "~")
    return joinTexts(interpreter, a, b, false);
  if (a.isNumber() && b.isNumber())
    return a.as<double>() || b.as<double>() ? floatArithmetic(op, a.number(), b.number())
                                            : integerArithmetic(op, a.integer(), b.integer());
  if (op == "+")
    return add(interpreter, a, b);
  if (op == "*" && (a.string() || a.items()) && b.as<int64_t>())
    return repeat(interpreter, a, b.integer());
  if (op == "*" && a.as<int64_t>() && (b.string() || b.items()))
    return repeat(interpreter, b, a.integer());
  if (op == "%" && a.string()) {
    Arguments arguments;
    arguments.positional = b.as<Tuple>() ? *b.items() : List{b};
    return findFilter("format")(interpreter, a, arguments);
  }
  failTypes(op, a, b);
}

Value Logic::evaluate(Interpreter &interpreter) const {
  Value value = left->evaluate(interpreter);
  return value.truthy() == isAnd ? right->evaluate(interpreter) : value;
}

Value Compare::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  Value left = first->evaluate(interpreter);
  for (const auto &[op, operand] : rest) {
    Value right = operand->evaluate(interpreter);
    if (!compare(op, left, right))
      return false;
    left = std::move(right);
  }
  return true;
}

Value Conditional::evaluate(Interpreter &interpreter) const {
  if (condition->evaluate(interpreter).truthy())
    return then->evaluate(interpreter);
  return otherwise ? otherwise->evaluate(interpreter) : Value(Undefined{"the missing else of a conditional"});
}

Value Attribute::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  return attribute(object->evaluate(interpreter), name);
}

Value Subscript::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  const Value container = object->evaluate(interpreter);
  return subscript(interpreter, container, key->evaluate(interpreter));
}

Value Slice::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  const Value container = object->evaluate(interpreter);
  if (!container.string() && !container.items())
    throw TemplateError{std::string("a value of type ") + container.typeName() + " has no slices"};
  const List items = iterate(interpreter, container);
  const auto part = [&](const ExpressionPtr &expression, int64_t otherwise) {
    const Value value = expression ? expression->evaluate(interpreter) : Value();
    return value.isNone() ? otherwise : value.integer();
  };
  const auto count = int64_t(items.size());
  const int64_t stride = part(step, 1);
  if (stride == 0)
    throw TemplateError{"the step of a slice is zero"};
  const auto place = [&](int64_t index) {
    return std::clamp<int64_t>(index < 0 ? index + count : index, stride < 0 ? -1 : 0,
                               stride < 0 ? count - 1 : count);
  };
  const int64_t from = begin ? place(part(begin, stride < 0 ? count - 1 : 0)) : stride < 0 ? count - 1 : 0;
  const int64_t to = end ? place(part(end, count)) : stride < 0 ? -1 : count;
  List out;
  for (int64_t i = from; stride > 0 ? i < to : i > to;
       i += std::clamp<int64_t>(stride, -count - 1, count + 1))
    out.push_back(items[size_t(i)]);
  if (!container.string())
    return container.as<Tuple>() ? Value::tuple(std::move(out)) : Value::list(std::move(out));
  std::string text;
  for (const Value &character : out)
    text += *character.string();
  return text;
}

Arguments ArgumentList::evaluate(Interpreter &interpreter) const {
  Arguments arguments;
  for (const ExpressionPtr &expression : positional)
    arguments.positional.push_back(expression->evaluate(interpreter));
  if (unpackPositional)
    for (const Value &value : iterate(interpreter, unpackPositional->evaluate(interpreter)))
      arguments.positional.push_back(value);
  for (const auto &[name, expression] : named)
    arguments.named.emplace_back(name, expression->evaluate(interpreter));
  if (unpackNamed) {
    const Value dict = unpackNamed->evaluate(interpreter);
    if (!dict.entries())
      throw TemplateError{"\"**\" takes a dict"};
    for (const auto &[key, value] : *dict.entries())
      arguments.named.emplace_back(toString(key), value);
  }
  return arguments;
}

Value CallExpression::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  if (const auto *access = dynamic_cast<const Attribute *>(callee.get())) {
    const Value object = access->object->evaluate(interpreter);
    if (const Method method = findMethod(object, access->name))
      return method(interpreter, object, arguments.evaluate(interpreter));
    return call(interpreter, attribute(object, access->name), arguments.evaluate(interpreter));
  }
  const Value function = callee->evaluate(interpreter);
  return call(interpreter, function, arguments.evaluate(interpreter));
}

Value FilterExpression::evaluate(Interpreter &interpreter) const {
  return apply(interpreter, input->evaluate(interpreter));
}

Value FilterExpression::apply(Interpreter &interpreter, const Value &value) const {
  interpreter.step();
  const Filter filter = findFilter(name);
  if (!filter)
    throw TemplateError{"line " + std::to_string(line) + ": there is no filter \"" + name + "\""};
  return filter(interpreter, value, arguments.evaluate(interpreter));
}

Value TestExpression::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  const Value value = input->evaluate(interpreter);
  const Test test = findTest(name);
  if (!test)
    throw TemplateError{"line " + std::to_string(line) + ": there is no test \"" + name + "\""};
  return test(interpreter, value, arguments.evaluate(interpreter)) != negated;
}

void Target::assign(Interpreter &interpreter, const Value &value) const {
  if (!attribute.empty()) {
    const Value object = interpreter.lookup(names[0]);
    const auto *space = object.as<Namespace>();
    if (!space)
      throw TemplateError{"cannot set an attribute of \"" + names[0] + "\": it is no namespace"};
    setKey(*space->entries, Value(attribute), value);
    return;
  }
  if (names.size() == 1) {
    interpreter.set(names[0], value);
    return;
  }
  const List items = iterate(interpreter, value);
  if (items.size() != names.size())
    throw TemplateError{"cannot unpack " + std::to_string(items.size()) + " values into " +
                        std::to_string(names.size()) + " names"};
  for (size_t i = 0; i < names.size(); ++i)
    interpreter.set(names[i], items[i]);
}

void Print::run(Interpreter &interpreter) const { interpreter.print(toString(value->evaluate(interpreter))); }

void If::run(Interpreter &interpreter) const {
  for (const auto &[condition, body] : branches)
    if (condition->evaluate(interpreter).truthy())
      return runBody(interpreter, body);
  runBody(interpreter, otherwise);
}

void For::run(Interpreter &interpreter) const { loop(interpreter, iterable->evaluate(interpreter), 0); }

void For::loop(Interpreter &interpreter, const Value &over, int depth) const {
  List items = iterate(interpreter, over);
  if (filter) {
    const Interpreter::Entered entered(interpreter, interpreter.scope);
    std::erase_if(items, [&](const Value &item) {
      target.assign(interpreter, item);
      return !filter->evaluate(interpreter).truthy();
    });
  }
  if (items.empty())
    return runBody(interpreter, otherwise);
  const std::shared_ptr<Scope> outer = interpreter.scope;
  const auto previous = std::make_shared<Value>(Undefined{"loop.changed"});
  const auto count = int64_t(items.size());
  for (int64_t i = 0; i < count; ++i) {
    interpreter.step();
    const Interpreter::Entered entered(interpreter, outer);
    Dict loop{{"index", i + 1},
              {"index0", i},
              {"first", i == 0},
              {"last", i == count - 1},
              {"length", count},
              {"revindex", count - i},
              {"revindex0", count - i - 1},
              {"depth", int64_t(depth) + 1},
              {"depth0", int64_t(depth)}};
    loop.emplace_back("previtem", i ? items[size_t(i) - 1] : Value(Undefined{"loop.previtem"}));
    loop.emplace_back("nextitem", i + 1 < count ? items[size_t(i) + 1] : Value(Undefined{"loop.nextitem"}));
    loop.emplace_back("cycle", Value::function("cycle", [i](Interpreter &, const Arguments &arguments) {
                        return arguments.positional.empty()
                                   ? Value()
                                   : arguments.positional[size_t(i) % arguments.positional.size()];
                      }));
    loop.emplace_back("changed",
                      Value::function("changed", [previous](Interpreter &, const Arguments &arguments) {
                        const Value now = Value::list(arguments.positional);
                        const bool changed = !equal(*previous, now);
                        *previous = now;
                        return Value(changed);
                      }));
    if (recursive)
      loop.emplace_back(
          "__call__", Value::function("loop", [this, depth](Interpreter &inner, const Arguments &arguments) {
            std::string saved = std::exchange(inner.output, {});
            this->loop(inner, arguments.get(0, "iterable"), depth + 1);
            return Value(std::exchange(inner.output, std::move(saved)));
          }));
    interpreter.set("loop", Value::dict(std::move(loop)));
    target.assign(interpreter, items[size_t(i)]);
    runBody(interpreter, body);
    const Interpreter::Signal signal = std::exchange(interpreter.signal, Interpreter::Signal::None);
    if (signal == Interpreter::Signal::Break)
      return;
  }
}

void Set::run(Interpreter &interpreter) const {
  if (value)
    return target.assign(interpreter, value->evaluate(interpreter));
  Value text;
  {
    const Interpreter::Entered entered(interpreter, interpreter.scope);
    text = capture(interpreter, body);
  }
  for (const auto &filter : filters)
    text = filter->apply(interpreter, text);
  target.assign(interpreter, text);
}

void Macro::run(Interpreter &interpreter) const { interpreter.set(name, bind(interpreter.scope)); }

// The scope holds the macro and the macro its scope: it is held weakly, and lives as long as the block that
// defined it.
Value Macro::bind(std::shared_ptr<Scope> definedIn) const {
  return Value::function(name, [this, weak = std::weak_ptr<Scope>(definedIn)](Interpreter &interpreter,
                                                                              const Arguments &arguments) {
    const std::shared_ptr<Scope> outer = weak.lock();
    if (!outer)
      throw TemplateError{"macro \"" + name + "\" is called outside of the block that defines it"};
    const Interpreter::Entered entered(interpreter, outer);
    if (arguments.positional.size() > parameters.size())
      throw TemplateError{"macro \"" + name + "\" takes " + std::to_string(parameters.size()) +
                          " arguments, not " + std::to_string(arguments.positional.size())};
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto &[parameter, otherwise] = parameters[i];
      if (const Value *given = arguments.find(i, parameter))
        interpreter.set(parameter, *given);
      else
        interpreter.set(parameter,
                        otherwise ? otherwise->evaluate(interpreter) : Value(Undefined{parameter}));
    }
    for (const auto &[key, value] : arguments.named)
      if (key == "caller")
        interpreter.set("caller", value);
    return Value(capture(interpreter, body));
  });
}

void CallBlock::run(Interpreter &interpreter) const {
  const Value function = target->callee->evaluate(interpreter);
  Arguments arguments = target->arguments.evaluate(interpreter);
  arguments.named.emplace_back("caller", caller.bind(interpreter.scope));
  interpreter.print(toString(call(interpreter, function, arguments)));
}

void FilterBlock::run(Interpreter &interpreter) const {
  Value text;
  {
    const Interpreter::Entered entered(interpreter, interpreter.scope);
    text = capture(interpreter, body);
  }
  for (const auto &filter : filters)
    text = filter->apply(interpreter, text);
  interpreter.print(toString(text));
}

void With::run(Interpreter &interpreter) const {
  std::vector<std::pair<std::string, Value>> values;
  for (const auto &[name, expression] : variables)
    values.emplace_back(name, expression->evaluate(interpreter));
  const Interpreter::Entered entered(interpreter, interpreter.scope);
  for (auto &[name, value] : values)
    interpreter.set(name, std::move(value));
  runBody(interpreter, body);
}

} // namespace dspark::llm::tmpl

// How the expressions of a template get their values.
#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/template/Nodes.h"
#include "runtime/llm/template/Operators.h"
#include <algorithm>

namespace dspark::llm::tmpl {

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
  return op == "not" ? Value(!value.truthy()) : applySign(op, value);
}

Value Binary::evaluate(Interpreter &interpreter) const {
  interpreter.step();
  const Value a = left->evaluate(interpreter);
  return applyBinary(interpreter, op, a, right->evaluate(interpreter));
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
    if (!applyComparison(op, left, right))
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

} // namespace dspark::llm::tmpl

#include "runtime/llm/template/Operators.h"
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

} // namespace

bool applyComparison(const std::string &op, const Value &a, const Value &b) {
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

Value applySign(const std::string &op, const Value &value) {
  if (const double *number = value.as<double>())
    return op == "-" ? -*number : *number;
  return integerArithmetic(op, 0, value.integer());
}

Value applyBinary(Interpreter &interpreter, const std::string &op, const Value &a, const Value &b) {
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

} // namespace dspark::llm::tmpl

#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/template/Strings.h"

namespace dspark::llm::tmpl {
namespace {

Value argument(const Arguments &arguments) { return arguments.get(0, "other"); }

bool isIterable(const Value &value) {
  return value.items() || value.entries() || value.string() || value.isUndefined();
}

bool contains(const Value &container, const Value &element) {
  if (container.string() && element.string())
    return container.string()->find(*element.string()) != std::string::npos;
  if (container.entries())
    return findKey(*container.entries(), element);
  if (container.items())
    for (const Value &item : *container.items())
      if (equal(item, element))
        return true;
  return false;
}

int64_t remainder(const Value &value, int64_t by) {
  if (by == 0)
    throw TemplateError{"division by zero"};
  return by == -1 ? 0 : value.integer() % by;
}

constexpr struct {
  std::string_view name;
  Test test;
} kTests[] = {
    {"boolean", [](Interpreter &, const Value &v, const Arguments &) { return v.as<bool>() != nullptr; }},
    {"callable",
     [](Interpreter &, const Value &v, const Arguments &) { return v.as<Callable>() != nullptr; }},
    {"defined", [](Interpreter &, const Value &v, const Arguments &) { return !v.isUndefined(); }},
    {"divisibleby", [](Interpreter &, const Value &v,
                       const Arguments &a) { return remainder(v, argument(a).integer()) == 0; }},
    {"eq", [](Interpreter &, const Value &v, const Arguments &a) { return equal(v, argument(a)); }},
    {"equalto", [](Interpreter &, const Value &v, const Arguments &a) { return equal(v, argument(a)); }},
    {"==", [](Interpreter &, const Value &v, const Arguments &a) { return equal(v, argument(a)); }},
    {"even", [](Interpreter &, const Value &v, const Arguments &) { return remainder(v, 2) == 0; }},
    {"false", [](Interpreter &, const Value &v, const Arguments &) { return v.as<bool>() && !v.truthy(); }},
    {"float", [](Interpreter &, const Value &v, const Arguments &) { return v.as<double>() != nullptr; }},
    {"ge", [](Interpreter &, const Value &v, const Arguments &a) { return !less(v, argument(a)); }},
    {"gt", [](Interpreter &, const Value &v, const Arguments &a) { return less(argument(a), v); }},
    {"greaterthan", [](Interpreter &, const Value &v, const Arguments &a) { return less(argument(a), v); }},
    {"in", [](Interpreter &, const Value &v, const Arguments &a) { return contains(argument(a), v); }},
    {"integer", [](Interpreter &, const Value &v, const Arguments &) { return v.as<int64_t>() != nullptr; }},
    {"iterable", [](Interpreter &, const Value &v, const Arguments &) { return isIterable(v); }},
    {"le", [](Interpreter &, const Value &v, const Arguments &a) { return !less(argument(a), v); }},
    {"lessthan", [](Interpreter &, const Value &v, const Arguments &a) { return less(v, argument(a)); }},
    {"lower",
     [](Interpreter &, const Value &v, const Arguments &) { return toString(v) == lower(toString(v)); }},
    {"lt", [](Interpreter &, const Value &v, const Arguments &a) { return less(v, argument(a)); }},
    {"mapping", [](Interpreter &, const Value &v, const Arguments &) { return v.entries() != nullptr; }},
    {"ne", [](Interpreter &, const Value &v, const Arguments &a) { return !equal(v, argument(a)); }},
    {"none", [](Interpreter &, const Value &v, const Arguments &) { return v.isNone(); }},
    {"number", [](Interpreter &, const Value &v, const Arguments &) { return v.isNumber(); }},
    {"odd", [](Interpreter &, const Value &v, const Arguments &) { return remainder(v, 2) != 0; }},
    {"sameas", [](Interpreter &, const Value &v, const Arguments &a) { return equal(v, argument(a)); }},
    {"sequence", [](Interpreter &, const Value &v, const Arguments &) { return isIterable(v); }},
    {"string", [](Interpreter &, const Value &v, const Arguments &) { return v.string() != nullptr; }},
    {"true", [](Interpreter &, const Value &v, const Arguments &) { return v.as<bool>() && v.truthy(); }},
    {"undefined", [](Interpreter &, const Value &v, const Arguments &) { return v.isUndefined(); }},
    {"upper",
     [](Interpreter &, const Value &v, const Arguments &) { return toString(v) == upper(toString(v)); }},
};

} // namespace

Test findTest(std::string_view name) {
  for (const auto &row : kTests)
    if (row.name == name)
      return row.test;
  return nullptr;
}

} // namespace dspark::llm::tmpl

#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/template/Strings.h"

namespace dspark::llm::tmpl {
namespace {

constexpr int64_t kLongestRange = 100'000;

Value makeNamespace(Interpreter &, const Arguments &arguments) {
  Namespace space{std::make_shared<Dict>()};
  const Value first = arguments.get(0, "");
  if (first.entries())
    *space.entries = *first.entries();
  for (const auto &[name, value] : arguments.named)
    setKey(*space.entries, Value(name), value);
  return space;
}

Value range(Interpreter &interpreter, const Arguments &arguments) {
  const bool one = arguments.positional.size() == 1;
  const int64_t begin = one ? 0 : arguments.get(0, "start").integer(),
                end = arguments.get(one ? 0 : 1, "stop").integer();
  const int64_t step = arguments.get(2, "step", 1).integer();
  if (step == 0)
    throw TemplateError{"the step of a range is zero"};
  List out;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (int64_t(out.size()) == kLongestRange)
      throw TemplateError{"a range has more than " + std::to_string(kLongestRange) + " elements"};
    out.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  interpreter.charge(out.size() * sizeof(Value));
  return Value::list(std::move(out));
}

Value strftimeNow(Interpreter &interpreter, const Arguments &arguments) {
  const std::string format = toString(arguments.get(0, "format"));
  std::tm local{};
  localtime_r(&interpreter.now, &local);
  char buffer[256];
  return std::string(buffer, std::strftime(buffer, sizeof buffer, format.c_str(), &local));
}

} // namespace

void addGlobals(Scope &scope) {
  const auto add = [&](const char *name, Function function) {
    scope.names[name] = Value::function(name, std::move(function));
  };
  add("namespace", makeNamespace);
  add("range", range);
  add("strftime_now", strftimeNow);
  add("raise_exception", [](Interpreter &, const Arguments &arguments) -> Value {
    throw TemplateError{toString(arguments.get(0, "message"))};
  });
  add("dict", [](Interpreter &, const Arguments &arguments) {
    Dict dict = arguments.get(0, "").entries() ? *arguments.positional[0].entries() : Dict();
    for (const auto &[name, value] : arguments.named)
      setKey(dict, Value(name), value);
    return Value::dict(std::move(dict));
  });
}

} // namespace dspark::llm::tmpl

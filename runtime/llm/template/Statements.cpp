// What the statements of a template do.
#include "runtime/llm/template/Nodes.h"
#include <utility>

namespace dspark::llm::tmpl {
namespace {

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

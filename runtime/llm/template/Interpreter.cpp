#include "runtime/llm/template/Interpreter.h"
#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/tokenizer/Utf8.h"

namespace dspark::llm::tmpl {

Value call(Interpreter &interpreter, const Value &callee, const Arguments &arguments) {
  if (const Dict *entries = callee.entries()) // a recursive loop's variable
    if (const Value *function = findKey(*entries, "__call__"))
      return call(interpreter, *function, arguments);
  const auto *function = callee.as<Callable>();
  if (!function)
    throw TemplateError{callee.isUndefined()
                            ? "\"" + callee.as<Undefined>()->name + "\" is undefined and cannot be called"
                            : std::string("a value of type ") + callee.typeName() + " cannot be called"};
  return (*function->call)(interpreter, arguments);
}

Value attribute(const Value &object, const std::string &name) {
  if (object.isUndefined())
    throw TemplateError{"\"" + object.as<Undefined>()->name + "\" is undefined, it has no \"" + name + "\""};
  if (const auto *space = object.as<Namespace>())
    if (const Value *value = findKey(*space->entries, Value(name)))
      return *value;
  if (const Method method = findMethod(object, name))
    return Value::function(name, [object, method](Interpreter &interpreter, const Arguments &arguments) {
      return method(interpreter, object, arguments);
    });
  if (const Dict *entries = object.entries())
    if (const Value *value = findKey(*entries, Value(name)))
      return *value;
  return Undefined{name};
}

Value subscript(Interpreter &interpreter, const Value &object, const Value &key) {
  if (object.isUndefined())
    throw TemplateError{"\"" + object.as<Undefined>()->name + "\" is undefined, it has no elements"};
  if (const Dict *entries = object.entries()) {
    if (const Value *value = findKey(*entries, key))
      return *value;
  } else if ((object.items() || object.string()) && (key.as<int64_t>() || key.as<bool>())) {
    const List own = object.string() ? iterate(interpreter, object) : List();
    const List &items = object.string() ? own : *object.items();
    const auto count = int64_t(items.size());
    const int64_t index = key.integer() < 0 ? key.integer() + count : key.integer();
    if (index >= 0 && index < count)
      return items[size_t(index)];
  }
  return key.string() ? attribute(object, *key.string()) : Value(Undefined{"element " + toRepr(key)});
}

List iterate(Interpreter &interpreter, const Value &value) {
  List items;
  if (const List *list = value.items()) {
    items = *list;
  } else if (const Dict *entries = value.entries()) {
    for (const auto &[key, entry] : *entries)
      items.push_back(key);
  } else if (const std::string *text = value.string()) {
    interpreter.charge(text->size() * sizeof(Value));
    for (size_t i = 0; i < text->size();) {
      const uint32_t bytes = decodeUtf8(*text, i).bytes;
      items.emplace_back(text->substr(i, bytes));
      i += bytes;
    }
  } else if (!value.isUndefined()) {
    throw TemplateError{std::string("a value of type ") + value.typeName() + " has no elements to loop over"};
  }
  interpreter.charge(items.size() * sizeof(Value));
  return items;
}

} // namespace dspark::llm::tmpl

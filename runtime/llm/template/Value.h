// Values of the template language: Python's, as far as templates can see them. Lists and dicts have reference
// semantics.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dspark::llm::tmpl {

/// Thrown inside the template engine and turned into a Status where it is left (Template.cpp).
struct TemplateError {
  std::string message;
};

class Value;
struct Arguments;
class Interpreter;

using List = std::vector<Value>;
/// In order of insertion, as Python's. Keys are strings in all but a few templates; other keys compare as
/// values.
using Dict = std::vector<std::pair<Value, Value>>;
using Function = std::function<Value(Interpreter &, const Arguments &)>;

struct Undefined {
  std::string name; // for messages
};
struct None {};
struct Tuple {
  std::shared_ptr<List> items;
};
/// What namespace() makes: a dict whose entries are attributes that `set` may assign.
struct Namespace {
  std::shared_ptr<Dict> entries;
};
struct Callable {
  std::string name;
  std::shared_ptr<Function> call;
};

class Value {
public:
  using Content = std::variant<Undefined, None, bool, int64_t, double, std::string, std::shared_ptr<List>,
                               Tuple, std::shared_ptr<Dict>, Namespace, Callable>;

  Value() : content(None{}) {}
  Value(bool value) : content(value) {}
  Value(int64_t value) : content(value) {}
  Value(int value) : content(int64_t(value)) {}
  Value(double value) : content(value) {}
  Value(std::string value) : content(std::move(value)) {}
  Value(std::string_view value) : content(std::string(value)) {}
  Value(const char *value) : content(std::string(value)) {}
  Value(Undefined value) : content(std::move(value)) {}
  Value(Tuple value) : content(std::move(value)) {}
  Value(Namespace value) : content(std::move(value)) {}
  Value(Callable value) : content(std::move(value)) {}
  static Value list(List items) { return Value(std::make_shared<List>(std::move(items))); }
  static Value dict(Dict entries) { return Value(std::make_shared<Dict>(std::move(entries))); }
  static Value tuple(List items) { return Value(Tuple{std::make_shared<List>(std::move(items))}); }
  static Value function(std::string name, Function call);

  template <typename T> const T *as() const { return std::get_if<T>(&content); }
  bool isUndefined() const { return as<Undefined>(); }
  bool isNone() const { return as<None>(); }
  const std::string *string() const { return as<std::string>(); }
  /// The elements of a list or tuple, else null.
  List *items() const;
  /// The entries of a dict, else null.
  Dict *entries() const;
  bool isNumber() const { return as<bool>() || as<int64_t>() || as<double>(); }
  /// Booleans count as 0 and 1. Throws for anything that is no number.
  double number() const;
  /// Throws for anything that is no integer or boolean.
  int64_t integer() const;

  /// A string that went through the filter "safe": joined to other text it makes that text escape HTML, as
  /// Jinja's Markup does even where templates are not HTML.
  bool isMarkup() const { return markup; }
  static Value markupText(std::string text) {
    Value value(std::move(text));
    value.markup = true;
    return value;
  }

  bool truthy() const;
  /// What Python calls the type.
  const char *typeName() const;

private:
  explicit Value(std::shared_ptr<List> items) : content(std::move(items)) {}
  explicit Value(std::shared_ptr<Dict> entries) : content(std::move(entries)) {}
  Content content;
  bool markup = false;
};

/// Arguments of a call: by place, then by name.
struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument at `place` or called `name`; null if it was not given.
  const Value *find(size_t place, std::string_view name) const;
  Value get(size_t place, std::string_view name, Value otherwise = {}) const;
};

bool equal(const Value &a, const Value &b);
/// Less than; throws for values without an order.
bool less(const Value &a, const Value &b);
/// Null if there is no such key.
const Value *findKey(const Dict &dict, const Value &key);
void setKey(Dict &dict, Value key, Value value);

/// Python's str() and repr().
std::string toString(const Value &value);
std::string toRepr(const Value &value);

struct JsonOptions {
  int indent = -1;
  std::string itemSeparator = ", ", keySeparator = ": ";
  bool sortKeys = false, ascii = false;
};
/// Python's json.dumps.
std::string toJson(const Value &value, const JsonOptions &options = {});

} // namespace dspark::llm::tmpl

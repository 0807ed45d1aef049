#include "runtime/llm/template/Value.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>
#include <cmath>

namespace dspark::llm::tmpl {
namespace {

constexpr const char *kTypeNames[] = {"undefined", "NoneType", "bool", "int",       "float",   "str",
                                      "list",      "tuple",    "dict", "namespace", "function"};

template <typename T> bool equalLists(const T &a, const T &b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](const Value &x, const Value &y) { return equal(x, y); });
}

bool equalDicts(const Dict &a, const Dict &b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto &entry) {
           const Value *other = findKey(b, entry.first);
           return other && equal(entry.second, *other);
         });
}

} // namespace

Value Value::function(std::string name, Function call) {
  return Value(Callable{std::move(name), std::make_shared<Function>(std::move(call))});
}

List *Value::items() const {
  if (const auto *list = as<std::shared_ptr<List>>())
    return list->get();
  if (const auto *tuple = as<Tuple>())
    return tuple->items.get();
  return nullptr;
}

Dict *Value::entries() const {
  const auto *dict = as<std::shared_ptr<Dict>>();
  return dict ? dict->get() : nullptr;
}

double Value::number() const {
  if (const double *value = as<double>())
    return *value;
  return double(integer());
}

int64_t Value::integer() const {
  if (const int64_t *value = as<int64_t>())
    return *value;
  if (const bool *value = as<bool>())
    return *value;
  throw TemplateError{std::string("expected a number, found a value of type ") + typeName()};
}

bool Value::truthy() const {
  if (isUndefined() || isNone())
    return false;
  if (isNumber())
    return number() != 0;
  if (const std::string *text = string())
    return !text->empty();
  if (const List *list = items())
    return !list->empty();
  if (const Dict *dict = entries())
    return !dict->empty();
  return true;
}

const char *Value::typeName() const { return kTypeNames[content.index()]; }

const Value *Arguments::find(size_t place, std::string_view name) const {
  if (place < positional.size())
    return &positional[place];
  for (const auto &[key, value] : named)
    if (key == name)
      return &value;
  return nullptr;
}

Value Arguments::get(size_t place, std::string_view name, Value otherwise) const {
  const Value *value = find(place, name);
  return value ? *value : std::move(otherwise);
}

bool equal(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.as<double>() || b.as<double>() ? a.number() == b.number() : a.integer() == b.integer();
  if (a.string() && b.string())
    return *a.string() == *b.string();
  if (a.items() && b.items())
    return bool(a.as<Tuple>()) == bool(b.as<Tuple>()) &&
           (a.items() == b.items() || equalLists(*a.items(), *b.items()));
  if (a.entries() && b.entries())
    return a.entries() == b.entries() || equalDicts(*a.entries(), *b.entries());
  if (a.as<Namespace>() && b.as<Namespace>())
    return a.as<Namespace>()->entries == b.as<Namespace>()->entries;
  return (a.isNone() && b.isNone()) || (a.isUndefined() && b.isUndefined());
}

bool less(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.as<double>() || b.as<double>() ? a.number() < b.number() : a.integer() < b.integer();
  if (a.string() && b.string())
    return *a.string() < *b.string(); // the order of UTF-8 bytes is that of code points
  if (a.items() && b.items())
    return std::lexicographical_compare(a.items()->begin(), a.items()->end(), b.items()->begin(),
                                        b.items()->end(), less);
  throw TemplateError{std::string("values of type ") + a.typeName() + " and " + b.typeName() +
                      " have no order"};
}

const Value *findKey(const Dict &dict, const Value &key) {
  for (const auto &[name, value] : dict)
    if (equal(name, key))
      return &value;
  return nullptr;
}

void setKey(Dict &dict, Value key, Value value) {
  for (auto &[name, old] : dict)
    if (equal(name, key)) {
      old = std::move(value);
      return;
    }
  dict.emplace_back(std::move(key), std::move(value));
}

} // namespace dspark::llm::tmpl

#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/template/Strings.h"
#include <algorithm>
#include <span>

namespace dspark::llm::tmpl {
namespace {

const std::string &text(const Value &value) {
  if (const std::string *found = value.string())
    return *found;
  throw TemplateError{std::string("expected a string, found a value of type ") + value.typeName()};
}

std::string textOr(const Value &value, const char *otherwise) {
  return value.isNone() ? otherwise : text(value);
}

template <bool Left, bool Right>
Value stripMethod(Interpreter &, const Value &object, const Arguments &arguments) {
  return strip(text(object), textOr(arguments.get(0, "chars"), ""), Left, Right);
}

template <bool FromRight>
Value splitMethod(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  const Value separator = arguments.get(0, "sep");
  if (separator.string() && separator.string()->empty())
    throw TemplateError{"split() takes no empty separator"};
  List parts =
      split(text(object), textOr(separator, ""), arguments.get(1, "maxsplit", -1).integer(), FromRight);
  interpreter.charge(parts.size() * sizeof(Value) + text(object).size());
  return Value::list(std::move(parts));
}

template <bool AtEnd> Value affix(Interpreter &, const Value &object, const Arguments &arguments) {
  const auto has = [&](const Value &part) {
    return AtEnd ? text(object).ends_with(text(part)) : text(object).starts_with(text(part));
  };
  const Value part = arguments.get(0, "prefix");
  return part.items() ? std::any_of(part.items()->begin(), part.items()->end(), has) : has(part);
}

template <bool FromRight> Value find(Interpreter &, const Value &object, const Arguments &arguments) {
  const std::string &whole = text(object), part = text(arguments.get(0, "sub"));
  const size_t at = FromRight ? whole.rfind(part) : whole.find(part);
  return at == std::string::npos ? int64_t(-1) : int64_t(characterCount(whole.substr(0, at)));
}

Value joinMethod(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  std::string out;
  bool first = true;
  for (const Value &item : iterate(interpreter, arguments.get(0, "iterable"))) {
    if (!std::exchange(first, false))
      out += text(object);
    out += text(item);
  }
  interpreter.charge(out.size());
  return out;
}

Value replaceMethod(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  const std::string from = text(arguments.get(0, "old")), to = text(arguments.get(1, "new"));
  interpreter.charge((text(object).size() + 1) * (to.size() + 1));
  return replace(text(object), from, to, arguments.get(2, "count", -1).integer());
}

Value countMethod(Interpreter &, const Value &object, const Arguments &arguments) {
  int64_t count = 0;
  if (object.items()) {
    for (const Value &item : *object.items())
      count += equal(item, arguments.get(0, "value"));
    return count;
  }
  const std::string &whole = text(object), part = text(arguments.get(0, "sub"));
  for (size_t at = 0; !part.empty() && (at = whole.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

Value removeAffix(const Value &object, const Arguments &arguments, bool atEnd) {
  const std::string &whole = text(object), part = text(arguments.get(0, "prefix"));
  if (atEnd ? !whole.ends_with(part) : !whole.starts_with(part))
    return whole;
  return atEnd ? whole.substr(0, whole.size() - part.size()) : whole.substr(part.size());
}

bool all(const std::string &whole, bool (*goes)(char)) {
  return !whole.empty() && std::all_of(whole.begin(), whole.end(), goes);
}

struct Row {
  std::string_view name;
  Method method;
};

constexpr Row kStringMethods[] = {
    {"strip", stripMethod<true, true>},
    {"lstrip", stripMethod<true, false>},
    {"rstrip", stripMethod<false, true>},
    {"split", splitMethod<false>},
    {"rsplit", splitMethod<true>},
    {"splitlines",
     [](Interpreter &, const Value &o, const Arguments &) { return Value::list(splitLines(text(o))); }},
    {"startswith", affix<false>},
    {"endswith", affix<true>},
    {"removeprefix",
     [](Interpreter &, const Value &o, const Arguments &a) { return removeAffix(o, a, false); }},
    {"removesuffix",
     [](Interpreter &, const Value &o, const Arguments &a) { return removeAffix(o, a, true); }},
    {"find", find<false>},
    {"rfind", find<true>},
    {"index",
     [](Interpreter &i, const Value &o, const Arguments &a) {
       const Value at = find<false>(i, o, a);
       if (at.integer() < 0)
         throw TemplateError{"index(): the part is not found"};
       return at;
     }},
    {"count", countMethod},
    {"replace", replaceMethod},
    {"join", joinMethod},
    {"upper", [](Interpreter &, const Value &o, const Arguments &) { return Value(upper(text(o))); }},
    {"lower", [](Interpreter &, const Value &o, const Arguments &) { return Value(lower(text(o))); }},
    {"capitalize",
     [](Interpreter &, const Value &o, const Arguments &) { return Value(capitalize(text(o))); }},
    {"title", [](Interpreter &, const Value &o, const Arguments &) { return Value(title(text(o))); }},
    {"format",
     [](Interpreter &i, const Value &o, const Arguments &a) {
       std::string out = formatBraces(text(o), a);
       i.charge(out.size());
       return Value(std::move(out));
     }},
    {"isdigit",
     [](Interpreter &, const Value &o, const Arguments &) {
       return Value(all(text(o), [](char c) { return c >= '0' && c <= '9'; }));
     }},
    {"isspace",
     [](Interpreter &, const Value &o, const Arguments &) {
       return Value(!text(o).empty() && strip(text(o), "", true, true).empty());
     }},
};

Value pop(Interpreter &, const Value &object, const Arguments &arguments) {
  List &items = *object.items();
  const int64_t given = arguments.get(0, "index", -1).integer(),
                index = given < 0 ? given + int64_t(items.size()) : given;
  if (object.as<Tuple>() || index < 0 || index >= int64_t(items.size()))
    throw TemplateError{"pop(): there is no element " + std::to_string(given)};
  Value value = items[size_t(index)];
  items.erase(items.begin() + index);
  return value;
}

Value append(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  interpreter.charge(sizeof(Value));
  object.items()->push_back(arguments.get(0, "object"));
  return {};
}

constexpr Row kListMethods[] = {
    {"append", append},
    {"pop", pop},
    {"count", countMethod},
    {"extend",
     [](Interpreter &i, const Value &o, const Arguments &a) {
       for (const Value &item : iterate(i, a.get(0, "iterable")))
         o.items()->push_back(item);
       return Value();
     }},
    {"insert",
     [](Interpreter &i, const Value &o, const Arguments &a) {
       List &items = *o.items();
       const int64_t given = a.get(0, "index").integer();
       i.charge(sizeof(Value));
       const int64_t at =
           std::clamp<int64_t>(given < 0 ? given + int64_t(items.size()) : given, 0, int64_t(items.size()));
       items.insert(items.begin() + at, a.get(1, "object"));
       return Value();
     }},
    {"index",
     [](Interpreter &, const Value &o, const Arguments &a) {
       for (size_t k = 0; k < o.items()->size(); ++k)
         if (equal((*o.items())[k], a.get(0, "value")))
           return Value(int64_t(k));
       throw TemplateError{"index(): the value is not in the list"};
     }},
};

Value keysOf(const Dict &dict) {
  List out;
  for (const auto &[key, value] : dict)
    out.push_back(key);
  return Value::list(std::move(out));
}

Value valuesOf(const Dict &dict) {
  List out;
  for (const auto &[key, value] : dict)
    out.push_back(value);
  return Value::list(std::move(out));
}

Value popKey(Interpreter &, const Value &object, const Arguments &arguments) {
  Dict &dict = *object.entries();
  const Value key = arguments.get(0, "key");
  for (size_t i = 0; i < dict.size(); ++i)
    if (equal(dict[i].first, key)) {
      Value value = dict[i].second;
      dict.erase(dict.begin() + int64_t(i));
      return value;
    }
  if (const Value *otherwise = arguments.find(1, "default"))
    return *otherwise;
  throw TemplateError{"pop(): there is no key " + toRepr(key)};
}

Value update(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  const Value other = arguments.get(0, "other");
  if (other.entries())
    for (const auto &[key, value] : Dict(*other.entries()))
      setKey(*object.entries(), key, value);
  for (const auto &[key, value] : arguments.named)
    setKey(*object.entries(), Value(key), value);
  interpreter.charge(object.entries()->size() * sizeof(Value));
  return {};
}

constexpr Row kDictMethods[] = {
    {"get",
     [](Interpreter &, const Value &o, const Arguments &a) {
       const Value *value = findKey(*o.entries(), a.get(0, "key"));
       return value ? *value : a.get(1, "default");
     }},
    {"items",
     [](Interpreter &i, const Value &o, const Arguments &a) { return findFilter("items")(i, o, a); }},
    {"keys", [](Interpreter &, const Value &o, const Arguments &) { return keysOf(*o.entries()); }},
    {"values", [](Interpreter &, const Value &o, const Arguments &) { return valuesOf(*o.entries()); }},
    {"pop", popKey},
    {"update", update},
    {"copy", [](Interpreter &, const Value &o, const Arguments &) { return Value::dict(*o.entries()); }},
};

Method findIn(std::span<const Row> rows, std::string_view name) {
  for (const Row &row : rows)
    if (row.name == name)
      return row.method;
  return nullptr;
}

} // namespace

Method findMethod(const Value &object, std::string_view name) {
  if (object.string())
    return findIn(kStringMethods, name);
  if (object.items())
    return findIn(kListMethods, name);
  if (object.entries())
    return findIn(kDictMethods, name);
  return nullptr;
}

} // namespace dspark::llm::tmpl

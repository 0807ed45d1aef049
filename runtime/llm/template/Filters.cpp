#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/template/Strings.h"
#include <algorithm>
#include <charconv>
#include <cmath>

namespace dspark::llm::tmpl {
namespace {

std::string textOf(const Value &value) { return toString(value); }

Value length(Interpreter &interpreter, const Value &input, const Arguments &) {
  if (const std::string *text = input.string())
    return int64_t(characterCount(*text));
  if (const Dict *entries = input.entries())
    return int64_t(entries->size());
  return int64_t(iterate(interpreter, input).size());
}

Value byDefault(Interpreter &, const Value &input, const Arguments &arguments) {
  const bool replace =
      input.isUndefined() || (arguments.get(1, "boolean", false).truthy() && !input.truthy());
  return replace ? arguments.get(0, "default_value", "") : input;
}

Value join(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  const std::string separator = textOf(arguments.get(0, "d", ""));
  const Value *name = arguments.find(1, "attribute");
  std::string out;
  bool first = true;
  for (const Value &item : iterate(interpreter, input)) {
    if (!std::exchange(first, false))
      out += separator;
    out += textOf(name ? subscript(interpreter, item, *name) : item);
  }
  interpreter.charge(out.size());
  return out;
}

Value trim(Interpreter &, const Value &input, const Arguments &arguments) {
  const Value set = arguments.get(0, "chars");
  return strip(textOf(input), set.isNone() ? "" : textOf(set), true, true);
}

Value toInteger(Interpreter &, const Value &input, const Arguments &arguments) {
  const Value otherwise = arguments.get(0, "default", 0);
  if (input.isNumber())
    return std::fabs(input.number()) < 9e18 ? Value(int64_t(input.number())) : otherwise;
  const std::string text = strip(textOf(input), "", true, true);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value,
                                            int(arguments.get(1, "base", 10).integer()));
  if (error == std::errc() && end == text.data() + text.size())
    return value;
  double real = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), real);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && std::fabs(real) < 9e18
             ? Value(int64_t(real))
             : otherwise;
}

Value toFloat(Interpreter &, const Value &input, const Arguments &arguments) {
  if (input.isNumber())
    return input.number();
  const std::string text = strip(textOf(input), "", true, true);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? Value(value)
                                                                  : arguments.get(0, "default", 0.0);
}

Value first(Interpreter &interpreter, const Value &input, const Arguments &) {
  const List items = iterate(interpreter, input);
  return items.empty() ? Value(Undefined{"the first element of nothing"}) : items.front();
}

Value last(Interpreter &interpreter, const Value &input, const Arguments &) {
  const List items = iterate(interpreter, input);
  return items.empty() ? Value(Undefined{"the last element of nothing"}) : items.back();
}

Value list(Interpreter &interpreter, const Value &input, const Arguments &) {
  return Value::list(iterate(interpreter, input));
}

Value items(Interpreter &, const Value &input, const Arguments &) {
  List out;
  if (!input.isUndefined() && !input.entries())
    throw TemplateError{"the filter \"items\" takes a dict"};
  if (input.entries())
    for (const auto &[key, value] : *input.entries())
      out.push_back(Value::tuple({key, value}));
  return Value::list(std::move(out));
}

Value caseFolded(const Value &value, bool caseSensitive) {
  return value.string() && !caseSensitive ? Value(lower(*value.string())) : value;
}

Value dictSort(Interpreter &, const Value &input, const Arguments &arguments) {
  if (!input.entries())
    throw TemplateError{"the filter \"dictsort\" takes a dict"};
  const bool caseSensitive = arguments.get(0, "case_sensitive", false).truthy();
  const size_t by = textOf(arguments.get(1, "by", "key")) == "value";
  std::vector<std::pair<Value, Value>> entries = *input.entries();
  const auto key = [&](const std::pair<Value, Value> &entry) {
    return caseFolded(by ? entry.second : entry.first, caseSensitive);
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const auto &a, const auto &b) { return less(key(a), key(b)); });
  if (arguments.get(2, "reverse", false).truthy())
    std::reverse(entries.begin(), entries.end());
  List out;
  for (auto &[k, v] : entries)
    out.push_back(Value::tuple({k, v}));
  return Value::list(std::move(out));
}

// What select, reject and map loop over: nothing where the input is empty, none among that.
List elements(Interpreter &interpreter, const Value &input) {
  return input.truthy() ? iterate(interpreter, input) : List();
}

// "a.b" reaches through attributes.
Value path(Interpreter &interpreter, Value value, const Value &name) {
  if (!name.string())
    return subscript(interpreter, value, name);
  for (const Value &part : split(*name.string(), ".", -1, false))
    value = subscript(interpreter, value, part);
  return value;
}

Value sort(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  List out = iterate(interpreter, input);
  const bool reverse = arguments.get(0, "reverse", false).truthy(),
             caseSensitive = arguments.get(1, "case_sensitive", false).truthy();
  const Value name = arguments.get(2, "attribute");
  const auto key = [&](const Value &value) {
    return caseFolded(name.isNone() ? value : path(interpreter, value, name), caseSensitive);
  };
  std::stable_sort(out.begin(), out.end(), [&](const Value &a, const Value &b) {
    return reverse ? less(key(b), key(a)) : less(key(a), key(b));
  });
  return Value::list(std::move(out));
}

Value unique(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  const bool caseSensitive = arguments.get(0, "case_sensitive", false).truthy();
  List out, seen;
  for (const Value &item : iterate(interpreter, input)) {
    const Value key = caseFolded(item, caseSensitive);
    interpreter.step();
    if (std::any_of(seen.begin(), seen.end(), [&](const Value &other) { return equal(other, key); }))
      continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return Value::list(std::move(out));
}

Value reverse(Interpreter &interpreter, const Value &input, const Arguments &) {
  List out = iterate(interpreter, input);
  std::reverse(out.begin(), out.end());
  if (!input.string())
    return Value::list(std::move(out));
  std::string text;
  for (const Value &character : out)
    text += *character.string();
  return text;
}

Value map(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  List out;
  const Value *name = nullptr;
  for (const auto &[key, value] : arguments.named)
    if (key == "attribute")
      name = &value;
  const Filter filter = name ? nullptr : findFilter(textOf(arguments.get(0, "")));
  if (!name && !filter)
    throw TemplateError{"the filter \"map\" takes an attribute or the name of a filter"};
  Arguments rest = arguments;
  if (!name && !rest.positional.empty())
    rest.positional.erase(rest.positional.begin());
  for (const Value &item : elements(interpreter, input)) {
    interpreter.step();
    Value value = name ? path(interpreter, item, *name) : filter(interpreter, item, rest);
    if (const Value *otherwise = arguments.find(SIZE_MAX, "default"); otherwise && value.isUndefined())
      value = *otherwise;
    out.push_back(std::move(value));
  }
  return Value::list(std::move(out));
}

// select, reject (by a test of the element) and selectattr, rejectattr (by a test of one of its attributes).
template <bool Keep, bool ByAttribute>
Value filtered(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  const size_t place = ByAttribute ? 1 : 0;
  const Value *name = arguments.find(place, "");
  const Test test = name ? findTest(textOf(*name)) : nullptr;
  if (name && !test)
    throw TemplateError{"there is no test \"" + textOf(*name) + "\""};
  Arguments rest;
  for (size_t i = place + 1; i < arguments.positional.size(); ++i)
    rest.positional.push_back(arguments.positional[i]);
  List out;
  for (const Value &item : elements(interpreter, input)) {
    interpreter.step();
    const Value value = ByAttribute ? path(interpreter, item, arguments.get(0, "attribute")) : item;
    if ((test ? test(interpreter, value, rest) : value.truthy()) == Keep)
      out.push_back(item);
  }
  return Value::list(std::move(out));
}

Value toJsonFilter(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  JsonOptions options;
  options.ascii = arguments.get(0, "ensure_ascii", false).truthy();
  if (const Value indent = arguments.get(1, "indent"); !indent.isNone())
    options.indent = int(std::clamp<int64_t>(indent.integer(), 0, 64));
  if (options.indent >= 0)
    options.itemSeparator = ",";
  if (const Value separators = arguments.get(2, "separators");
      separators.items() && separators.items()->size() == 2) {
    options.itemSeparator = textOf((*separators.items())[0]);
    options.keySeparator = textOf((*separators.items())[1]);
  }
  options.sortKeys = arguments.get(3, "sort_keys", false).truthy();
  std::string text = toJson(input, options);
  interpreter.charge(text.size());
  return text;
}

Value indent(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  const Value width = arguments.get(0, "width", 4);
  const std::string margin = width.string()
                                 ? *width.string()
                                 : std::string(size_t(std::clamp<int64_t>(width.integer(), 0, 1000)), ' ');
  const bool indentFirst = arguments.get(1, "first", false).truthy(),
             blank = arguments.get(2, "blank", false).truthy();
  const List lines = split(textOf(input), "\n", -1, false);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string &line = *lines[i].string();
    out += (i ? "\n" : "") +
           (((i || indentFirst) && (blank || !line.empty() || (i == 0 && indentFirst))) ? margin
                                                                                        : std::string()) +
           line;
  }
  interpreter.charge(out.size());
  return out;
}

Value absolute(Interpreter &, const Value &input, const Arguments &) {
  return input.as<double>() ? Value(std::fabs(input.number()))
                            : Value(input.integer() < 0 && input.integer() != INT64_MIN ? -input.integer()
                                                                                        : input.integer());
}

Value roundTo(Interpreter &, const Value &input, const Arguments &arguments) {
  const double scale =
      std::pow(10.0, double(std::clamp<int64_t>(arguments.get(0, "precision", 0).integer(), -300, 300)));
  const std::string method = textOf(arguments.get(1, "method", "common"));
  const double scaled = input.number() * scale;
  return (method == "ceil"    ? std::ceil(scaled)
          : method == "floor" ? std::floor(scaled)
                              : std::nearbyint(scaled)) /
         scale;
}

template <bool Largest> Value extreme(Interpreter &interpreter, const Value &input, const Arguments &) {
  const List all = iterate(interpreter, input);
  if (all.empty())
    return Undefined{"the extreme of nothing"};
  return Largest ? *std::max_element(all.begin(), all.end(), less)
                 : *std::min_element(all.begin(), all.end(), less);
}

Value sum(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  const Value name = arguments.get(0, "attribute");
  Value total = arguments.get(1, "start", 0);
  for (const Value &item : iterate(interpreter, input)) {
    const Value value = name.isNone() ? item : path(interpreter, item, name);
    total = total.as<double>() || value.as<double>()
                ? Value(total.number() + value.number())
                : Value(int64_t(uint64_t(total.integer()) + uint64_t(value.integer())));
  }
  return total;
}

Value escape(Interpreter &, const Value &input, const Arguments &) {
  return input.isMarkup() ? input : Value::markupText(escapeHtml(textOf(input)));
}

Value formatFilter(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  std::string text = formatPercent(textOf(input), arguments.positional);
  interpreter.charge(text.size());
  return text;
}

Value replaceFilter(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  const Value count = arguments.get(2, "count");
  const std::string text = textOf(input), from = textOf(arguments.get(0, "old")),
                    to = textOf(arguments.get(1, "new"));
  interpreter.charge((text.size() + 1) * (to.size() + 1));
  return replace(text, from, to, count.isNone() ? -1 : count.integer());
}

Value batch(Interpreter &interpreter, const Value &input, const Arguments &arguments) {
  const int64_t size = std::max<int64_t>(arguments.get(0, "linecount", 1).integer(), 1);
  List out, group;
  for (const Value &item : iterate(interpreter, input)) {
    group.push_back(item);
    if (int64_t(group.size()) == size)
      out.push_back(Value::list(std::exchange(group, {})));
  }
  if (!group.empty())
    out.push_back(Value::list(std::move(group)));
  return Value::list(std::move(out));
}

constexpr struct {
  std::string_view name;
  Filter filter;
} kFilters[] = {
    {"abs", absolute},
    {"attr", [](Interpreter &, const Value &v,
                const Arguments &a) { return attribute(v, textOf(a.get(0, "name"))); }},
    {"batch", batch},
    {"capitalize",
     [](Interpreter &, const Value &v, const Arguments &) { return Value(capitalize(textOf(v))); }},
    {"count", length},
    {"d", byDefault},
    {"default", byDefault},
    {"dictsort", dictSort},
    {"e", escape},
    {"escape", escape},
    {"first", first},
    {"float", toFloat},
    {"format", formatFilter},
    {"indent", indent},
    {"int", toInteger},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", list},
    {"lower", [](Interpreter &, const Value &v, const Arguments &) { return Value(lower(textOf(v))); }},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", filtered<false, false>},
    {"rejectattr", filtered<false, true>},
    {"replace", replaceFilter},
    {"reverse", reverse},
    {"round", roundTo},
    {"safe", [](Interpreter &, const Value &v, const Arguments &) { return Value::markupText(textOf(v)); }},
    {"select", filtered<true, false>},
    {"selectattr", filtered<true, true>},
    {"sort", sort},
    {"string", [](Interpreter &, const Value &v, const Arguments &) { return Value(textOf(v)); }},
    {"sum", sum},
    {"title", [](Interpreter &, const Value &v, const Arguments &) { return Value(title(textOf(v))); }},
    {"tojson", toJsonFilter},
    {"trim", trim},
    {"unique", unique},
    {"upper", [](Interpreter &, const Value &v, const Arguments &) { return Value(upper(textOf(v))); }},
};

} // namespace

Filter findFilter(std::string_view name) {
  for (const auto &row : kFilters)
    if (row.name == name)
      return row.filter;
  return nullptr;
}

} // namespace dspark::llm::tmpl

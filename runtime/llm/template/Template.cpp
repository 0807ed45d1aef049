#include "runtime/llm/template/Template.h"
#include "runtime/llm/template/Builtins.h"
#include "runtime/llm/template/Parser.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {

constexpr size_t kLongestSource = 4 * 1024 * 1024;
constexpr int kDeepestJson = 100;

tmpl::Value fromJson(const nlohmann::ordered_json &json) {
  switch (json.type()) {
  case nlohmann::ordered_json::value_t::boolean:
    return json.get<bool>();
  case nlohmann::ordered_json::value_t::number_integer:
    return json.get<int64_t>();
  case nlohmann::ordered_json::value_t::number_unsigned:
    return json.get<uint64_t>() <= uint64_t(INT64_MAX) ? tmpl::Value(int64_t(json.get<uint64_t>()))
                                                       : tmpl::Value(json.get<double>());
  case nlohmann::ordered_json::value_t::number_float:
    return json.get<double>();
  case nlohmann::ordered_json::value_t::string:
    return json.get<std::string>();
  case nlohmann::ordered_json::value_t::array: {
    tmpl::List items;
    for (const auto &element : json)
      items.push_back(fromJson(element));
    return tmpl::Value::list(std::move(items));
  }
  case nlohmann::ordered_json::value_t::object: {
    tmpl::Dict entries;
    for (const auto &[key, element] : json.items())
      entries.emplace_back(key, fromJson(element));
    return tmpl::Value::dict(std::move(entries));
  }
  default:
    return {};
  }
}

// Brackets opened and not closed, at most: the parser recurses, so that this is checked first.
int deepest(std::string_view json) {
  int depth = 0, most = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inString) {
      i += c == '\\'; // the escaped character ends nothing
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      most = std::max(most, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return most;
}

} // namespace

struct Template::Tree {
  tmpl::Body body;
};

Template::Template(std::unique_ptr<const Tree> tree) : tree(std::move(tree)) {}
Template::Template(Template &&) noexcept = default;
Template &Template::operator=(Template &&) noexcept = default;
Template::~Template() = default;

StatusOr<Template> Template::compile(std::string_view source) {
  if (source.size() > kLongestSource)
    return invalidArgument("the template has " + std::to_string(source.size()) + " bytes, at most " +
                           std::to_string(kLongestSource) + " are allowed");
  if (const size_t at = findInvalidUtf8(source); at != std::string_view::npos)
    return invalidArgument("the template is not UTF-8 at byte " + std::to_string(at));
  try {
    auto tree = std::make_unique<Tree>();
    tree->body = tmpl::parse(source);
    return Template(std::move(tree));
  } catch (const tmpl::TemplateError &error) {
    return invalidArgument("template: " + error.message);
  }
}

StatusOr<std::string> Template::render(const tmpl::Dict &variables, std::time_t now,
                                       tmpl::Budget budget) const {
  try {
    auto globals = std::make_shared<tmpl::Scope>();
    tmpl::addGlobals(*globals);
    for (const auto &[name, value] : variables)
      globals->names[tmpl::toString(name)] = value;
    tmpl::Interpreter interpreter(globals, budget, now);
    tmpl::runBody(interpreter, tree->body);
    globals->names.clear(); // values may hold each other
    return std::move(interpreter.output);
  } catch (const tmpl::TemplateError &error) {
    return invalidArgument("template: " + error.message);
  }
}

StatusOr<tmpl::Value> valueFromJson(std::string_view json) {
  if (deepest(json) > kDeepestJson)
    return invalidArgument("the JSON text is nested more than " + std::to_string(kDeepestJson) + " deep");
  try {
    return fromJson(nlohmann::ordered_json::parse(json));
  } catch (const nlohmann::json::exception &error) {
    return invalidArgument(std::string("JSON: ") + error.what());
  }
}

} // namespace dspark::llm

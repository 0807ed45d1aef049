// Values as text: Python's str() and repr(), and json.dumps.
#include "runtime/llm/template/Value.h"
#include "runtime/llm/tokenizer/Characters.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>
#include <charconv>
#include <cmath>

namespace dspark::llm::tmpl {
namespace {

constexpr int kDeepest = 200; // values can hold themselves

void checkDepth(int depth) {
  if (depth > kDeepest)
    throw TemplateError{"a value is nested more than " + std::to_string(kDeepest) + " deep"};
}

// The shortest digits that read back as the same number, with an exponent below 1e-4 and from 1e16 on.
std::string floatText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const double size = std::fabs(value);
  const bool scientific = value != 0 && (size < 1e-4 || size >= 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 scientific ? std::chars_format::scientific : std::chars_format::fixed)
                       .ptr;
  std::string text(buffer, end);
  return !scientific && text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string hexDigits(uint32_t value, int digits) {
  std::string text;
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
    text += "0123456789abcdef"[value >> shift & 15];
  return text;
}

std::string stringRepr(const std::string &text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decodeUtf8(text, i);
    if (c.value == char32_t(quote) || c.value == '\\')
      out.append(1, '\\').append(1, char(c.value));
    else if (c.value == '\n')
      out += "\\n";
    else if (c.value == '\r')
      out += "\\r";
    else if (c.value == '\t')
      out += "\\t";
    else if (c.value < 0x20 || c.value == 0x7F || (c.value < 0x100 && isControl(c.value)))
      out += "\\x" + hexDigits(uint32_t(c.value), 2);
    else
      out.append(text, i, c.bytes);
    i += c.bytes;
  }
  return out + quote;
}

std::string join(const List &items, const char *open, const char *close, int depth);

std::string repr(const Value &value, int depth) {
  checkDepth(depth);
  if (const std::string *text = value.string())
    return stringRepr(*text);
  if (const bool *flag = value.as<bool>())
    return *flag ? "True" : "False";
  if (const int64_t *number = value.as<int64_t>())
    return std::to_string(*number);
  if (const double *number = value.as<double>())
    return floatText(*number);
  if (value.isNone())
    return "None";
  if (value.isUndefined())
    return "Undefined";
  if (value.as<Tuple>())
    return join(*value.items(), "(", value.items()->size() == 1 ? ",)" : ")", depth);
  if (const List *items = value.items())
    return join(*items, "[", "]", depth);
  if (const Dict *entries = value.entries()) {
    std::string out = "{";
    for (const auto &[key, entry] : *entries)
      out += (out.size() > 1 ? ", " : "") + repr(key, depth + 1) + ": " + repr(entry, depth + 1);
    return out + "}";
  }
  return std::string("<") + value.typeName() + ">";
}

std::string join(const List &items, const char *open, const char *close, int depth) {
  std::string out = open;
  for (size_t i = 0; i < items.size(); ++i)
    out += (i ? ", " : "") + repr(items[i], depth + 1);
  return out + close;
}

std::string jsonString(const std::string &text, bool ascii) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decodeUtf8(text, i);
    constexpr std::string_view plain = "\"\\\b\f\n\r\t", escaped = "\"\\bfnrt";
    if (const size_t at = c.value < 0x80 ? plain.find(char(c.value)) : std::string_view::npos;
        at != std::string_view::npos)
      out.append(1, '\\').append(1, escaped[at]);
    else if (c.value < 0x20 || (ascii && c.value > 0x7E && c.value <= 0xFFFF))
      out += "\\u" + hexDigits(uint32_t(c.value), 4);
    else if (ascii && c.value > 0xFFFF && c.value != kInvalidCodePoint)
      out += "\\u" + hexDigits(0xD800 + uint32_t(c.value - 0x10000) / 0x400, 4) + "\\u" +
             hexDigits(0xDC00 + uint32_t(c.value) % 0x400, 4);
    else
      out.append(text, i, c.bytes);
    i += c.bytes;
  }
  return out + "\"";
}

class JsonWriter {
public:
  explicit JsonWriter(const JsonOptions &options) : options(options) {}

  void write(const Value &value, int depth) {
    checkDepth(depth);
    if (const std::string *text = value.string())
      out += jsonString(*text, options.ascii);
    else if (const bool *flag = value.as<bool>())
      out += *flag ? "true" : "false";
    else if (const int64_t *number = value.as<int64_t>())
      out += std::to_string(*number);
    else if (const double *number = value.as<double>())
      out += std::isnan(*number)   ? "NaN"
             : std::isinf(*number) ? (*number < 0 ? "-Infinity" : "Infinity")
                                   : floatText(*number);
    else if (value.isNone())
      out += "null";
    else if (const List *items = value.items())
      sequence('[', ']', items->size(), depth, [&](size_t i) { write((*items)[i], depth + 1); });
    else if (const Dict *entries = value.entries())
      object(*entries, depth);
    else
      throw TemplateError{std::string("a value of type ") + value.typeName() + " cannot be written as JSON"};
  }

  std::string out;

private:
  template <typename Write>
  void sequence(char open, char close, size_t count, int depth, Write writeElement) {
    out += open;
    for (size_t i = 0; i < count; ++i) {
      if (i)
        out += options.itemSeparator;
      newLine(depth + 1);
      writeElement(i);
    }
    if (count)
      newLine(depth);
    out += close;
  }

  void object(const Dict &entries, int depth) {
    std::vector<std::pair<std::string, const Value *>> sorted;
    for (const auto &[key, value] : entries)
      sorted.emplace_back(key.string() ? *key.string() : toJson(key), &value);
    if (options.sortKeys)
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const auto &a, const auto &b) { return a.first < b.first; });
    sequence('{', '}', sorted.size(), depth, [&](size_t i) {
      out += jsonString(sorted[i].first, options.ascii) + options.keySeparator;
      write(*sorted[i].second, depth + 1);
    });
  }

  void newLine(int depth) {
    if (options.indent >= 0)
      out.append(1, '\n').append(size_t(options.indent) * size_t(depth), ' ');
  }

  const JsonOptions &options;
};

} // namespace

std::string toRepr(const Value &value) { return repr(value, 0); }

std::string toString(const Value &value) {
  if (const std::string *text = value.string())
    return *text;
  return value.isUndefined() ? std::string() : toRepr(value);
}

std::string toJson(const Value &value, const JsonOptions &options) {
  JsonWriter writer(options);
  writer.write(value, 0);
  return std::move(writer.out);
}

} // namespace dspark::llm::tmpl

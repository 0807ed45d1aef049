#include "runtime/llm/template/Strings.h"
#include "runtime/llm/tokenizer/Characters.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>
#include <cstdio>
#include <utf8proc.h>

namespace dspark::llm::tmpl {
namespace {

std::vector<char32_t> characters(const std::string &text) {
  std::vector<char32_t> out;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decodeUtf8(text, i);
    out.push_back(c.value == kInvalidCodePoint ? 0xFFFD : c.value);
    i += c.bytes;
  }
  return out;
}

std::string fromCharacters(const std::vector<char32_t> &list, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end; ++i)
    appendUtf8(out, list[i]);
  return out;
}

char32_t toUpper(char32_t c) { return char32_t(utf8proc_toupper(utf8proc_int32_t(c))); }

// Python's upper() turns one character into two here.
void appendUpper(std::string &out, char32_t c) {
  if (c == 0xDF)
    out += "SS";
  else
    appendUtf8(out, toUpper(c));
}

// One value by a printf conversion such as ".2f"; `specification` has no percent sign.
std::string formatOne(const std::string &flags, char conversion, const Value &value) {
  constexpr size_t kLongest = 12;
  if (flags.size() > kLongest)
    throw TemplateError{"the format \"" + flags + "\" is too long"};
  char buffer[512];
  switch (conversion) {
  case 's':
  case 'r': {
    const std::string text = conversion == 's' ? toString(value) : toRepr(value);
    const int width = std::atoi(flags.c_str());
    const auto missing = size_t(std::max<int64_t>(0, std::abs(width) - int64_t(characterCount(text))));
    return width < 0 ? text + std::string(missing, ' ') : std::string(missing, ' ') + text;
  }
  case 'd':
  case 'i':
  case 'u':
    std::snprintf(buffer, sizeof buffer, ("%" + flags + "lld").c_str(),
                  static_cast<long long>(value.as<double>() ? int64_t(std::clamp(value.number(), -9e18, 9e18))
                                                            : value.integer()));
    return buffer;
  case 'x':
  case 'X':
  case 'o':
    std::snprintf(buffer, sizeof buffer, ("%" + flags + "ll" + conversion).c_str(),
                  static_cast<long long>(value.integer()));
    return buffer;
  case 'e':
  case 'f':
  case 'g':
    std::snprintf(buffer, sizeof buffer, ("%" + flags + conversion).c_str(), value.number());
    return buffer;
  default:
    throw TemplateError{std::string("the conversion \"%") + conversion + "\" is not supported"};
  }
}

} // namespace

size_t characterCount(const std::string &text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return !isContinuationByte(c); }));
}

std::string escapeHtml(const std::string &text) {
  std::string out;
  for (char c : text)
    out += c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&#34;"
           : c == '\'' ? "&#39;"
                       : std::string(1, c);
  return out;
}

std::string strip(const std::string &text, const std::string &set, bool left, bool right) {
  const std::vector<char32_t> list = characters(text), wanted = characters(set);
  const auto goes = [&](char32_t c) {
    return wanted.empty() ? isWhiteSpace(c) || (c >= 0x1C && c <= 0x1F)
                          : std::find(wanted.begin(), wanted.end(), c) != wanted.end();
  };
  size_t begin = 0, end = list.size();
  while (left && begin < end && goes(list[begin]))
    ++begin;
  while (right && begin < end && goes(list[end - 1]))
    --end;
  return fromCharacters(list, begin, end);
}

std::string upper(const std::string &text) {
  std::string out;
  for (char32_t c : characters(text))
    appendUpper(out, c);
  return out;
}

std::string lower(const std::string &text) {
  std::string out;
  for (char32_t c : characters(text))
    appendUtf8(out, toLower(c));
  return out;
}

std::string capitalize(const std::string &text) {
  std::string out;
  for (char32_t c : characters(text))
    if (out.empty())
      appendUpper(out, c);
    else
      appendUtf8(out, toLower(c));
  return out;
}

std::string title(const std::string &text) {
  std::string out;
  bool inside = false;
  for (char32_t c : characters(text)) {
    if (inside)
      appendUtf8(out, toLower(c));
    else
      appendUpper(out, c);
    inside = utf8proc_category(utf8proc_int32_t(c)) >= UTF8PROC_CATEGORY_LU &&
             utf8proc_category(utf8proc_int32_t(c)) <= UTF8PROC_CATEGORY_LO;
  }
  return out;
}

std::string replace(const std::string &text, const std::string &from, const std::string &to, int64_t count) {
  std::string out;
  size_t at = 0;
  if (from.empty()) { // between all characters
    for (; count != 0; --count) {
      out += to;
      if (at >= text.size())
        return out;
      const uint32_t bytes = decodeUtf8(text, at).bytes;
      out.append(text, at, bytes);
      at += bytes;
    }
    return out.append(text, at);
  }
  for (size_t found; count != 0 && (found = text.find(from, at)) != std::string::npos; --count) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  return out.append(text, at);
}

List split(const std::string &text, const std::string &separator, int64_t most, bool fromRight) {
  List parts;
  if (separator.empty()) {
    std::string rest = strip(text, "", true, false);
    while (!rest.empty()) {
      const std::vector<char32_t> list = characters(rest);
      const auto space = std::find_if(list.begin(), list.end(), isWhiteSpace);
      if (most >= 0 && int64_t(parts.size()) == most) {
        parts.emplace_back(strip(rest, "", false, true));
        break;
      }
      parts.emplace_back(fromCharacters(list, 0, size_t(space - list.begin())));
      rest = strip(fromCharacters(list, size_t(space - list.begin()), list.size()), "", true, false);
    }
    return parts;
  }
  if (fromRight) {
    size_t end = text.size();
    while (most < 0 || int64_t(parts.size()) < most) {
      const size_t found =
          end < separator.size() ? std::string::npos : text.rfind(separator, end - separator.size());
      if (found == std::string::npos)
        break;
      parts.emplace_back(text.substr(found + separator.size(), end - found - separator.size()));
      end = found;
    }
    parts.emplace_back(text.substr(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t at = 0;
  while (most < 0 || int64_t(parts.size()) < most) {
    const size_t found = text.find(separator, at);
    if (found == std::string::npos)
      break;
    parts.emplace_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.emplace_back(text.substr(at));
  return parts;
}

List splitLines(const std::string &text) {
  List lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}

std::string formatPercent(const std::string &pattern, const List &values) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    if (pattern.compare(i, 2, "%%") == 0) {
      out += '%';
      ++i;
      continue;
    }
    const size_t end = pattern.find_first_not_of("-+ #0123456789.", i + 1);
    if (end == std::string::npos)
      throw TemplateError{"the format \"" + pattern + "\" ends inside a conversion"};
    if (next >= values.size())
      throw TemplateError{"the format \"" + pattern + "\" has more conversions than there are values"};
    out += formatOne(pattern.substr(i + 1, end - i - 1), pattern[end], values[next++]);
    i = end;
  }
  return out;
}

std::string formatBraces(const std::string &pattern, const Arguments &arguments) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "{{") == 0 || pattern.compare(i, 2, "}}") == 0) {
      out += pattern[i++];
      continue;
    }
    if (pattern[i] != '{') {
      out += pattern[i];
      continue;
    }
    const size_t close = pattern.find('}', i);
    if (close == std::string::npos)
      throw TemplateError{"the format \"" + pattern + "\" has an open brace"};
    const std::string field = pattern.substr(i + 1, close - i - 1);
    const size_t colon = field.find(':');
    const std::string name = field.substr(0, colon),
                      specification = colon == std::string::npos ? "" : field.substr(colon + 1);
    const bool number =
        !name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 6;
    const size_t place = name.empty() ? next++ : number ? size_t(std::atoi(name.c_str())) : SIZE_MAX;
    const Value *value = arguments.find(place, name);
    if (!value)
      throw TemplateError{"the format \"" + pattern + "\" has no value for \"" + field + "\""};
    const char last = specification.empty() ? 's' : specification.back();
    const bool letter = (last >= 'a' && last <= 'z') || last == 'X';
    out += specification.empty()
               ? toString(*value)
               : formatOne(letter ? specification.substr(0, specification.size() - 1) : specification,
                           letter ? last : 's', *value);
    i = close;
  }
  return out;
}

} // namespace dspark::llm::tmpl

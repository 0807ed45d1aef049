// Python's string methods that both filters and methods need. Positions are in characters where Python's are.
#pragma once
#include "runtime/llm/template/Interpreter.h"

namespace dspark::llm::tmpl {

/// `characters` empty: white space.
std::string strip(const std::string &text, const std::string &characters, bool left, bool right);
std::string upper(const std::string &text);
std::string lower(const std::string &text);
std::string capitalize(const std::string &text);
std::string title(const std::string &text);
/// At most `count` times; negative: all.
std::string replace(const std::string &text, const std::string &from, const std::string &to, int64_t count);
/// Empty separator: runs of white space.
List split(const std::string &text, const std::string &separator, int64_t most, bool fromRight);
List splitLines(const std::string &text);
/// printf-style: "%s %d %.2f" and so on.
std::string formatPercent(const std::string &pattern, const List &values);
/// "{} {0} {name} {:.2f}".
std::string formatBraces(const std::string &pattern, const Arguments &arguments);
/// & < > " ' as HTML writes them.
std::string escapeHtml(const std::string &text);
size_t characterCount(const std::string &text);

} // namespace dspark::llm::tmpl

// Filters, tests, methods and global functions of the template language, by name.
#pragma once
#include "runtime/llm/template/Interpreter.h"

namespace dspark::llm::tmpl {

using Filter = Value (*)(Interpreter &, const Value &input, const Arguments &);
using Test = bool (*)(Interpreter &, const Value &input, const Arguments &);
using Method = Value (*)(Interpreter &, const Value &object, const Arguments &);

/// Null if there is none of that name.
Filter findFilter(std::string_view name);
Test findTest(std::string_view name);
/// The method of that name of a string, list or dict.
Method findMethod(const Value &object, std::string_view name);

/// namespace, range, dict, raise_exception, strftime_now.
void addGlobals(Scope &scope);

} // namespace dspark::llm::tmpl

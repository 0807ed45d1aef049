// Python's operators on values.
#pragma once
#include "runtime/llm/template/Interpreter.h"

namespace dspark::llm::tmpl {

/// + - * / // % ** and ~. Throws where the operands' types do not fit, a divisor is zero, or 64 bits do not
/// suffice.
Value applyBinary(Interpreter &, const std::string &op, const Value &a, const Value &b);
/// - and +.
Value applySign(const std::string &op, const Value &value);
/// == != < <= > >= in, not in.
bool applyComparison(const std::string &op, const Value &a, const Value &b);

} // namespace dspark::llm::tmpl

// Template source to its syntax tree.
#pragma once
#include "runtime/llm/template/Nodes.h"

namespace dspark::llm::tmpl {

/// Throws TemplateError with the line, what was found and what was expected.
Body parse(std::string_view source);

} // namespace dspark::llm::tmpl

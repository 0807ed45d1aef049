// Chat templates: the subset of Jinja that published templates are written in, rendered as Hugging Face's
// transformers do (trim_blocks, lstrip_blocks, loop controls, tojson without HTML escapes, raise_exception,
// strftime_now). Templates come with checkpoints and may be hostile: time, memory and depth are bounded.
#pragma once
#include "runtime/llm/template/Interpreter.h"

namespace dspark::llm {

class Template {
public:
  /// Errors: InvalidArgument with the line, what was found and what was expected; unsupported blocks and
  /// filters by name.
  static StatusOr<Template> compile(std::string_view source);

  /// `variables` are the template's globals (messages, tools, add_generation_prompt, bos_token ...). `now` is
  /// what strftime_now formats. Errors: what the template raises or does wrong, an exhausted budget.
  /// Thread-safe as long as each call has its own variables.
  StatusOr<std::string> render(const tmpl::Dict &variables, std::time_t now, tmpl::Budget budget = {}) const;

  Template(Template &&) noexcept;
  Template &operator=(Template &&) noexcept;
  ~Template();

private:
  struct Tree;
  explicit Template(std::unique_ptr<const Tree> tree);
  std::unique_ptr<const Tree> tree;
};

/// JSON text as a template's value. Errors: what is wrong with it, and where.
StatusOr<tmpl::Value> valueFromJson(std::string_view json);

} // namespace dspark::llm

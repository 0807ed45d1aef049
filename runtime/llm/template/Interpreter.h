// What a running template has: variables, output, and a budget that ends hostile templates.
#pragma once
#include "runtime/llm/template/Value.h"
#include <ctime>
#include <map>

namespace dspark::llm::tmpl {

/// Variables of a block. Loops and macros open scopes; names are looked up outwards, set in the innermost.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::map<std::string, Value, std::less<>> names;
};

struct Budget {
  uint64_t steps = 20'000'000;           // nodes evaluated
  uint64_t bytes = 128ull * 1024 * 1024; // of strings and lists made, together
  int depth = 150;                       // of calls within calls, and of nested expressions
};

class Interpreter {
public:
  Interpreter(std::shared_ptr<Scope> globals, Budget budget, std::time_t now)
      : scope(std::move(globals)), budget(budget), now(now) {}

  /// Counts one step; throws when the budget is used up.
  void step() {
    if (budget.steps-- == 0)
      throw TemplateError{"the template runs too long"};
  }
  /// Counts bytes that are about to be made.
  void charge(uint64_t bytes) {
    if (bytes > budget.bytes)
      throw TemplateError{"the template makes too much text"};
    budget.bytes -= bytes;
  }
  void print(std::string_view text) {
    charge(text.size());
    output.append(text);
  }

  Value lookup(std::string_view name) const {
    for (const Scope *s = scope.get(); s; s = s->parent.get())
      if (const auto found = s->names.find(name); found != s->names.end())
        return found->second;
    return Undefined{std::string(name)};
  }
  void set(const std::string &name, Value value) { scope->names[name] = std::move(value); }

  /// Opens a scope inside `outer` and closes it when it dies; counts as one level of depth.
  class Entered {
  public:
    Entered(Interpreter &interpreter, std::shared_ptr<Scope> outer)
        : interpreter(interpreter), saved(interpreter.scope) {
      if (interpreter.budget.depth-- == 0) {
        ++interpreter.budget.depth;
        throw TemplateError{"the template nests too deep"};
      }
      interpreter.scope = std::make_shared<Scope>(Scope{std::move(outer), {}});
    }
    ~Entered() {
      interpreter.scope = std::move(saved);
      ++interpreter.budget.depth;
    }
    Entered(const Entered &) = delete;

  private:
    Interpreter &interpreter;
    std::shared_ptr<Scope> saved;
  };

  std::shared_ptr<Scope> scope;
  std::string output;
  Budget budget;
  std::time_t now; // what strftime_now formats

  enum class Signal { None, Break, Continue };
  Signal signal = Signal::None;
};

/// Calls a function, macro or whatever else can be called; throws if `callee` cannot.
Value call(Interpreter &interpreter, const Value &callee, const Arguments &arguments);

/// object.name, and object[key]: Undefined where there is nothing; throws where the object is itself
/// undefined.
Value attribute(const Value &object, const std::string &name);
Value subscript(Interpreter &interpreter, const Value &object, const Value &key);

/// The elements that a loop over the value visits: of lists, keys of dicts, characters of strings.
List iterate(Interpreter &interpreter, const Value &value);

} // namespace dspark::llm::tmpl

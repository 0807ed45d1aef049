// --explain=FILE.html: the facts of --explain=json in a page that draws them (explain.html).
#include "tools/dspark-compile/Explain.h"

namespace dspark {

extern const char *const kExplainPage; // explain.html

// JSON inside of a script element: no tag may end it.
std::string explainPage(nlohmann::json facts, const std::string &model) {
  facts["model"] = model;
  std::string text = facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
              page = kExplainPage;
  for (size_t at = 0; (at = text.find('<', at)) != text.npos;)
    text.replace(at, 1, "\\u003c");
  constexpr std::string_view kPlace = "@FACTS@";
  return page.replace(page.find(kPlace), kPlace.size(), text);
}

} // namespace dspark

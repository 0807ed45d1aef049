// render_template TEMPLATE VARIABLES.json: prints what the template gives, for the comparison with jinja2
// (test/e2e/chat_templates). Exit code 1 with a sentence where it fails. strftime_now sees 2024-07-26 12:00
// UTC.
#include "runtime/llm/template/Template.h"
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

std::string slurp(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

dspark::StatusOr<std::string> render(const char *source, const char *variables) {
  DSPARK_ASSIGN_OR_RETURN(const dspark::llm::Template compiled,
                          dspark::llm::Template::compile(slurp(source)));
  DSPARK_ASSIGN_OR_RETURN(const dspark::llm::tmpl::Value values,
                          dspark::llm::valueFromJson(slurp(variables)));
  if (!values.entries())
    return dspark::invalidArgument("the variables are no JSON object");
  return compiled.render(*values.entries(), 1721995200);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "usage: render_template TEMPLATE VARIABLES.json\n";
    return 1;
  }
  const auto text = render(argv[1], argv[2]);
  if (!text.isOk()) {
    std::cerr << text.status().message() << "\n";
    return 1;
  }
  std::cout << *text;
}

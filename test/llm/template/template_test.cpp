// The template language, by rendering. What published templates do with it is compared with jinja2 in
// test/e2e/chat_templates.
#include "runtime/llm/template/Template.h"
#include <gtest/gtest.h>

namespace dspark::llm {
namespace {

std::string render(std::string_view source, std::string_view json = "{}", tmpl::Budget budget = {}) {
  auto compiled = Template::compile(source);
  if (!compiled.isOk())
    return "compile: " + compiled.status().message();
  auto values = valueFromJson(json);
  EXPECT_TRUE(values.isOk());
  auto text = compiled->render(*values->entries(), 0, budget);
  return text.isOk() ? *text : "error: " + text.status().message();
}

TEST(Template, trimsBlocksAsJinjaDoesWithTrimAndLstrip) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(render("a \n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(render("a {#- note -#} b"), "ab");
  EXPECT_EQ(render("{% raw %}{{ x }}{% endraw %}"), "{{ x }}");
}

TEST(Template, expressionsHavePythonsPrecedence) {
  EXPECT_EQ(render("{{ 1 + 2 * 3 ** 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}"), "19 -4 2 3.5");
  EXPECT_EQ(render("{{ not false and 1 < 2 < 3 }} {{ 'b' in 'abc' }} {{ 3 not in [1, 2] }}"),
            "True True True");
  EXPECT_EQ(render("{{ 'a' ~ 1 + 2 if 1 else 'x' }}"),
            "error: template: \"+\" does not take values of type str and int");
  EXPECT_EQ(render("{{ 1e16 }} {{ 0.1 }} {{ 2.0 }} {{ 1e-5 }}"), "1e+16 0.1 2.0 1e-05");
}

TEST(Template, valuesPrintAsPythonPrintsThem) {
  EXPECT_EQ(render("{{ x }}", R"({"x": {"a": [1, 2.5, null, true], "b": "it's"}})"),
            "{'a': [1, 2.5, None, True], 'b': \"it's\"}");
  EXPECT_EQ(render("{{ x | tojson }}", R"({"x": {"a": "é\n<", "b": [1]}})"),
            "{\"a\": \"é\\n<\", \"b\": [1]}");
  EXPECT_EQ(render("{{ x | tojson(indent=2) }}", R"({"x": {"a": [], "b": [1]}})"),
            "{\n  \"a\": [],\n  \"b\": [\n    1\n  ]\n}");
  EXPECT_EQ(render("{{ 'añb'[1:] }} {{ 'abc'[::-1] }} {{ [1, 2, 3][-2:] }} {{ 'añb' | length }}"),
            "ñb cba [2, 3] 3");
}

TEST(Template, loopsSetNothingOutsideButNamespacesDo) {
  EXPECT_EQ(render("{% set n = 0 %}{% for i in range(3) %}{% set n = i %}{% endfor %}{{ n }}"), "0");
  EXPECT_EQ(render("{% set s = namespace(n=0) %}{% for i in range(4) if i % 2 %}{% set s.n = s.n + i %}{% "
                   "endfor %}{{ s.n }}"),
            "4");
  EXPECT_EQ(render("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ loop.index }}{{ k }}{{ v }}{% if not "
                   "loop.last %},{% endif %}{% endfor %}"),
            "1a1,2b2");
  EXPECT_EQ(render("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break "
                   "%}{% endif %}{{ i }}{% endfor %}"),
            "02");
}

TEST(Template, macrosCallBlocksAndFilters) {
  EXPECT_EQ(render("{% macro f(a, b='x') %}<{{ a }}{{ b }}>{% endmacro %}{{ f(1) }}{{ f(1, b=2) }}"),
            "<1x><12>");
  EXPECT_EQ(render("{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}in{% endcall %}"), "[in]");
  EXPECT_EQ(render("{% filter upper %}a{% endfilter %}{% set x | trim %} b {% endset %}{{ x }}"), "Ab");
  EXPECT_EQ(render("{{ [{'n': 'a', 'k': 1}, {'n': 'b'}] | selectattr('k', 'defined') | map(attribute='n') | "
                   "join(',') }}"),
            "a");
}

TEST(Template, mistakesAreSentencesWithTheirLine) {
  EXPECT_EQ(render("a\n{% if x %}"), "compile: template: line 2: expected a block \"endif\", found the end");
  EXPECT_EQ(render("{{ 1 +"), "compile: template: line 1: a tag is not closed");
  EXPECT_EQ(render("{% include 'x' %}"), "compile: template: line 1: the block \"include\" is not supported");
  EXPECT_EQ(render("\n{{ 1 | nope }}"), "error: template: line 2: there is no filter \"nope\"");
  EXPECT_EQ(render("{{ a.b.c }}"), "error: template: \"a\" is undefined, it has no \"b\"");
  EXPECT_EQ(render("{{ raise_exception('No tools!') }}"), "error: template: No tools!");
}

TEST(Template, hostileTemplatesEnd) {
  EXPECT_EQ(
      render(
          "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
      "error: template: the template makes too much text");
  EXPECT_EQ(render("{{ 'a' * 99999999999 }}"), "error: template: the template makes too much text");
  EXPECT_EQ(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
            "error: template: the template nests too deep");
  EXPECT_EQ(render("{% for i in range(1000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "{}",
                   {.steps = 100000}),
            "error: template: the template runs too long");
  EXPECT_EQ(render("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}").substr(0, 47),
            "compile: template: line 1: nested more than 200");
  EXPECT_EQ(render("{{ " + std::string(5000, '-') + "1 }}").substr(0, 47),
            "compile: template: line 1: nested more than 200");
  EXPECT_EQ(render("{% set a = [] %}{% set b = a.append(a) %}{{ a }}"),
            "error: template: a value is nested more than 200 deep");
  EXPECT_FALSE(valueFromJson(std::string(100000, '[')).isOk());
}

} // namespace
} // namespace dspark::llm

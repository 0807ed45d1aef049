#include "runtime/llm/model/LanguageModel.h"
#include "runtime/llm/tokenizer/SpecFormat.h"
#include <ctime>

namespace dspark::llm {
namespace {

StatusOr<LanguageModel> openParts(std::shared_ptr<const Program> program, const PlanModelOptions &options) {
  LanguageModel opened;
  const PlanFile &file = program->file();
  if (file.tokenizer().empty())
    return invalidArgument("the plan is no language model: it has no section TOKENIZER");
  DSPARK_ASSIGN_OR_RETURN(TokenizerSpec spec, decodeTokenizer(file.tokenizer()));
  DSPARK_ASSIGN_OR_RETURN(opened.tokenizer, Tokenizer::build(std::move(spec)));
  if (!file.chatTemplate().empty()) {
    DSPARK_ASSIGN_OR_RETURN(opened.chatTemplate, Template::compile(file.chatTemplate()));
  }
  DSPARK_ASSIGN_OR_RETURN(opened.model, PlanModel::create(std::move(program), options));
  return opened;
}

// A token's text as the template's variables bos_token and eos_token have it.
std::string tokenText(const Tokenizer &tokenizer, int32_t id) {
  return id >= 0 && id < tokenizer.vocabulary().size() ? std::string(tokenizer.vocabulary().text(id))
                                                               : "";
}

} // namespace

StatusOr<LanguageModel> LanguageModel::open(std::shared_ptr<const Program> program,
                                            const PlanModelOptions &options) {
  std::string path = program->file().path();
  StatusOr<LanguageModel> opened = openParts(std::move(program), options);
  if (!opened.isOk())
    return opened.status().in(path);
  return opened;
}

StatusOr<std::vector<int32_t>> LanguageModel::encodeChat(const std::vector<Message> &messages) const {
  if (!chatTemplate)
    return invalidArgument("the model has no chat template; give it the text of a prompt");
  tmpl::List list;
  for (const Message &message : messages)
    list.push_back(tmpl::Value::dict({{"role", message.role}, {"content", message.content}}));
  tmpl::Dict variables = {{"messages", tmpl::Value::list(std::move(list))},
                          {"add_generation_prompt", true},
                          {"bos_token", tokenText(*tokenizer, tokenizer->spec().begin)},
                          {"eos_token", tokenText(*tokenizer, tokenizer->spec().end)}};
  DSPARK_ASSIGN_OR_RETURN(std::string text, chatTemplate->render(variables, std::time(nullptr)));
  return tokenizer->encode(text, {.addSpecial = false, .parseControl = true});
}

} // namespace dspark::llm

#include "frontends/checkpoint/HuggingFaceTokenizer.h"
#include "frontends/checkpoint/JsonFields.h"
#include "frontends/checkpoint/SentencePieceModel.h"
#include "frontends/checkpoint/TextFile.h"
#include "frontends/checkpoint/TokenizerJson.h"
#include <algorithm>

namespace dspark::checkpoint {
namespace {

using llm::TokenizerSpec;
using llm::TokenKind;

class Reader {
public:
  explicit Reader(const std::string &folder) : folder(folder) {}

  StatusOr<HuggingFaceTokenizer> read() {
    DSPARK_RETURN_IF_ERROR(readVocabulary());
    DSPARK_RETURN_IF_ERROR(readSurroundings());
    for (const char *name : {"config.json", "generation_config.json"})
      DSPARK_RETURN_IF_ERROR(readStops(name));
    addStop(spec.end);
    DSPARK_RETURN_IF_ERROR(readTemplateFile());
    return std::move(result);
  }

private:
  Status readVocabulary() {
    DSPARK_ASSIGN_OR_RETURN(std::optional<std::string> json, readTextFile(folder, "tokenizer.json"));
    if (json) {
      DSPARK_ASSIGN_OR_RETURN(spec, readTokenizerJson(*json));
      return Status::ok();
    }
    DSPARK_ASSIGN_OR_RETURN(std::optional<std::string> pieces, readTextFile(folder, "tokenizer.model"));
    if (!pieces)
      return {Code::NotFound, "the folder has neither tokenizer.json nor tokenizer.model"};
    StatusOr<TokenizerSpec> read = readSentencePieceModel(*pieces);
    if (!read.isOk())
      return read.status().in("tokenizer.model");
    spec = std::move(*read);
    return Status::ok();
  }

  /// Null if there is no such file.
  Status readJson(const char *name, Json &root) {
    DSPARK_ASSIGN_OR_RETURN(std::optional<std::string> text, readTextFile(folder, name));
    if (!text)
      return Status::ok();
    StatusOr<Json> parsed = parseJsonObject(*text);
    if (!parsed.isOk())
      return parsed.status().in(name);
    root = std::move(*parsed);
    return Status::ok();
  }

  Status readSurroundings() {
    Json root;
    DSPARK_RETURN_IF_ERROR(readJson("tokenizer_config.json", root));
    if (!root.is_object())
      return Status::ok();
    Status status;
    JsonFields fields(root, status, "tokenizer_config.json: ");
    addTokens(root);
    if (int32_t begin = named(root, "bos_token"); begin >= 0)
      spec.begin = begin;
    if (int32_t end = named(root, "eos_token"); end >= 0)
      spec.end = end;
    spec.addBegin = fields.boolean("add_bos_token", spec.addBegin) && spec.begin >= 0;
    spec.addEnd = fields.boolean("add_eos_token", spec.addEnd) && spec.end >= 0;
    readTemplates(root);
    return status;
  }

  // Tokens that tokenizer.model does not know; tokenizer.json has them already.
  void addTokens(const Json &root) {
    auto decoder = root.find("added_tokens_decoder");
    if (decoder == root.end() || !decoder->is_object())
      return;
    for (const auto &[key, token] : decoder->items()) {
      size_t digits = key.find_first_not_of("0123456789");
      auto content = token.is_object() ? token.find("content") : token.end();
      if (digits != std::string::npos || key.empty() || key.size() > 8 || content == token.end() ||
          !content->is_string())
        continue;
      auto id = size_t(std::stoul(key));
      if (id < spec.tokens.size() && spec.tokens[id].text == content->get<std::string>())
        continue;
      if (id > spec.tokens.size()) // a gap would be ids without a text
        continue;
      if (id == spec.tokens.size())
        spec.tokens.emplace_back();
      spec.tokens[id] = {.text = content->get<std::string>(),
                         .kind = token.contains("special") && token["special"] == true
                                     ? TokenKind::Control
                                     : TokenKind::UserDefined};
    }
  }

  // A token given by its text, or by an object with it; -1 if there is none.
  int32_t named(const Json &root, const char *key) const {
    const Json *value = root.contains(key) ? &root.at(key) : nullptr;
    if (value && value->is_object())
      value = value->contains("content") ? &value->at("content") : nullptr;
    if (!value || !value->is_string())
      return -1;
    auto text = value->get<std::string>();
    auto found = std::ranges::find(spec.tokens, text, &llm::TokenSpec::text);
    return found == spec.tokens.end() ? -1 : int32_t(found - spec.tokens.begin());
  }

  // One template, or several with names, of which a conversation's is "default".
  void readTemplates(const Json &root) {
    auto value = root.find("chat_template");
    if (value == root.end())
      return;
    if (value->is_string())
      result.chatTemplate = value->get<std::string>();
    if (value->is_array())
      for (const Json &entry : *value)
        if (entry.is_object() && entry.value("name", Json()) == "default" && entry.contains("template") &&
            entry["template"].is_string())
          result.chatTemplate = entry["template"].get<std::string>();
  }

  Status readTemplateFile() {
    DSPARK_ASSIGN_OR_RETURN(std::optional<std::string> text, readTextFile(folder, "chat_template.jinja"));
    if (text)
      result.chatTemplate = *text;
    return Status::ok();
  }

  // eos_token_id: one id, or several.
  Status readStops(const char *name) {
    Json root;
    DSPARK_RETURN_IF_ERROR(readJson(name, root));
    auto value = root.is_object() ? root.find("eos_token_id") : root.end();
    if (!root.is_object() || value == root.end())
      return Status::ok();
    Json list = value->is_array() ? *value : Json::array({*value});
    for (const Json &id : list)
      if (id.is_number_unsigned() && id.get<uint64_t>() < spec.tokens.size())
        addStop(id.get<int32_t>());
      else if (!id.is_null())
        return corruptFile(std::string(name) + ": eos_token_id is " + id.dump().substr(0, 80) +
                           ", the tokenizer has " + std::to_string(spec.tokens.size()) + " tokens");
    return Status::ok();
  }

  void addStop(int32_t id) {
    if (id >= 0 && std::ranges::find(spec.stop, id) == spec.stop.end())
      spec.stop.push_back(id);
  }

  const std::string &folder;
  HuggingFaceTokenizer result;
  TokenizerSpec &spec = result.spec;
};

} // namespace

StatusOr<HuggingFaceTokenizer> readHuggingFaceTokenizer(const std::string &folder) {
  return Reader(folder).read();
}

} // namespace dspark::checkpoint

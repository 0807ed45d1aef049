#include "tools/dspark-rt/Conversation.h"
#include "tools/dspark-rt/Language.h"
#include <nlohmann/json.hpp>
#include <sstream>

namespace dspark {
namespace {

using nlohmann::json;

Status readMessages(const json &list, Conversation &conversation) {
  for (const json &message : list) {
    bool isMessage = message.is_object() && message.contains("role") && message["role"].is_string() &&
                     message.contains("content") && message["content"].is_string();
    if (!isMessage)
      return invalidArgument("a message is no object with texts 'role' and 'content'");
    conversation.messages.push_back({message["role"], message["content"]});
  }
  return list.empty() ? invalidArgument("the list of messages is empty") : Status::ok();
}

Status readTurns(const json &list, Conversation &conversation) {
  for (const json &turn : list) {
    if (!turn.is_string())
      return invalidArgument("a turn is " + std::string(turn.type_name()) + ", expected a text");
    conversation.turns.push_back(turn);
  }
  return list.empty() ? invalidArgument("the list of turns is empty") : Status::ok();
}

Status readTokens(const json &list, Conversation &conversation) {
  for (const json &token : list) {
    if (!token.is_number_unsigned() || token.get<uint64_t>() > INT32_MAX)
      return invalidArgument("a token is " + token.dump() + ", expected an id");
    conversation.tokens.push_back(token.get<int32_t>());
  }
  return list.empty() ? invalidArgument("the list of tokens is empty") : Status::ok();
}

StatusOr<Conversation> readLine(const std::string &line, const std::string &system) {
  json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return invalidArgument("no JSON object");
  Conversation conversation;
  if (object.contains("prompt") && object["prompt"].is_string() && !object["prompt"].empty()) {
    conversation.prompt = object["prompt"];
    if (!conversation.prompt.empty())
      return conversation;
  }
  if (object.contains("tokens") && object["tokens"].is_array()) {
    DSPARK_RETURN_IF_ERROR(readTokens(object["tokens"], conversation));
    return conversation;
  }
  if (!system.empty())
    conversation.messages.push_back({"system", system});
  Status status = object.contains("messages") && object["messages"].is_array()
                      ? readMessages(object["messages"], conversation)
                  : object.contains("turns") && object["turns"].is_array()
                      ? readTurns(object["turns"], conversation)
                      : invalidArgument("expected a text 'prompt' or a list 'tokens', 'messages' or 'turns'");
  DSPARK_RETURN_IF_ERROR(std::move(status));
  return conversation;
}

} // namespace

StatusOr<std::vector<int32_t>> Conversation::encode(const llm::LanguageModel &language) const {
  if (!tokens.empty())
    return tokens;
  return prompt.empty() ? language.encodeChat(messages) : language.tokenizer->encode(prompt);
}

StatusOr<std::vector<Conversation>> readConversations(const std::string &path, const std::string &system) {
  DSPARK_ASSIGN_OR_RETURN(std::string text, readText(path));
  std::istringstream lines(text);
  std::vector<Conversation> conversations;
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    auto conversation = readLine(line, system);
    if (!conversation.isOk())
      return conversation.status().in(path + ": line " + std::to_string(number));
    conversations.push_back(std::move(*conversation));
  }
  if (conversations.empty())
    return invalidArgument(path + ": there is no line with a prompt");
  return conversations;
}

} // namespace dspark

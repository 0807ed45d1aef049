// A conversation as a line of a --prompts file gives it: {"prompt": TEXT}, {"tokens": [ID ...]}, {"messages":
// [{"role", "content"}
// ...]} or
// {"turns": [TEXT ...]}, whose turns are answered one after another.
#pragma once
#include "runtime/llm/model/LanguageModel.h"
#include <deque>

namespace dspark {

struct Conversation {
  std::string prompt;          // as it is, without a template; "" for a chat
  std::vector<int32_t> tokens; // the prompt's ids, if it is given so
  std::vector<llm::Message> messages;
  std::deque<std::string> turns; // of the user, still to come

  /// Moves the next turn of the user, if there is one, to the messages.
  void takeTurn() {
    if (turns.empty())
      return;
    messages.push_back({"user", turns.front()});
    turns.pop_front();
  }
  StatusOr<std::vector<int32_t>> encode(const llm::LanguageModel &language) const;
};

/// One per line that is not blank. Errors name the file and the line.
StatusOr<std::vector<Conversation>> readConversations(const std::string &path, const std::string &system);

} // namespace dspark

#include "runtime/llm/speculation/LookupDrafter.h"
#include <algorithm>

namespace dspark::llm {

Status LookupDrafter::append(SequenceId sequence, std::span<const int32_t> tokens) {
  DSPARK_ASSIGN_OR_RETURN(Text * text, texts.find(sequence));
  for (int32_t token : tokens)
    text->automaton.append(token);
  store.follow(text->place, text->automaton.text(), int32_t(tokens.size()));
  return Status::ok();
}

Status LookupDrafter::truncate(SequenceId sequence, int64_t length) {
  DSPARK_ASSIGN_OR_RETURN(Text * text, texts.find(sequence));
  const std::span<const int32_t> tokens = text->automaton.text();
  DSPARK_RETURN_IF_ERROR(texts.checkCut(sequence, int64_t(tokens.size()), length));
  Text shorter;
  for (int32_t token : tokens.first(size_t(length)))
    shorter.automaton.append(token);
  store.follow(shorter.place, shorter.automaton.text(), int32_t(length));
  *text = std::move(shorter);
  return Status::ok();
}

void LookupDrafter::forget(SequenceId sequence) {
  if (const Text *text = texts.get(sequence))
    store.add(text->automaton.text());
  texts.forget(sequence);
}

Status LookupDrafter::propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) {
  for (size_t i = 0; i < requests.size(); ++i) {
    DSPARK_ASSIGN_OR_RETURN(Text * text, texts.find(requests[i].sequence));
    const int32_t count = std::min(requests[i].limit, options.longestDraft);
    const SuffixAutomaton::Match own = text->automaton.repeated();
    const int32_t leastMatch = std::max(options.leastMatch, 1);
    Draft &draft = drafts[i];
    // The text itself is the better source: others only where they match longer.
    draft.match = store.continuation(text->place, std::max(leastMatch, own.length + 1), count, draft.tokens);
    if (draft.match > 0 || own.length < leastMatch)
      continue;
    draft.match = own.length;
    if (options.continuation == LookupOptions::Continuation::Latest)
      text->automaton.latestContinuation(own, count, draft.tokens);
    else
      text->automaton.likeliestContinuation(own, count, draft.tokens);
  }
  return Status::ok();
}

} // namespace dspark::llm

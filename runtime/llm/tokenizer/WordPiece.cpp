#include "runtime/llm/tokenizer/WordPiece.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>

namespace dspark::llm {

void WordPiece::encode(std::string_view word, std::vector<int32_t> &ids) const {
  const size_t first = ids.size();
  const auto isStart = [](char c) { return !isContinuationByte(c); };
  bool whole = size_t(std::count_if(word.begin(), word.end(), isStart)) <= longestWord;
  std::string candidate;
  for (size_t begin = 0; whole && begin < word.size();) {
    const size_t prefix = begin ? continuation.size() : 0;
    const size_t longest = vocabulary->longestText() > prefix ? vocabulary->longestText() - prefix : 0;
    candidate.assign(begin ? continuation : "").append(word.substr(begin, longest));
    int32_t id = -1;
    for (; candidate.size() > prefix; candidate.pop_back()) {
      id = vocabulary->find(candidate);
      if (id >= 0 &&
          (vocabulary->kind(id) == TokenKind::Normal || vocabulary->kind(id) == TokenKind::UserDefined))
        break;
      id = -1;
    }
    whole = id >= 0;
    ids.push_back(id);
    begin += candidate.size() - prefix;
  }
  if (whole)
    return;
  ids.resize(first);
  if (unknown >= 0)
    ids.push_back(unknown);
}

} // namespace dspark::llm

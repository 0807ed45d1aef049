#include "runtime/llm/tokenizer/Unigram.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>
#include <limits>

namespace dspark::llm {

Unigram::Unigram(const TokenizerSpec &spec, const Vocabulary &vocabulary)
    : vocabulary(&vocabulary), unknown(spec.unknown), fuseUnknown(spec.fuseUnknown) {
  double least = 0;
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.kind(id) == TokenKind::Normal)
      least = std::min(least, vocabulary.score(id));
  unknownScore = least - 10;
}

void Unigram::encode(std::string_view piece, std::vector<int32_t> &ids) const {
  // best[i]: the best way to write the first i bytes, and the token it ends with (-1: an unknown character).
  struct Step {
    double score = -std::numeric_limits<double>::infinity();
    size_t begin = 0;
    int32_t id = -1;
  };
  std::vector<Step> best(piece.size() + 1);
  best[0].score = 0;
  for (size_t begin = 0; begin < piece.size();) {
    const uint32_t width = decodeUtf8(piece, begin).bytes;
    const double before = best[begin].score;
    const size_t last = std::min(piece.size(), begin + vocabulary->longestText());
    for (size_t end = begin; end < last;) {
      end += decodeUtf8(piece, end).bytes;
      if (end > last)
        break;
      const int32_t id = vocabulary->find(piece.substr(begin, end - begin));
      if (id < 0 ||
          (vocabulary->kind(id) != TokenKind::Normal && vocabulary->kind(id) != TokenKind::UserDefined))
        continue;
      if (const double score = before + vocabulary->score(id); score > best[end].score)
        best[end] = {score, begin, id};
    }
    if (const double score = before + unknownScore; score > best[begin + width].score)
      best[begin + width] = {score, begin, -1};
    begin += width;
  }
  const size_t first = ids.size();
  for (size_t end = piece.size(); end > 0; end = best[end].begin)
    if (best[end].id >= 0)
      ids.push_back(best[end].id);
    else
      appendUnknown(piece.substr(best[end].begin, end - best[end].begin), first, ids);
  std::reverse(ids.begin() + int64_t(first), ids.end());
}

// In reverse order, as everything that encode appends before it turns the list round.
void Unigram::appendUnknown(std::string_view text, size_t first, std::vector<int32_t> &ids) const {
  if (std::all_of(text.begin(), text.end(), [&](char c) { return vocabulary->byteToken(uint8_t(c)) >= 0; })) {
    for (size_t i = text.size(); i-- > 0;)
      ids.push_back(vocabulary->byteToken(uint8_t(text[i])));
  } else if (unknown >= 0 && !(fuseUnknown && ids.size() > first && ids.back() == unknown)) {
    ids.push_back(unknown);
  }
}

} // namespace dspark::llm

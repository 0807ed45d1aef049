#include "runtime/llm/tokenizer/PreTokenizer.h"
#include "runtime/llm/tokenizer/Characters.h"
#include "runtime/llm/tokenizer/Utf8.h"

namespace dspark::llm {
namespace {

using Pieces = std::vector<std::string_view>;

void appendIfAny(Pieces &pieces, std::string_view piece) {
  if (!piece.empty())
    pieces.push_back(piece);
}

void splitBert(std::string_view text, Pieces &pieces) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decodeUtf8(text, i);
    if (const bool mark = isPunctuation(c.value); mark || isWhiteSpace(c.value)) {
      appendIfAny(pieces, text.substr(begin, i - begin));
      if (mark)
        pieces.push_back(text.substr(i, c.bytes));
      begin = i + c.bytes;
    }
    i += c.bytes;
  }
  appendIfAny(pieces, text.substr(begin));
}

Status splitRegex(const Regex &regex, PreTokenizerKind kind, std::string_view text, Pieces &pieces) {
  size_t begin = 0;
  const auto between = [&](size_t end) {
    if (kind != PreTokenizerKind::RegexKeep)
      appendIfAny(pieces, text.substr(begin, end - begin));
  };
  DSPARK_RETURN_IF_ERROR(regex.forEachMatch(text, [&](size_t from, size_t to) {
    between(from);
    if (kind != PreTokenizerKind::RegexRemove)
      pieces.push_back(text.substr(from, to - from));
    begin = to;
  }));
  between(text.size());
  return Status::ok();
}

} // namespace

StatusOr<PreTokenizer> PreTokenizer::build(const std::vector<PreTokenizerStep> &steps) {
  PreTokenizer result;
  for (const PreTokenizerStep &step : steps) {
    Regex regex;
    if (step.kind != PreTokenizerKind::Bert) {
      DSPARK_ASSIGN_OR_RETURN(regex, Regex::compile(step.pattern));
    }
    result.steps.push_back({step.kind, std::move(regex)});
  }
  return result;
}

StatusOr<std::vector<std::string_view>> PreTokenizer::split(std::string_view text) const {
  Pieces pieces;
  appendIfAny(pieces, text);
  for (const Step &step : steps) {
    Pieces next;
    for (std::string_view piece : pieces)
      if (step.kind == PreTokenizerKind::Bert)
        splitBert(piece, next);
      else
        DSPARK_RETURN_IF_ERROR(splitRegex(step.regex, step.kind, piece, next));
    pieces = std::move(next);
  }
  return pieces;
}

} // namespace dspark::llm

#include "runtime/llm/tokenizer/Tokenizer.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>

namespace dspark::llm {
namespace {

constexpr size_t kMostTokens = 16 * 1024 * 1024;

Status checkId(const TokenizerSpec &spec, const char *what, int32_t id) {
  if (id >= -1 && id < int32_t(spec.tokens.size()))
    return Status::ok();
  return invalidArgument("the tokenizer's " + std::string(what) + " token is " + std::to_string(id) +
                         ", but it has " + std::to_string(spec.tokens.size()) + " tokens");
}

Status check(const TokenizerSpec &spec) {
  if (spec.tokens.empty() || spec.tokens.size() > kMostTokens)
    return invalidArgument("the tokenizer has " + std::to_string(spec.tokens.size()) + " tokens; 1 to " +
                           std::to_string(kMostTokens) + " are allowed");
  size_t bytes = 0;
  for (const TokenSpec &token : spec.tokens)
    bytes += token.text.size();
  if (bytes > UINT32_MAX)
    return invalidArgument("the tokenizer's vocabulary has more than 4 GiB of text");
  DSPARK_RETURN_IF_ERROR(checkId(spec, "begin", spec.begin));
  DSPARK_RETURN_IF_ERROR(checkId(spec, "end", spec.end));
  DSPARK_RETURN_IF_ERROR(checkId(spec, "separator", spec.separator));
  DSPARK_RETURN_IF_ERROR(checkId(spec, "unknown", spec.unknown));
  for (int32_t id : spec.stop)
    DSPARK_RETURN_IF_ERROR(checkId(spec, "stop", id));
  return Status::ok();
}

} // namespace

Tokenizer::Tokenizer(TokenizerSpec spec) : description(std::move(spec)), tokens(description.tokens) {}

StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::build(TokenizerSpec spec) {
  DSPARK_RETURN_IF_ERROR(check(spec));
  std::unique_ptr<Tokenizer> result(new Tokenizer(std::move(spec)));
  TokenizerSpec &own = result->description;
  DSPARK_ASSIGN_OR_RETURN(result->normalizer, Normalizer::build(std::move(own.normalizer)));
  DSPARK_ASSIGN_OR_RETURN(result->rewriter, Normalizer::build(std::move(own.rewrite)));
  DSPARK_ASSIGN_OR_RETURN(result->preTokenizer, PreTokenizer::build(own.preTokenizer));
  const auto valid = [](std::string text) {
    return findInvalidUtf8(text) == std::string::npos ? text : std::string();
  };
  result->before =
      std::make_unique<AddedTokens>(own, false, [&](const TokenSpec &token) { return valid(token.text); });
  result->after = std::make_unique<AddedTokens>(own, true, [&](const TokenSpec &token) {
    return valid(token.text).empty() ? std::string() : result->normalizer.apply(token.text, false);
  });
  switch (own.model) {
  case ModelKind::Merges:
  case ModelKind::ScoredMerges: {
    DSPARK_ASSIGN_OR_RETURN(Merges merges, Merges::build(own, result->tokens));
    result->model = std::move(merges);
    break;
  }
  case ModelKind::Unigram:
    result->model = Unigram(own, result->tokens);
    break;
  case ModelKind::WordPiece:
    result->model = WordPiece(own, result->tokens);
    break;
  }
  own.tokens = {};
  own.merges = {};
  return result;
}

StatusOr<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (const size_t at = findInvalidUtf8(text); at != std::string_view::npos)
    return invalidArgument("the text is not UTF-8: byte " + std::to_string(at) + " of " +
                           std::to_string(text.size()) + " starts no character");
  std::vector<int32_t> ids;
  if (options.addSpecial && description.addBegin && description.begin >= 0)
    ids.push_back(description.begin);
  for (const Stretch &stretch : before->split(text, options.parseControl))
    if (stretch.id >= 0)
      ids.push_back(stretch.id);
    else
      DSPARK_RETURN_IF_ERROR(
          encodeText(stretch.text, stretch.text.data() == text.data(), options.parseControl, ids));
  if (options.addSpecial && description.addEnd && description.end >= 0)
    ids.push_back(description.end);
  return ids;
}

Status Tokenizer::encodeText(std::string_view text, bool first, bool allowControl,
                             std::vector<int32_t> &ids) const {
  const std::string normalized = normalizer.apply(text, first);
  for (const Stretch &stretch : after->split(normalized, allowControl)) {
    if (stretch.id >= 0) {
      ids.push_back(stretch.id);
      continue;
    }
    const std::string rewritten =
        rewriter.apply(stretch.text, first && stretch.text.data() == normalized.data());
    DSPARK_ASSIGN_OR_RETURN(const std::vector<std::string_view> pieces, preTokenizer.split(rewritten));
    for (std::string_view piece : pieces)
      std::visit(
          [&](const auto &encoder) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(encoder)>, std::monostate>)
              encoder.encode(piece, ids);
          },
          model);
  }
  return Status::ok();
}

bool Tokenizer::isStop(int32_t id) const {
  return std::find(description.stop.begin(), description.stop.end(), id) != description.stop.end();
}

} // namespace dspark::llm

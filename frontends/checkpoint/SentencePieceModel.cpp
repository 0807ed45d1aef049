#include "frontends/checkpoint/SentencePieceModel.h"
#include <bit>
#include <cstring>

namespace dspark::checkpoint {
namespace {

using namespace dspark::llm;

constexpr const char *kSpaceSymbol = "\xE2\x96\x81"; // U+2581

// One message, field by field.
class Message {
public:
  explicit Message(std::string_view bytes) : left(bytes) {}

  uint32_t number = 0;   // of the field
  uint64_t value = 0;    // of varints and fixed ones
  std::string_view text; // of strings and messages
  bool isCorrupt = false;

  /// False at the end, or where the bytes are no message.
  bool next() {
    if (left.empty() || isCorrupt)
      return false;
    uint64_t tag = varint();
    number = uint32_t(tag >> 3);
    text = {};
    value = 0;
    switch (tag & 7) {
    case 0:
      value = varint();
      break;
    case 1:
      value = fixed(8);
      break;
    case 2: {
      uint64_t size = varint();
      isCorrupt |= size > left.size();
      if (!isCorrupt) {
        text = left.substr(0, size);
        left.remove_prefix(size);
      }
      break;
    }
    case 5:
      value = fixed(4);
      break;
    default:
      isCorrupt = true;
    }
    return !isCorrupt;
  }

  float real() const { return std::bit_cast<float>(uint32_t(value)); }

private:
  uint64_t varint() {
    uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left.empty())
        break;
      auto byte = uint8_t(left[0]);
      left.remove_prefix(1);
      result |= uint64_t(byte & 127) << shift;
      if (byte < 128)
        return result;
    }
    isCorrupt = true;
    return 0;
  }
  uint64_t fixed(size_t size) {
    uint64_t result = 0;
    if (size > left.size()) {
      isCorrupt = true;
      return 0;
    }
    std::memcpy(&result, left.data(), size);
    left.remove_prefix(size);
    return result;
  }

  std::string_view left;
};

// Field numbers and defaults are those of sentencepiece_model.proto.
struct Settings {
  uint64_t model = 1; // 1 unigram, 2 bpe, 3 word, 4 char
  int64_t unknown = 0, begin = 1, end = 2;
  std::string_view charsmap;
  bool addsPrefix = true, collapsesSpaces = true, escapesSpaces = true;
};

bool readPiece(std::string_view bytes, TokenSpec &token) {
  constexpr TokenKind kinds[] = {TokenKind::Normal,  TokenKind::Normal,      TokenKind::Unknown,
                                 TokenKind::Control, TokenKind::UserDefined, TokenKind::Unused,
                                 TokenKind::Byte};
  Message piece(bytes);
  while (piece.next())
    if (piece.number == 1)
      token.text = std::string(piece.text);
    else if (piece.number == 2)
      token.score = piece.real();
    else if (piece.number == 3)
      token.kind = piece.value < std::size(kinds) ? kinds[piece.value] : TokenKind::Normal;
  return !piece.isCorrupt;
}

bool readTrainer(std::string_view bytes, Settings &settings) {
  Message trainer(bytes);
  while (trainer.next())
    if (trainer.number == 3)
      settings.model = trainer.value;
    else if (trainer.number == 40)
      settings.unknown = int64_t(trainer.value);
    else if (trainer.number == 41)
      settings.begin = int64_t(trainer.value);
    else if (trainer.number == 42)
      settings.end = int64_t(trainer.value);
  return !trainer.isCorrupt;
}

bool readNormalizer(std::string_view bytes, Settings &settings) {
  Message normalizer(bytes);
  while (normalizer.next())
    if (normalizer.number == 2)
      settings.charsmap = normalizer.text;
    else if (normalizer.number == 3)
      settings.addsPrefix = normalizer.value != 0;
    else if (normalizer.number == 4)
      settings.collapsesSpaces = normalizer.value != 0;
    else if (normalizer.number == 5)
      settings.escapesSpaces = normalizer.value != 0;
  return !normalizer.isCorrupt;
}

void setNormalizer(const Settings &settings, TokenizerSpec &spec) {
  auto add = [&](NormalizerKind kind, std::string pattern = "", std::string content = "") {
    spec.normalizer.push_back({kind, std::move(pattern), std::move(content)});
  };
  if (!settings.charsmap.empty())
    add(NormalizerKind::Charsmap, "", std::string(settings.charsmap));
  if (settings.collapsesSpaces) {
    add(NormalizerKind::StripLeft);
    add(NormalizerKind::StripRight);
    add(NormalizerKind::CollapseSpaces);
  }
  if (settings.addsPrefix)
    add(NormalizerKind::Prepend, "", " ");
  add(NormalizerKind::Replace, " ", kSpaceSymbol);
  spec.spaceSymbol = true;
  spec.dropLeadingSpace = settings.addsPrefix;
}

} // namespace

StatusOr<TokenizerSpec> readSentencePieceModel(std::string_view bytes) {
  TokenizerSpec spec;
  Settings settings;
  Message model(bytes);
  bool isSound = true;
  while (isSound && model.next())
    if (model.number == 1)
      isSound = readPiece(model.text, spec.tokens.emplace_back());
    else if (model.number == 2)
      isSound = readTrainer(model.text, settings);
    else if (model.number == 3)
      isSound = readNormalizer(model.text, settings);
  if (!isSound || model.isCorrupt || spec.tokens.empty())
    return corruptFile("this is no model of SentencePiece");
  if (settings.model != 1 && settings.model != 2)
    return Status(Code::Unsupported,
                  "model_type is " + std::to_string(settings.model) + ", expected 1 (unigram) or 2 (BPE)");
  if (!settings.escapesSpaces)
    return Status(Code::Unsupported, "escape_whitespaces is false");
  spec.model = settings.model == 1 ? ModelKind::Unigram : ModelKind::ScoredMerges;
  setNormalizer(settings, spec);
  auto id = [&](int64_t given) {
    return given >= 0 && given < int64_t(spec.tokens.size()) ? int32_t(given) : -1;
  };
  spec.unknown = id(settings.unknown);
  spec.begin = id(settings.begin);
  spec.end = id(settings.end);
  spec.addBegin = spec.begin >= 0; // as Llama's and Gemma's tokenizers do; tokenizer_config.json may differ
  return spec;
}

} // namespace dspark::checkpoint

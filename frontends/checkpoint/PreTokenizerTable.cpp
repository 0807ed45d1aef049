// Sources of the patterns: the tokenizer.json files that the models were published with. Where a file
// combines several pre-tokenisers (single digits, then GPT-2's pattern), the row lists them in the same
// order.
#include "frontends/checkpoint/PreTokenizerTable.h"
#include <algorithm>

namespace dspark::checkpoint {
namespace {

// Named parts, so that rows show where they differ.
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define MARKS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define WORDS R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+"
#define CAPITALS R"([^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*"

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 = CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" MARKS SPACES;
constexpr std::string_view kQwen2 = CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" MARKS SPACES;
constexpr std::string_view kQwen35 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" SPACES;
constexpr std::string_view kO200k =
    WORDS CONTRACTIONS "?|" CAPITALS CONTRACTIONS R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES;
constexpr std::string_view kTekken = WORDS "|" CAPITALS R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES;
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" SPACES;
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kChineseJapanese = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
// Letters of scripts with upper and lower case, as deepseek-llm lists them.
constexpr std::string_view kLatinGreekCyrillic =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})"
    R"(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})"
    R"(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"
    R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
    R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
    R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"
    R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";

const PreTokenizerRow kRows[] = {
    {{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "mellum", "modern-bert",
      "a.x-4.0", "mpt", "olmo", "jais", "trillion", "granite-docling", "jina-v1-en", "jina-v2-code",
      "roberta-bpe"},
     {kGpt2}},
    {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
      "jina-v5-nano"},
     {kLlama3},
     true},
    {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5"}, {kLlama3}},
    {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "megrez", "solar-open",
      "grok-2"},
     {kQwen2}},
    {{"qwen35"}, {kQwen35}},
    {{"gpt-4o", "llama4", "kanana2", "minimax-m2"}, {kO200k}},
    {{"tekken"}, {kTekken}, true},
    {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "exaone4", "minerva-7b",
      "mellum2"},
     {kDigit, kGpt2}},
    {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
    {{"deepseek-llm"},
     {R"([\r\n])", kLatinGreekCyrillic,
      R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)", R"(\s+$)",
      R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N}+)"}},
    {{"deepseek-coder"},
     {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
      kDigit}},
    {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, {kThreeDigits, kChineseJapanese, kDeepseek3}},
    {{"poro-chat", "bloom", "gpt3-finnish"}, {kBloom}},
    {{"viking"}, {kBloom, kDigit}},
    {{"default", ""}, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
};

} // namespace

const PreTokenizerRow *findPreTokenizer(std::string_view name) {
  for (const PreTokenizerRow &row : kRows)
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end())
      return &row;
  return nullptr;
}

} // namespace dspark::checkpoint

// Golden token ids of fifteen published tokenizers: the files that llama.cpp's own tests use. tools/models
// fetches them; where they are absent the test says so and is skipped.
#include "frontends/checkpoint/GgufTokenizer.h"
#include "runtime/llm/tokenizer/Detokenizer.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace dspark::llm {
namespace {

const std::filesystem::path kFolder = DSPARK_CACHE "/models/vocab";

std::string slurp(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> splitBy(const std::string &text, const std::string &mark) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t next = text.find(mark, at);
    parts.push_back(text.substr(at, next - at));
    if (next == std::string::npos)
      return parts;
    at = next + mark.size();
  }
}

class Golden : public testing::TestWithParam<const char *> {};

TEST_P(Golden, idsEqualThePublishedOnes) {
  const std::filesystem::path path = kFolder / (std::string("ggml-vocab-") + GetParam() + ".gguf");
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there: run tools/models";
  auto file = checkpoint::GgufFile::open(path.string());
  ASSERT_TRUE(file.isOk()) << file.status().message();
  auto spec = checkpoint::readGgufTokenizer(**file);
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  auto tokenizer = Tokenizer::build(std::move(*spec));
  ASSERT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
  const std::vector<std::string> inputs = splitBy(slurp(path.string() + ".inp"), "\n__ggml_vocab_test__\n");
  std::istringstream outputs(slurp(path.string() + ".out"));
  ASSERT_GE(inputs.size(), 45u);
  for (const std::string &input : inputs) {
    std::string line;
    if (!std::getline(outputs, line))
      break;
    std::istringstream numbers(line);
    std::vector<int32_t> expected;
    for (int32_t id; numbers >> id;)
      expected.push_back(id);
    auto ids = (*tokenizer)->encode(input, {.addSpecial = false, .parseControl = false});
    ASSERT_TRUE(ids.isOk()) << ids.status().message();
    EXPECT_EQ(*ids, expected) << "input: " << input;
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Golden,
                         testing::Values("bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon",
                                         "gemma-4", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3",
                                         "qwen2", "qwen35", "refact", "starcoder"),
                         [](const auto &info) {
                           std::string name = info.param;
                           for (char &c : name)
                             c = c == '-' ? '_' : c;
                           return name;
                         });

} // namespace
} // namespace dspark::llm

// A real checkpoint from its package (tools/models): SmolLM2-135M-Instruct in GGUF. The ids of the answer are
// those of a greedy run in f32 over the file's own weights.
#include "frontends/checkpoint/GgufTokenizer.h"
#include "runtime/llm/template/Template.h"
#include "runtime/llm/tokenizer/Detokenizer.h"
#include <filesystem>
#include <gtest/gtest.h>

namespace dspark::checkpoint {
namespace {

TEST(SmolLm2, conversationBecomesThePromptAndIdsBecomeTheAnswer) {
  const std::string path = DSPARK_CACHE "/models/smollm2-135m-instruct-q4_1.gguf";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there: run tools/models";
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ((*file)->tensors().size(), 272u);
  const GgufTensor *embedding = (*file)->tensor("token_embd.weight");
  ASSERT_TRUE(embedding);
  EXPECT_EQ(embedding->dims, (std::vector<int64_t>{49152, 576}));
  EXPECT_EQ(embedding->type.name, "Q8_0");

  auto spec = readGgufTokenizer(**file);
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  const auto tokenizer = llm::Tokenizer::build(std::move(*spec));
  ASSERT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
  const auto chat = llm::Template::compile(*(*file)->find("tokenizer.chat_template")->string());
  ASSERT_TRUE(chat.isOk()) << chat.status().message();
  const auto variables = llm::valueFromJson(
      R"({"messages": [{"role": "user", "content": "What is the capital of France?"}], "add_generation_prompt": true})");
  const auto prompt = chat->render(*variables->entries(), 0);
  ASSERT_TRUE(prompt.isOk()) << prompt.status().message();
  const auto ids = (*tokenizer)->encode(*prompt, {.parseControl = true});
  EXPECT_EQ(*ids, (std::vector<int32_t>{1,    9690, 198,   2683, 359,  253,  5356, 5646,  11173, 3365,
                                        3511, 308,  34519, 28,   7018, 411,  407,  19712, 8182,  2,
                                        198,  1,    4093,  198,  1780, 314,  260,  3575,  282,   4649,
                                        47,   2,    198,   1,    520,  9531, 198}));
  EXPECT_EQ(llm::decode(**tokenizer, {504, 3575, 282, 4649, 314, 7042, 30, 2}),
            "The capital of France is Paris.");
  EXPECT_TRUE((*tokenizer)->isStop(2));
}

} // namespace
} // namespace dspark::checkpoint

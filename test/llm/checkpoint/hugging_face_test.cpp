// config.json, and what stands beside a tokenizer: settings arrive, and what is wrong is named.
#include "frontends/checkpoint/HuggingFaceDecoder.h"
#include "frontends/checkpoint/HuggingFaceTokenizer.h"
#include "frontends/checkpoint/SentencePieceModel.h"
#include "test/runtime/TemporaryFolder.h"
#include <bit>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace dspark::checkpoint {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json config(const std::string &changes = "{}") {
  Json json =
      Json::parse(R"({"model_type": "llama", "vocab_size": 96, "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 64})");
  json.merge_patch(Json::parse(changes));
  return json;
}
StatusOr<HuggingFaceConfig> read(const std::string &changes) {
  return readHuggingFaceConfig(config(changes).dump());
}
std::string failure(const std::string &changes) {
  auto made = read(changes);
  return made.isOk() ? "fine" : made.status().message();
}

TEST(HuggingFaceConfig, defaultsAreThoseOfTheClass) {
  auto llama = read("{}");
  ASSERT_TRUE(llama.isOk()) << llama.status().message();
  EXPECT_EQ(llama->decoder.kvHeads, 4);
  EXPECT_EQ(llama->decoder.headSize, 16);
  EXPECT_EQ(llama->decoder.layers[2].window, -1);
  EXPECT_FALSE(llama->tensors.isTied);
  auto mistral = read(R"({"model_type": "mistral", "num_key_value_heads": 2})");
  EXPECT_EQ(mistral->decoder.layers[2].window, 4096);
  auto gemma = read(R"({"model_type": "gemma3_text"})");
  EXPECT_EQ(gemma->decoder.headSize, 256);
  EXPECT_EQ(gemma->decoder.attentionScale, 1.0 / 16);
  EXPECT_EQ(gemma->decoder.embeddingScale, 8);
  EXPECT_EQ(gemma->decoder.ropes.size(), 2u);
  EXPECT_EQ(gemma->decoder.layers[0].rope, 1);
  EXPECT_TRUE(gemma->tensors.isTied && gemma->tensors.addsOneToNorms && gemma->tensors.hasHeadNorms);
}

TEST(HuggingFaceConfig, textModelsOfLargerOnesAreFound) {
  Json json = {{"model_type", "gemma3"}, {"text_config", config(R"({"model_type": "gemma3_text"})")}};
  auto made = readHuggingFaceConfig(json.dump());
  ASSERT_TRUE(made.isOk()) << made.status().message();
  EXPECT_EQ(made->decoder.architecture, "gemma3");
}

TEST(HuggingFaceConfig, badSettingsAreNamed) {
  EXPECT_EQ(failure(R"({"model_type": "mamba"})"),
            "model_type is 'mamba', expected one of llama, mistral, "
            "qwen2, qwen3, qwen3_moe, mixtral, deepseek_v2, deepseek_v3, phi3, gemma, "
            "gemma2, gemma3_text");
  EXPECT_EQ(failure(R"({"model_type": "deepseek_v3", "num_key_value_heads": 2})"),
            "num_key_value_heads is 2, expected 4, as many as query heads");
  EXPECT_EQ(failure(R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "n_routed_experts": 10,
                        "n_group": 4, "topk_group": 2})"),
            "10 experts do not make 4 groups");
  EXPECT_EQ(failure(R"({"model_type": "deepseek_v2", "num_key_value_heads": 4, "num_experts_per_tok": 2,
                        "topk_method": "best"})"),
            "topk_method is 'best', expected greedy or group_limited_greedy");
  EXPECT_EQ(failure(R"({"hidden_size": null})"), "hidden_size is missing, expected 1 to 16777216");
  EXPECT_EQ(failure(R"({"hidden_size": -64})"), "hidden_size is -64, expected 1 to 16777216");
  EXPECT_EQ(failure(R"({"hidden_size": "64"})"), "hidden_size is \"64\", expected 1 to 16777216");
  EXPECT_EQ(failure(R"({"num_hidden_layers": 100000})"), "num_hidden_layers is 100000, expected 1 to 1024");
  EXPECT_EQ(failure(R"({"num_key_value_heads": 3})"),
            "num_attention_heads is 4, expected a multiple of the 3 key heads");
  EXPECT_EQ(failure(R"({"rms_norm_eps": 0})"), "rms_norm_eps is 0.000000, expected a number above 0");
  EXPECT_EQ(failure(R"({"hidden_act": "mish"})"),
            "the activation 'mish' is not known; silu, gelu, gelu_pytorch_tanh and relu are");
  EXPECT_THAT(
      failure(R"({"rope_scaling": {"type": "dynamic", "factor": 2}})"),
      HasSubstr(
          "the rope_type 'dynamic' is not supported, expected default, linear, llama3, yarn or longrope"));
  EXPECT_THAT(
      failure(R"({"rope_scaling": {"rope_type": "longrope", "short_factor": [1, 2], "long_factor": [1]}})"),
      HasSubstr("short_factor is 2 numbers, expected 8 above 0"));
  EXPECT_THAT(failure(R"({"rope_parameters": {"partial_rotary_factor": 1.5}})"),
              HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(
      failure(R"({"model_type": "qwen2", "num_key_value_heads": 4, "layer_types": ["full_attention"]})"),
      HasSubstr("layer_types is 1 entries, expected 3"));
  EXPECT_THAT(failure(R"({"quantization_config": {"quant_method": "bitsandbytes"}})"),
              HasSubstr("quant_method is 'bitsandbytes', expected gptq, awq, fp8"));
  EXPECT_THAT(failure(R"({"quantization_config": {"quant_method": "awq", "version": "gemv"}})"),
              HasSubstr("'gemv'"));
  EXPECT_THAT(failure(R"({"quantization_config": {"quant_method": "gptq", "bits": 77}})"),
              HasSubstr("quantization_config.bits is 77, expected 1 to 8"));
  EXPECT_EQ(readHuggingFaceConfig("[]").status().message(), "this is no JSON object");
  EXPECT_EQ(readHuggingFaceConfig("{").status().message(), "this is no JSON object");
  std::string deep(100000, '[');
  EXPECT_EQ(readHuggingFaceConfig("{\"a\":" + deep).status().message(),
            "the JSON is nested more than 64 deep");
}

class HuggingFaceFolder : public testing::Test {
protected:
  void write(const std::string &name, const std::string &text) {
    std::ofstream(folder.file(name), std::ios::binary) << text;
  }
  StatusOr<HuggingFaceTokenizer> read() { return readHuggingFaceTokenizer(folder.path.string()); }

  test::TemporaryFolder folder;
  const std::string tokenizer = R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
    "added_tokens": [{"id": 2, "content": "<s>", "special": true}, {"id": 3, "content": "</s>", "special": true}]})";
};

TEST_F(HuggingFaceFolder, whatSurroundsATokenizer) {
  EXPECT_EQ(read().status().message(), "the folder has neither tokenizer.json nor tokenizer.model");
  write("tokenizer.json", tokenizer);
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": true,
    "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
  write("generation_config.json", R"({"eos_token_id": [1, 3]})");
  auto made = read();
  ASSERT_TRUE(made.isOk()) << made.status().message();
  EXPECT_EQ(made->spec.begin, 2);
  EXPECT_EQ(made->spec.end, 3);
  EXPECT_TRUE(made->spec.addBegin);
  EXPECT_FALSE(made->spec.addEnd);
  EXPECT_EQ(made->spec.stop, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(made->chatTemplate, "d");
  write("chat_template.jinja", "file");
  EXPECT_EQ(read()->chatTemplate, "file");
  write("generation_config.json", R"({"eos_token_id": 4})");
  EXPECT_EQ(read().status().message(),
            "generation_config.json: eos_token_id is 4, the tokenizer has 4 tokens");
  write("generation_config.json", "{}");
  write("tokenizer_config.json", R"({"bos_token": {"text": "<s>"}, "eos_token": 3, "chat_template": 7,
    "added_tokens_decoder": {"4": {"content": "x", "special": "no"}, "9": {"content": "y"}, "z": 1, "5": []}})");
  auto odd = read(); // what is no token is none; a token behind the last is added, a gap is not
  ASSERT_TRUE(odd.isOk()) << odd.status().message();
  EXPECT_EQ(odd->spec.tokens.size(), 5u);
  EXPECT_EQ(odd->spec.tokens[4].kind, llm::TokenKind::UserDefined);
  write("tokenizer_config.json", R"({"add_bos_token": "yes"})");
  EXPECT_THAT(read().status().message(), HasSubstr("tokenizer_config.json: add_bos_token is \"yes\""));
}

// Fields of protocol buffers, by hand.
std::string bytesField(int number, const std::string &text) {
  return std::string(1, char(number << 3 | 2)) + char(text.size()) + text;
}
std::string piece(const std::string &text, float score, int kind) {
  auto bits = std::bit_cast<uint32_t>(score);
  std::string number(reinterpret_cast<const char *>(&bits), 4);
  return bytesField(1, bytesField(1, text) + "\x15" + number + "\x18" + char(kind));
}

TEST_F(HuggingFaceFolder, sentencePieceModels) {
  std::string model = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) +
                      piece("\xE2\x96\x81", -1, 1) + piece("<0x41>", 0, 6) +
                      bytesField(2, "\x18\x02"); // model_type: BPE
  write("tokenizer.model", model);
  write("tokenizer_config.json",
        R"({"added_tokens_decoder": {"5": {"content": "<turn>", "special": true}}})");
  auto made = read();
  ASSERT_TRUE(made.isOk()) << made.status().message();
  EXPECT_EQ(made->spec.model, llm::ModelKind::ScoredMerges);
  ASSERT_EQ(made->spec.tokens.size(), 6u);
  EXPECT_EQ(made->spec.tokens[3].score, -1);
  EXPECT_EQ(made->spec.tokens[4].kind, llm::TokenKind::Byte);
  EXPECT_EQ(made->spec.tokens[5].kind, llm::TokenKind::Control);
  EXPECT_TRUE(made->spec.addBegin && made->spec.begin == 1 && made->spec.end == 2);
  for (size_t size = 1; size < model.size(); ++size) // any end of the text: a model or a sentence
    EXPECT_TRUE(readSentencePieceModel(model.substr(0, size)).isOk() ||
                !readSentencePieceModel(model.substr(0, size)).status().message().empty());
  EXPECT_FALSE(readSentencePieceModel("").isOk());
  EXPECT_FALSE(readSentencePieceModel("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").isOk());
  EXPECT_THAT(readSentencePieceModel(piece("a", 0, 1) + bytesField(2, "\x18\x04")).status().message(),
              HasSubstr("model_type is 4, expected 1 (unigram) or 2 (BPE)"));
}

} // namespace
} // namespace dspark::checkpoint

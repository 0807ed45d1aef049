// dspark-bench llm: how fast a language model's plan reads prompts and writes, without tokenizer and
// sampling.
#pragma once
#include "runtime/llm/model/PlanModel.h"
#include <string>

namespace dspark {

struct LanguageBench {
  std::string plan;
  int64_t prompt = 512; // tokens of a prompt, read in steps of as many rows as the model takes
  int64_t decode = 64;  // tokens written one by one after an empty context
  int64_t batch = 8;    // sequences that write side by side
  int passes = 5;       // of each, of which the median counts
  bool isJson = false;
  SessionOptions session;
};

Status runLanguageBench(const LanguageBench &options);

} // namespace dspark

// tokenize_lines TOKENIZER < LINES: the ids of each line of standard input, one line each, for the comparison
// with other tokenizers (test/e2e/tokenizers). TOKENIZER is a GGUF file or a tokenizer.json. Control tokens
// in the text count.
#include "frontends/checkpoint/GgufTokenizer.h"
#include "frontends/checkpoint/TokenizerJson.h"
#include "runtime/llm/tokenizer/Tokenizer.h"
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

using namespace dspark;

StatusOr<llm::TokenizerSpec> read(const std::string &path) {
  if (!path.ends_with(".gguf")) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return checkpoint::readTokenizerJson(text.str());
  }
  DSPARK_ASSIGN_OR_RETURN(const std::unique_ptr<checkpoint::GgufFile> file, checkpoint::GgufFile::open(path));
  return checkpoint::readGgufTokenizer(*file);
}

Status run(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(llm::TokenizerSpec spec, read(path));
  DSPARK_ASSIGN_OR_RETURN(const std::unique_ptr<llm::Tokenizer> tokenizer,
                          llm::Tokenizer::build(std::move(spec)));
  for (std::string line; std::getline(std::cin, line);) {
    DSPARK_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                            tokenizer->encode(line, {.addSpecial = true, .parseControl = true}));
    for (int32_t id : ids)
      std::cout << id << ' ';
    std::cout << '\n';
  }
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenize_lines TOKENIZER < LINES\n";
    return 1;
  }
  const Status status = run(argv[1]);
  if (!status.isOk())
    std::cerr << status.message() << "\n";
  return status.isOk() ? 0 : 1;
}

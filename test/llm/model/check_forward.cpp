// check_forward PLAN: that a language model's step gives each row the same logits, to the bit, however its
// sequence is cut into steps, whatever else is in the batch, wherever its pages lie, after drafts that were
// taken back, and with any number of threads. One line "ok ..." or "FAIL ..." a check. Tokens are random;
// test/e2e/language compiles the plan.
#include "runtime/llm/model/LanguageModel.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

using namespace dspark;
using namespace dspark::llm;

namespace {

using Tokens = std::vector<int32_t>;
using Logits = std::vector<float>; // rows * vocabulary
constexpr int kPageSize = 16, kPages = 64, kLength = 150;

template <typename T> T must(StatusOr<T> value) {
  if (!value.isOk()) {
    std::printf("FAIL %s\n", value.status().message().c_str());
    std::exit(1);
  }
  return std::move(*value);
}

std::unique_ptr<PlanModel> openModel(const std::shared_ptr<const Program> &program, int threads) {
  PlanModelOptions options;
  options.session.threads = threads;
  options.pageSize = kPageSize;
  options.cacheTokens = kPageSize * kPages;
  return must(PlanModel::create(program, options));
}

struct Part {
  const Tokens *tokens;
  int first, count;
  const Tokens *pages;
};

// One step; logits of all rows.
Logits step(PlanModel &model, const std::vector<Part> &parts) {
  Tokens tokens, offsets = {0}, lengths, table, rows;
  for (const Part &part : parts) {
    tokens.insert(tokens.end(), part.tokens->begin() + part.first,
                  part.tokens->begin() + part.first + part.count);
    offsets.push_back(int32_t(tokens.size()));
    lengths.push_back(part.first + part.count);
    table.insert(table.end(), part.pages->begin(), part.pages->end());
  }
  rows.resize(tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  auto logits = must(model.forward({tokens, offsets, lengths, table, int64_t(parts[0].pages->size()), rows}));
  return {logits.begin(), logits.end()};
}

// The sequence in steps of `chunk` rows.
Logits inChunks(PlanModel &model, const Tokens &tokens, const Tokens &pages, int chunk) {
  Logits all;
  for (int first = 0; first < int(tokens.size()); first += chunk) {
    Logits some = step(model, {{&tokens, first, std::min(chunk, int(tokens.size()) - first), &pages}});
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void expectSame(const char *what, const Logits &found, const Logits &expected) {
  bool isSame = found.size() == expected.size() &&
                std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0;
  std::printf("%s %s\n", isSame ? "ok" : "FAIL", what);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return std::fprintf(stderr, "usage: check_forward PLAN\n"), 1;
  auto program = must(Program::create(must(PlanFile::open(argv[1]))));
  auto model = openModel(program, 1);
  std::mt19937 draw(1);
  auto random = [&](int count) {
    Tokens tokens(static_cast<size_t>(count));
    for (int32_t &token : tokens)
      token = int32_t(draw() % uint32_t(model->facts().vocabulary));
    return tokens;
  };
  Tokens a = random(kLength), b = random(kLength), pages(kPages / 2), other(kPages / 2);
  std::iota(pages.begin(), pages.end(), 0);
  std::iota(other.begin(), other.end(), kPages / 2);

  const Logits whole = inChunks(*model, a, pages, kLength);
  expectSame("chunks of 1", inChunks(*model, a, pages, 1), whole);
  expectSame("chunks of 7", inChunks(*model, a, pages, 7), whole);
  expectSame("chunks of 64", inChunks(*model, a, pages, 64), whole);
  std::ranges::shuffle(pages, draw);
  expectSame("pages in another order", inChunks(*model, a, pages, 50), whole);

  // Beside another sequence that is longer by a prefix of its own: its decoding rows, our chunks.
  inChunks(*model, b, other, 100);
  Logits beside;
  for (int first = 0, at = 100; first < kLength; first += 30, ++at) {
    Logits both = step(*model, {{&b, at, 1, &other}, {&a, first, 30, &pages}});
    beside.insert(beside.end(), both.begin() + model->facts().vocabulary, both.end());
  }
  expectSame("beside another sequence", beside, whole);

  // Drafts of another text behind every tenth token, which the right ones then overwrite.
  Logits drafted;
  for (int first = 0; first < kLength; first += 10) {
    Tokens wrong(a.begin(), a.begin() + first);
    wrong.insert(wrong.end(), b.begin(), b.begin() + 6);
    step(*model, {{&wrong, first, 6, &pages}});
    Logits right = step(*model, {{&a, first, 10, &pages}});
    drafted.insert(drafted.end(), right.begin(), right.end());
  }
  expectSame("after drafts that were taken back", drafted, whole);

  // The first pages copied, and the sequence continued on the copies.
  inChunks(*model, a, pages, kLength);
  for (size_t i = 0; i < 5; ++i)
    if (Status status = model->copyPage(pages[i], other[i]); !status.isOk())
      return std::printf("FAIL %s\n", status.message().c_str()), 1;
  Logits rest = step(*model, {{&a, 5 * kPageSize, kLength - 5 * kPageSize, &other}});
  expectSame("on copied pages", rest, {whole.end() - std::ptrdiff_t(rest.size()), whole.end()});

  auto threaded = openModel(program, 2);
  expectSame("two threads", inChunks(*threaded, a, pages, kLength), whole);
  expectSame("two threads, chunks of 9", inChunks(*threaded, a, pages, 9), whole);
  return 0;
}

// draft_greedy PLAN DRAFTER LIMIT CHUNK TOKEN...: the draft behind these tokens as the plan's drafter makes
// it, one "token confidence" a line. The model computes all tokens but the last in steps of CHUNK rows, and
// the drafter hears of them as they come, and drafts after each step, so that it takes hidden states in as
// while decoding. test/e2e/drafts compares with another reading of the method.
#include "runtime/llm/model/PlanDraft.h"
#include <cstdio>
#include <cstdlib>
#include <numeric>

using namespace dspark;
using namespace dspark::llm;

namespace {

constexpr int kPageSize = 4, kPages = 16;

template <typename T> T must(StatusOr<T> value) {
  if (!value.isOk()) {
    std::fprintf(stderr, "draft_greedy: %s\n", value.status().message().c_str());
    std::exit(1);
  }
  return std::move(*value);
}
void must(const Status &status) { must(status.isOk() ? StatusOr<int>(0) : StatusOr<int>(status)); }

} // namespace

int main(int argc, char **argv) {
  if (argc < 6)
    return std::fprintf(stderr, "usage: draft_greedy PLAN DRAFTER LIMIT CHUNK TOKEN...\n"), 1;
  auto file = must(PlanFile::open(argv[1]));
  auto program = must(Program::create(file));
  PlanModelOptions options;
  options.pageSize = kPageSize;
  options.cacheTokens = kPages * kPageSize;
  auto model = must(PlanModel::create(program, options));
  std::unique_ptr<Drafter> drafter;
  for (const DrafterRecord &record : must(decodeDrafters(file->drafters())).drafters)
    if (record.name == argv[2])
      drafter = must(openDrafter(record, *model, {}, /*leastSurvival=*/0));
  if (!drafter)
    return std::fprintf(stderr, "draft_greedy: no drafter '%s'\n", argv[2]), 1;

  std::vector<int32_t> tokens, pages(kPages);
  for (int i = 5; i < argc; ++i)
    tokens.push_back(std::atoi(argv[i]));
  std::iota(pages.rbegin(), pages.rend(), 0); // not in the order of the drafter's own
  const int32_t limit = std::atoi(argv[3]), chunk = std::atoi(argv[4]), computed = int32_t(tokens.size()) - 1;
  must(drafter->begin(1));
  std::vector<Draft> drafts(1);
  for (int32_t first = 0, told = 0; first < computed; first += chunk) {
    const int32_t rows = std::min(chunk, computed - first);
    const std::vector<int32_t> offsets = {0, rows}, lengths = {first + rows};
    must(
        model
            ->forward(
                {std::span(tokens).subspan(size_t(first), size_t(rows)), offsets, lengths, pages, kPages, {}})
            .status());
    must(drafter->append(1, std::span(tokens).subspan(size_t(told), size_t(first + rows + 1 - told))));
    told = first + rows + 1;
    const DraftRequest request{1, limit, nullptr, pages};
    drafts[0].clear();
    must(drafter->propose({&request, 1}, drafts));
  }
  for (size_t i = 0; i < drafts[0].tokens.size(); ++i)
    std::printf("%d %.9g\n", drafts[0].tokens[i], double(drafts[0].confidence[i]));
}

// A language model that a plan computes (frontends/language/DecoderBuilder.h writes its inputs down): owns
// the session and the memory of the paged cache.
#pragma once
#include "runtime/executor/Session.h"
#include "runtime/llm/model/ForwardModel.h"
#include <functional>

namespace dspark::llm {

struct PlanModelOptions {
  SessionOptions session;
  int64_t pageSize = 32; // tokens
  int64_t cacheTokens =
      0; // that all sequences together can hold; 0: one sequence of the model's context length
  int64_t maxRows = 512; // of one step
};

class PlanModel : public ForwardModel {
public:
  /// Errors: InvalidArgument if the plan is no language model, or an option is out of bounds; OutOfMemory.
  static StatusOr<std::unique_ptr<PlanModel>> create(std::shared_ptr<const Program> program,
                                                     const PlanModelOptions &options = {});

  const ModelFacts &facts() const override { return modelFacts; }
  StatusOr<std::span<const float>> forward(const ForwardBatch &batch) override;
  Status copyPage(int32_t from, int32_t to) override;

  /// A further function of the plan that takes the same batches and computes in this model's caches, which
  /// live as long as either. Errors: those of create().
  StatusOr<std::unique_ptr<PlanModel>> openFunction(std::string_view function,
                                                    const SessionOptions &session) const;
  /// The cache of that name as it lies in memory, which the model keeps; no data if it has none.
  BorrowedTensor cacheNamed(std::string_view name) const;

  Session &session() { return *runner; }
  const Program &program() const { return runner->program(); }

private:
  /// Keys or values of one layer, or their scales; untouched pages take no memory.
  struct Cache {
    std::string name;
    DType type;
    std::vector<int64_t> dims; // [pages][heads][page size], and of rows [head size]
    int64_t pageBytes;
    std::shared_ptr<std::byte> bytes;
  };

  PlanModel() = default;
  Status readFacts(const Program &program, const PlanModelOptions &options);
  Status readInputs(const Program &program, const std::function<Status(const ValueInfo &)> &add);
  Status addCache(const Program &program, const ValueInfo &input, const PlanModelOptions &options);
  Status check(const ForwardBatch &batch) const;
  void layOut(const ForwardBatch &batch);

  std::unique_ptr<Session> runner;
  ModelFacts modelFacts;
  std::vector<Cache> caches;
  std::vector<int32_t> positions, offsets, lengths, table; // of the current step
  int64_t tablePages = 0;
  std::vector<BorrowedTensor> inputs;
};

} // namespace dspark::llm

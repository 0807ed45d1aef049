// A further function of a language model's plan, such as a drafter's: its session, inputs by name, and the
// paged cache that it alone uses.
#pragma once
#include "runtime/executor/Session.h"
#include <array>

namespace dspark::llm {

class PlanFunction {
public:
  /// Errors: those of Program and Session.
  static StatusOr<std::unique_ptr<PlanFunction>> open(const std::shared_ptr<const PlanFile> &file,
                                                      std::string_view name, const SessionOptions &session);

  /// Memory for all of its states, [pages, heads, page size, width] with the first and third as given;
  /// untouched pages take none. Errors: CorruptFile for other states, OutOfMemory.
  Status makeCaches(int64_t pages, int64_t pageSize);

  /// The input of that name in the coming runs; memory and dims stay the caller's. Names that the function
  /// does not have are ignored.
  void lend(std::string_view name, const BorrowedTensor &tensor);
  /// The same with dims that are copied, at most four.
  void lend(std::string_view name, DType type, const void *data, std::initializer_list<int64_t> dims);
  void lend(std::string_view name, std::span<const int32_t> values) {
    lend(name, DType::I32, values.data(), {int64_t(values.size())});
  }

  /// Errors: an input that was not lent, those of the session.
  Status run();
  /// Of the last run: f32 with that many elements, empty for an output that the function does not have.
  /// Errors: CorruptFile if it has others.
  StatusOr<std::span<const float>> output(std::string_view name, int64_t elements) const;

private:
  PlanFunction() = default;

  std::string name;
  std::unique_ptr<Session> session;
  std::vector<BorrowedTensor> inputs;
  std::vector<std::array<int64_t, 4>> dims; // of the inputs, where they are copied
  std::vector<std::shared_ptr<std::byte>> caches;
};

} // namespace dspark::llm

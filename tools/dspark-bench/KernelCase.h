// One call of a catalogue operator on made-up operands, for measuring.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"
#include "planning/CostFit.h"
#include "runtime/base/Status.h"
#include <deque>
#include <memory>
#include <string>

namespace dspark {

/// The operator, its attributes and its operands as text:
///
///   matmul packed=panel16 | f32[64,384] *f32[384,1536]
///
/// Attributes are integers or lists ("1,1"), floats (with a point) or words. A star marks a weight: with
/// packed=NAME it has that layout's size, and successive calls find it cold.
struct KernelCase {
  std::string text;
};

class CaseRunner {
public:
  /// InvalidArgument with what the text or the operator's shape function says is wrong.
  static StatusOr<std::unique_ptr<CaseRunner>> create(const KernelCase &spec, Isa isa);

  /// One call on this thread, with other copies of the weights than the last one.
  void run();
  const Kernel &kernel() const { return *row; }
  /// Features, and as footprint the bytes of all copies of the weights.
  CostSample sample(double seconds) const;

private:
  struct Operand {
    std::vector<int64_t> dims;
    DType type = DType::Undefined;
    bool isConstant = false;
    size_t bytes = 0;
    std::vector<std::byte *> copies;
  };
  struct Attribute {
    std::string name, word;
    std::vector<int64_t> ints;
    std::vector<double> floats;
  };
  CaseRunner() = default;
  Status readAttribute(const std::string &text);
  Status readOperand(const std::string &text);
  Status addResults();
  Status allocate();
  std::byte *memory(size_t bytes);
  std::string_view attribute(std::string_view name) const;

  std::string op;
  std::vector<Attribute> attributes;
  std::vector<Operand> operands;
  size_t inputs = 0, turn = 0, copies = 1;
  std::vector<Attr> attrs;
  std::vector<TensorView> views;
  std::deque<std::unique_ptr<std::byte[]>> blocks;
  std::byte *scratch = nullptr, *shared = nullptr;
  double footprint = 0;
  KernelCall call;
  KernelWork work;
  const Kernel *row = nullptr;
};

} // namespace dspark

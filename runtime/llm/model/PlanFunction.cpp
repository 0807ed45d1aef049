#include "runtime/llm/model/PlanFunction.h"
#include <algorithm>
#include <cstdlib>

namespace dspark::llm {

StatusOr<std::unique_ptr<PlanFunction>> PlanFunction::open(const std::shared_ptr<const PlanFile> &file,
                                                           std::string_view name,
                                                           const SessionOptions &options) {
  std::unique_ptr<PlanFunction> function(new PlanFunction);
  function->name = name;
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(file, name));
  function->inputs.resize(program->inputs().size());
  function->dims.resize(program->inputs().size());
  DSPARK_ASSIGN_OR_RETURN(function->session, Session::create(std::move(program), options));
  return function;
}

Status PlanFunction::makeCaches(int64_t pages, int64_t pageSize) {
  const Program &program = session->program();
  std::vector<Dim> values;
  program.evaluate(std::vector<Dim>(program.symbolCount()), values);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &input = program.values()[size_t(program.inputs()[i])];
    if (!input.isState)
      continue;
    const auto fixed = [&](size_t d) {
      const Dim dim = values[size_t(input.dims[d])];
      return dim.isConst() ? dim.value() : int64_t(0);
    };
    int64_t pageBytes = dtypeBits(input.type) / 8;
    if (input.dims.size() != 4 || fixed(1) < 1 || fixed(3) < 1 || pageBytes < 1 ||
        __builtin_mul_overflow(pageBytes, fixed(1), &pageBytes) ||
        __builtin_mul_overflow(pageBytes, fixed(3), &pageBytes) ||
        __builtin_mul_overflow(pageBytes, pageSize, &pageBytes))
      return corruptFile(program.file().path() + ": state '" + std::string(input.name) + "' of function '" +
                         name + "' has no dims [pages, heads, page_size, size]");
    std::shared_ptr<std::byte> bytes(static_cast<std::byte *>(std::calloc(size_t(pages), size_t(pageBytes))),
                                     std::free);
    if (!bytes)
      return {Code::OutOfMemory, "a draft's cache of " + std::to_string(pages) + " pages of " +
                                     std::to_string(pageBytes) + " bytes does not fit; ask for fewer tokens"};
    lend(input.name, input.type, bytes.get(), {pages, fixed(1), pageSize, fixed(3)});
    caches.push_back(std::move(bytes));
  }
  return Status::ok();
}

void PlanFunction::lend(std::string_view input, const BorrowedTensor &tensor) {
  const Program &program = session->program();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (program.values()[size_t(program.inputs()[i])].name == input)
      inputs[i] = tensor;
}

void PlanFunction::lend(std::string_view input, DType type, const void *data,
                        std::initializer_list<int64_t> given) {
  const Program &program = session->program();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (program.values()[size_t(program.inputs()[i])].name == input) {
      std::ranges::copy(given, dims[i].begin());
      inputs[i] = {const_cast<void *>(data), type, int32_t(given.size()), dims[i].data(), nullptr};
    }
}

Status PlanFunction::run() {
  const Program &program = session->program();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].dims)
      return corruptFile(program.file().path() + ": function '" + name + "' has an input '" +
                         std::string(program.values()[size_t(program.inputs()[i])].name) +
                         "' that drafters do not know");
  return session->run(inputs);
}

StatusOr<std::span<const float>> PlanFunction::output(std::string_view output, int64_t elements) const {
  const Program &program = session->program();
  for (size_t k = 0; k < program.outputs().size(); ++k) {
    if (program.outputs()[k].name != output)
      continue;
    const TensorView &view = session->output(k);
    if (view.type != DType::F32 || view.elements() != elements)
      return corruptFile(program.file().path() + ": function '" + name + "' gives '" + std::string(output) +
                         "' of " + std::to_string(view.elements()) + " elements, expected " +
                         std::to_string(elements));
    return std::span<const float>(view.as<float>(), size_t(elements));
  }
  return std::span<const float>();
}

} // namespace dspark::llm

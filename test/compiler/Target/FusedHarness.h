// Compiles fused kernels in the test and runs them: loaded as the runtime loads them, from memory with
// dlopen.
#pragma once
#include "compiler/Target/FusedCodegen.h"
#include "kernels/elementwise/kinds.h"
#include <cmath>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace dspark::test {

/// The levels that this machine can run.
inline std::vector<Isa> runnableLevels() {
  std::vector<Isa> levels;
  for (int i = 0; i <= int(vectorIsa(machineIsa())); ++i)
    levels.push_back(Isa(i));
  return levels;
}

class LoadedLibrary {
public:
  explicit LoadedLibrary(const std::vector<std::byte> &elf) {
    int file = memfd_create("fused", MFD_CLOEXEC);
    EXPECT_EQ(write(file, elf.data(), elf.size()), ssize_t(elf.size()));
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    close(file);
  }
  ~LoadedLibrary() {
    if (handle)
      dlclose(handle);
  }
  LoadedLibrary(const LoadedLibrary &) = delete;

  FusedFn find(const FusedKernelSpec &spec) const {
    return reinterpret_cast<FusedFn>(dlsym(handle, spec.symbol().c_str()));
  }

private:
  void *handle = nullptr;
};

/// Compiles without the cache, so that a test never passes on an old object.
inline std::vector<std::byte> compileOrFail(const std::vector<FusedKernelSpec> &specs, Isa level) {
  StatusOr<FusedLibrary> library = compileFused(specs, level, {.threads = 2, .useCache = false});
  EXPECT_TRUE(library.isOk()) << library.status().message();
  return library.isOk() ? library->elf : std::vector<std::byte>();
}

inline FusedInstruction unary(UnaryKind kind, int a) {
  UnaryDefaults defaults = kind == UnaryKind::k_isinf ? UnaryDefaults{1, 1} : unaryDefaults(kind);
  return {FusedCategory::Unary, uint8_t(kind), a, 0, 0, float(defaults.alpha), float(defaults.beta)};
}
inline FusedInstruction binary(BinaryKind kind, int a, int b) {
  return {FusedCategory::Binary, uint8_t(kind), a, b, 0, 0, 0};
}
inline FusedInstruction compare(CompareKind kind, int a, int b) {
  return {FusedCategory::Compare, uint8_t(kind), a, b, 0, 0, 0};
}
inline FusedInstruction select(int condition, int yes, int no) {
  return {FusedCategory::Select, 0, condition, yes, no, 0, 0};
}
inline FusedInstruction clip(int a, float lo, float hi) { return {FusedCategory::Clip, 0, a, 0, 0, lo, hi}; }
inline FusedInstruction constant(float value) { return {FusedCategory::Constant, 0, 0, 0, 0, value, 0}; }

inline FusedProgram program(int inputs, std::vector<FusedInstruction> code, std::vector<int> results) {
  FusedProgram made;
  made.inputs = inputs;
  made.code = std::move(code);
  made.results = std::move(results);
  made.shapes.assign(made.results.size(), FusedShape::Full);
  return made;
}

/// The `params` attribute of a step with this program.
inline std::vector<double> paramsOf(const FusedProgram &program) {
  std::vector<double> params;
  for (const FusedInstruction &i : program.code) {
    params.push_back(i.alpha);
    params.push_back(i.beta);
  }
  return params;
}

/// A spec whose operands are all f32 and contiguous.
inline FusedKernelSpec contiguous(int inputs, std::vector<FusedInstruction> code, std::vector<int> results) {
  size_t operands = inputs + results.size();
  return {program(inputs, std::move(code), std::move(results)), std::vector<int>(operands, 1),
          std::vector<DType>(operands, DType::F32)};
}

} // namespace dspark::test

#include "compiler/Target/FusedCodegen.h"
#include "compiler/Target/FusedKernelIr.h"
#include "compiler/Target/ObjectCache.h"
#include "compiler/Target/ObjectEmitter.h"
#include "compiler/Target/SharedObject.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_set>

namespace dspark {
namespace codegen {
namespace {

Status check(const FusedKernelSpec &spec) {
  size_t inputs = spec.program.inputs, operands = inputs + spec.program.results.size();
  if (!canGenerate(spec.program))
    return invalidArgument("the program has an instruction without generated code");
  if (spec.inner.size() != operands || spec.types.size() != operands)
    return invalidArgument("the program has " + std::to_string(operands) + " operands, but " +
                           std::to_string(spec.inner.size()) + " inner strides and " +
                           std::to_string(spec.types.size()) + " types are given");
  for (size_t k = 0; k < operands; ++k) {
    bool isInput = k < inputs;
    bool isReduced = !isInput && spec.program.body().isReduced(k - inputs);
    if ((spec.inner[k] != 1 || isReduced) && !((isInput || isReduced) && spec.inner[k] == 0))
      return invalidArgument("operand " + std::to_string(k) + " has inner stride " +
                             std::to_string(spec.inner[k]));
    if (spec.types[k] != DType::F32 && !(isInput && spec.types[k] == DType::Bool))
      return invalidArgument("operand " + std::to_string(k) + " has type " +
                             std::string(dtypeName(spec.types[k])));
  }
  return {};
}

/// Compiles kernels on one thread. Owns the MLIR context, which costs more than a kernel to make.
class Worker {
public:
  explicit Worker(Isa level) : level(level), context(registry(), mlir::MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  StatusOr<ObjectBytes> compile(const FusedKernelSpec &spec) {
    std::string messages;
    mlir::ScopedDiagnosticHandler collect(&context, [&](mlir::Diagnostic &diagnostic) {
      messages += diagnostic.str() + "; ";
      return mlir::success();
    });
    mlir::OwningOpRef<mlir::ModuleOp> module = buildFusedKernel(context, spec, level);
    if (mlir::failed(lowerFusedKernel(*module, level)))
      return Status(Code::Internal, "a fused kernel does not lower: " + messages);
    StatusOr<ObjectBytes> object = emitObject(*module, level);
    return object.isOk() ? std::move(object)
                         : Status(object.status().code(), object.status().message() + ": " + messages);
  }

private:
  static const mlir::DialectRegistry &registry() {
    static const mlir::DialectRegistry all = [] {
      mlir::DialectRegistry dialects;
      registerCodegenDialects(dialects);
      return dialects;
    }();
    return all;
  }

  Isa level;
  mlir::MLIRContext context;
};

/// Fills in the objects that the cache does not have.
class Compilation {
public:
  Compilation(std::vector<const FusedKernelSpec *> specs, Isa level, ObjectCache cache)
      : specs(std::move(specs)), level(level), cache(std::move(cache)), objects(this->specs.size()) {}

  Status run(unsigned threads) {
    for (size_t i = 0; i < specs.size(); ++i) {
      std::optional<ObjectBytes> known = cache.load(key(*specs[i]));
      if (known)
        objects[i] = std::move(*known);
      else
        missing.push_back(i);
    }
    unsigned workers = std::min<size_t>(threads, missing.size());
    if (workers <= 1) {
      if (workers == 1)
        work();
      return failure;
    }
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(workers));
    for (unsigned i = 0; i < workers; ++i)
      pool.async([this] { work(); });
    pool.wait();
    return failure;
  }
  llvm::ArrayRef<ObjectBytes> results() const { return objects; }
  int compiled() const { return int(missing.size()); }

private:
  // DSPARK_CODEGEN_VERSION is a hash of this folder's sources and LLVM's version (CMakeLists.txt).
  std::string key(const FusedKernelSpec &spec) const {
    return spec.symbol() + "-" + std::string(isaName(level)) + "-" DSPARK_CODEGEN_VERSION;
  }

  void work() {
    Worker worker(level);
    for (size_t i; (i = next++) < missing.size();) {
      const FusedKernelSpec &spec = *specs[missing[i]];
      StatusOr<ObjectBytes> object = worker.compile(spec);
      if (!object.isOk()) {
        std::lock_guard lock(failureMutex);
        failure = object.status().in(spec.symbol());
        return;
      }
      cache.store(key(spec), llvm::StringRef(object->data(), object->size()));
      objects[missing[i]] = std::move(*object);
    }
  }

  const std::vector<const FusedKernelSpec *> specs;
  const Isa level;
  const ObjectCache cache;
  std::vector<ObjectBytes> objects;
  std::vector<size_t> missing;
  std::atomic<size_t> next = 0;
  std::mutex failureMutex;
  Status failure;
};

} // namespace
} // namespace codegen

std::string defaultCodegenCache() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string chosen = variable("DSPARK_CACHE"); !chosen.empty())
    return chosen;
  if (std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/dspark/codegen";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/dspark/codegen";
}

StatusOr<FusedLibrary> compileFused(std::span<const FusedKernelSpec> specs, Isa level,
                                    const CodegenOptions &options) {
  std::vector<const FusedKernelSpec *> distinct;
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < specs.size(); ++i) {
    DSPARK_RETURN_IF_ERROR(codegen::check(specs[i]).in("fused kernel " + std::to_string(i)));
    if (seen.insert(specs[i].symbol()).second)
      distinct.push_back(&specs[i]);
  }
  std::string directory;
  if (options.useCache)
    directory = options.cacheDir.empty() ? defaultCodegenCache() : options.cacheDir;
  unsigned cores = llvm::hardware_concurrency().compute_thread_count();
  codegen::Compilation compilation(distinct, level, codegen::ObjectCache(directory));
  DSPARK_RETURN_IF_ERROR(compilation.run(options.threads > 0 ? options.threads : cores));

  StatusOr<std::vector<std::byte>> elf = codegen::linkSharedObject(compilation.results());
  if (!elf.isOk())
    return elf.status();
  return FusedLibrary{std::move(*elf), compilation.compiled()};
}

} // namespace dspark

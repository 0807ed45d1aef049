// libFuzzer target: any bytes as an ONNX file, read and imported. Whatever comes out must be a module that
// verifies or a list of issues; a crash, a hang or more than 2 GiB of memory is a finding.
#include "frontends/onnx/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mlir::MLIRContext *context = nullptr;
  static int runs = 0;
  if (!context || ++runs % 1000 == 0) { // types and attributes live as long as their context
    delete context;
    context = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    context->getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
  }
  int fd = memfd_create("model", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != ssize_t(size))
    std::abort();
  {
    auto result = dspark::onnx::importOnnx("/proc/self/fd/" + std::to_string(fd), *context);
    if (result.isOk() ? mlir::failed(mlir::verify(*result.module)) : result.report("model").empty())
      std::abort();
  }
  close(fd);
  return 0;
}

// dspark-opt: runs any pass or phase on MLIR text; what the lit tests use.
#include "compiler/Conversion/Passes.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include <algorithm>
#include <cstring>
#include <vector>

using namespace dspark;

// --dspark-phase-NAME for every phase that consists of passes.
static void registerPhases() {
  static std::vector<std::unique_ptr<mlir::PassPipelineRegistration<>>> registrations;
  for (int i = 0; i < kPhaseCount; ++i) {
    auto phase = Phase(i);
    if (phase == Phase::Import || phase == Phase::Codegen || phase == Phase::Emit)
      continue;
    static std::vector<std::string> names;
    names.reserve(2 * kPhaseCount);
    const std::string &flag = names.emplace_back("dspark-phase-" + std::string(phaseName(phase)));
    const std::string &text = names.emplace_back("The passes of phase " + std::string(phaseName(phase)));
    registrations.push_back(
        std::make_unique<mlir::PassPipelineRegistration<>>(flag, text, [phase](mlir::OpPassManager &passes) {
          addPhasePasses(phase, passes, std::make_shared<WeightStore>());
        }));
  }
}

// The functions of a module share a weight store, so that passes take them one after the other, as the
// compiler has them (compiler/Pipeline/Compile.cpp).
static std::vector<char *> withoutThreads(int argc, char **argv) {
  static char flag[] = "--mlir-disable-threading";
  std::vector<char *> arguments(argv, argv + argc);
  auto isSet = [](const char *argument) {
    return std::strstr(argument, "mlir-disable-threading") != nullptr;
  };
  if (std::none_of(arguments.begin(), arguments.end(), isSet))
    arguments.push_back(flag);
  return arguments;
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<ir::DSparkDialect, plan::PlanDialect, mlir::func::FuncDialect>();
  registerDSparkConversionPasses();
  registerDSparkTransformsPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  registerPhases();
  std::vector<char *> arguments = withoutThreads(argc, argv);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(int(arguments.size()), arguments.data(), "DSpark pass driver\n", registry));
}

#include "compiler/Target/ObjectEmitter.h"
#include "compiler/Target/IsaTarget.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

namespace dspark::codegen {
namespace {

std::unique_ptr<llvm::TargetMachine> createTarget(Isa level, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::Triple triple("x86_64-pc-linux-gnu");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // ScalarMath decides what fuses
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, "x86-64", targetFeatures(level), options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
}

void setFunctionAttributes(llvm::Module &module, Isa level) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", "x86-64");
    function.addFnAttr("target-features", targetFeatures(level));
    function.addFnAttr("prefer-vector-width", std::to_string(vectorBits(level)));
    function.addFnAttr("no-builtins"); // else a copy loop becomes a call of memcpy
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

// The loops are vectorised already: what is left is folding descriptors and booleans, sharing subexpressions
// and moving constants out of loops. LLVM's -O2 takes twice as long for the same code.
constexpr const char *kPipeline =
    "function(sroa,simplifycfg,early-cse,instcombine<no-verify-fixpoint>,loop-mssa("
    "loop-rotate,licm),early-cse<memssa>,"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

Status optimize(llvm::Module &module, llvm::TargetMachine &target) {
  llvm::PassBuilder builder(&target);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kPipeline))
    return {Code::Internal, "LLVM refuses the pass pipeline: " + llvm::toString(std::move(error))};
  passes.run(module, modules);
  return {};
}

} // namespace

StatusOr<llvm::SmallVector<char, 0>> emitObject(mlir::ModuleOp op, Isa level) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> target = createTarget(level, error);
  if (!target)
    return Status(Code::Internal, "this LLVM cannot generate x86-64 code: " + error);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(op, context);
  if (!module)
    return Status(Code::Internal, "a fused kernel does not translate to LLVM IR");
  module->setTargetTriple(target->getTargetTriple());
  module->setDataLayout(target->createDataLayout());
  setFunctionAttributes(*module, level);
  DSPARK_RETURN_IF_ERROR(optimize(*module, *target));

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (target->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return Status(Code::Internal, "this LLVM cannot write x86-64 objects");
  emission.run(*module);
  return object;
}

} // namespace dspark::codegen

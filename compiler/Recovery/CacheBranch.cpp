// A merged decoder is an If over the input use_cache_branch: one branch takes past keys and values, the other
// computes a prompt from nothing. With the input true the folds leave the first, which serves prompts too,
// with a past of no tokens.
#include "compiler/Recovery/RecoverDecoder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace dspark::recovery {

OwningOpRef<ModuleOp> withCacheBranch(ModuleOp module) {
  auto find = [](func::FuncOp func) -> std::optional<unsigned> {
    for (unsigned i = 0; func && i < func.getNumArguments(); ++i)
      if (auto name = func.getArgAttrOfType<StringAttr>(i, ir::kNameAttr); name && name == "use_cache_branch")
        return i;
    return std::nullopt;
  };
  std::optional<unsigned> index = find(module.lookupSymbol<func::FuncOp>("main"));
  if (!index)
    return nullptr;
  OwningOpRef<ModuleOp> taken(module.clone());
  auto func = taken->lookupSymbol<func::FuncOp>("main");
  BlockArgument flag = func.getArgument(*index);
  auto type = dyn_cast<RankedTensorType>(flag.getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() != 1 || !type.getElementType().isInteger(1))
    return nullptr;
  OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
  flag.replaceAllUsesWith(
      ir::ConstantOp::create(builder, flag.getLoc(), DenseElementsAttr::get(type, true)).getResult());
  if (failed(func.eraseArgument(*index)))
    return nullptr;
  return taken;
}

} // namespace dspark::recovery

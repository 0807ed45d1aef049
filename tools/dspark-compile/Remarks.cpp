#include "tools/dspark-compile/Remarks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Remark/RemarkStreamer.h"

using namespace mlir;

namespace dspark {

Status writeRemarks(const std::string &path, const std::string &model, const PlanDecisions &decisions) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  remark::RemarkCategories categories;
  categories.passed = categories.missed = "plan";
  if (failed(remark::enableOptimizationRemarksWithLLVMStreamer(
          context, path, llvm::remarks::Format::YAML, std::make_unique<remark::RemarkEmittingPolicyAll>(),
          categories)))
    return {Code::IoError, path + ": remarks cannot be written"};
  using Arg = remark::detail::Remark::Arg;
  for (const StepDecision &step : decisions.steps) {
    // The step's number takes the place of a line: an ONNX file has none.
    Location loc = FileLineColLoc::get(&context, model, unsigned(step.step), 0);
    remark::RemarkOpts options = remark::RemarkOpts::name("Decided").category("plan").function("main");
    {
      remark::detail::InFlightRemark decided = remark::passed(loc, options);
      decided << Arg("Nodes", step.nodes) << Arg("Op", step.op) << Arg("Result", step.type);
      decided << Arg("Device", step.device) << Arg("Precision", step.precision) << Arg("Kernel", step.kernel);
      decided << Arg("Region", step.region) << Arg("PredictedSeconds", step.predicted);
      decided << Arg("MeasuredSeconds", step.measured) << Arg("Error", step.error);
    }
    options.remarkName = "Rejected";
    if (!step.rejected.empty())
      remark::missed(loc, options) << Arg("Nodes", step.nodes) << Arg("Alternative", step.rejected);
  }
  return Status::ok();
}

} // namespace dspark

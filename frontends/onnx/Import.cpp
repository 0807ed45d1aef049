#include "frontends/onnx/Import.h"
#include "frontends/onnx/GraphImporter.h"

namespace dspark::onnx {

/// Names come from the file; nothing in them may reach a terminal as it is.
static std::string printable(const std::string &text) {
  std::string out;
  for (unsigned char c : text.substr(0, 200)) {
    if (c < 32 || c == 127)
      out += "\\x" + llvm::utohexstr(c, /*LowerCase=*/true, 2);
    else
      out += char(c);
  }
  return out + (text.size() > 200 ? "..." : "");
}

std::string ImportIssue::str() const {
  if (node.empty())
    return printable(reason);
  std::string text = printable(node) + ": " + printable(op) + " (opset " + std::to_string(opset) + ")";
  if (!operands.empty())
    text += " of (" + llvm::join(operands, ", ") + ")";
  return text + ": " + printable(reason);
}

bool ImportResult::isInvalid() const {
  return llvm::any_of(issues,
                      [](const ImportIssue &issue) { return issue.kind == ImportIssue::Kind::Invalid; });
}

std::string ImportResult::report(const std::string &path) const {
  size_t count = issues.size();
  std::string text = path + ": " + (isInvalid() ? "the model cannot be read" : "the model is not supported") +
                     " (" + std::to_string(count) + (count == 1 ? " finding" : " findings") + ")\n";
  for (const ImportIssue &issue : issues)
    text += "  " + issue.str() + "\n";
  return text;
}

ImportResult importOnnx(const std::string &path, mlir::MLIRContext &context, const ImportOptions &options) {
  context.loadDialect<ir::DSparkDialect, mlir::func::FuncDialect>();
  ImportResult result;
  auto model = readModel(path);
  if (!model.isOk()) {
    ImportIssue issue;
    bool isUnsupported = model.status().code() == Code::Unsupported;
    issue.kind = isUnsupported ? ImportIssue::Kind::Unsupported : ImportIssue::Kind::Invalid;
    issue.reason = model.status().message();
    result.issues.push_back(std::move(issue));
    return result;
  }
  GraphImporter(*model, context, options, result).run();
  if (!result.isOk())
    result.module = nullptr;
  return result;
}

} // namespace dspark::onnx

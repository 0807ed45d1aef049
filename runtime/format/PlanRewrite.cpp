#include "runtime/format/PlanRewrite.h"

namespace dspark {

Status rewritePlan(const std::string &path, const std::function<void(fb::PlanT &)> &edit) {
  DSPARK_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> file, PlanFile::open(path));
  DSPARK_ASSIGN_OR_RETURN(std::unique_ptr<PlanWriter> writer, PlanWriter::create(path));
  for (const SectionEntry &entry : file->sections()) {
    std::span<const std::byte> bytes = file->bytes(entry);
    if (SectionKind(entry.kind) == SectionKind::Weights) {
      DSPARK_ASSIGN_OR_RETURN(uint64_t offset, writer->addWeight(bytes));
      if (offset != 0)
        return {Code::Internal, path + ": weights would move to " + std::to_string(offset)};
    } else if (SectionKind(entry.kind) == SectionKind::Code) {
      writer->addCode(entry.tag, {bytes.begin(), bytes.end()});
    } else if (SectionKind(entry.kind) == SectionKind::Function) {
      fb::PlanT function;
      fb::GetPlan(bytes.data())->UnPackTo(&function);
      writer->addFunction(function);
    }
  }
  writer->setMeta(std::string(file->meta()));
  writer->setIr(std::string(file->ir()));
  writer->setTokenizer({file->tokenizer().begin(), file->tokenizer().end()});
  writer->setTemplate(std::string(file->chatTemplate()));
  writer->setDrafters(std::string(file->drafters()));
  fb::PlanT plan;
  file->plan().UnPackTo(&plan);
  edit(plan);
  return writer->finish(plan);
}

} // namespace dspark

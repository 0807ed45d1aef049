// Lays a plan file out as: header, section table, small sections, WEIGHTS at 2 MiB. Weights are streamed as
// they come, so the other sections, known last, go into the gap in front of them where they fit and behind
// them where they do not.
#include "kernels/common/dtype.h"
#include "runtime/format/Hash.h"
#include "runtime/format/PlanFile.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dspark {
namespace {

constexpr uint64_t kSectionAlignment = 64;

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

bool hasLists(const fb::BlockT &block) {
  return std::any_of(block.steps.begin(), block.steps.end(), [](const auto &step) {
    return step->kind == fb::StepKind::List ||
           std::any_of(step->blocks.begin(), step->blocks.end(),
                       [](const auto &inner) { return hasLists(*inner); });
  });
}

bool usesRuns(const fb::PlanT &plan) {
  return std::ranges::any_of(plan.values,
                             [](const auto &value) { return value->blob && value->blob->expanded > 0; });
}

// The oldest minor version of a reader that understands all of `plan`.
uint16_t minimalReader(const fb::PlanT &plan) {
  auto isNew = [](const auto &entry) { return entry->dtype == uint8_t(DType::String) || entry->type; };
  bool usesLists = std::any_of(plan.values.begin(), plan.values.end(), isNew) ||
                   std::any_of(plan.outputs.begin(), plan.outputs.end(), isNew) || hasLists(*plan.body);
  bool usesStates = std::ranges::any_of(plan.inputs, [](const auto &input) { return input->is_state; });
  return usesStates ? kMinorOfStates : usesLists ? kMinorOfLists : kPlanMinimalReader;
}

struct Section {
  SectionEntry entry;
  std::span<const std::byte> bytes;
};

} // namespace

struct PlanWriter::State {
  std::string path, temporary;
  FILE *file = nullptr;
  StreamHash weightsHash;
  uint64_t weightBytes = 0;
  std::vector<std::pair<uint32_t, std::vector<std::byte>>> code;
  std::string meta = "{}", ir, chatTemplate, drafters;
  std::vector<std::byte> tokenizer;
  std::vector<flatbuffers::DetachedBuffer> functions;
  bool haveRuns = false; // the functions

  ~State() {
    if (file)
      fclose(file);
    if (!temporary.empty())
      unlink(temporary.c_str());
  }
  Status failure(const char *what) const {
    return {Code::IoError, path + ": cannot " + what + ": " + std::strerror(errno)};
  }
  Status write(std::span<const std::byte> bytes) {
    if (!bytes.empty() && fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
      return failure("write");
    return Status::ok();
  }
  Status writeAt(uint64_t offset, std::span<const std::byte> bytes) {
    if (fseeko(file, off_t(offset), SEEK_SET) != 0)
      return failure("seek");
    return write(bytes);
  }
  Status addWeightBytes(std::span<const std::byte> bytes) {
    weightsHash.add(bytes);
    weightBytes += bytes.size();
    return write(bytes);
  }
  std::vector<Section> layOut(std::span<const std::byte> planBytes) const;
};

PlanWriter::PlanWriter() : state(std::make_unique<State>()) {}
PlanWriter::~PlanWriter() = default;

StatusOr<std::unique_ptr<PlanWriter>> PlanWriter::create(const std::string &path) {
  static std::atomic<unsigned> counter{0};
  std::unique_ptr<PlanWriter> writer(new PlanWriter);
  State &state = *writer->state;
  state.path = path;
  std::string temporary = path + ".tmp" + std::to_string(getpid()) + "." + std::to_string(counter++);
  int fd = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0)
    return Status(Code::IoError, path + ": cannot create: " + std::strerror(errno));
  state.temporary = temporary;
  state.file = fdopen(fd, "w+b");
  if (!state.file) {
    close(fd);
    return state.failure("create");
  }
  if (fseeko(state.file, off_t(kWeightsAlignment), SEEK_SET) != 0)
    return state.failure("seek");
  return writer;
}

StatusOr<uint64_t> PlanWriter::addWeight(std::span<const std::byte> bytes, uint64_t alignment) {
  static constexpr std::byte kZeros[kMaxBlobAlignment] = {};
  if (alignment == 0 || alignment > kMaxBlobAlignment || (alignment & (alignment - 1)) != 0)
    return invalidArgument("weight alignment is " + std::to_string(alignment) +
                           ", expected a power of two up to " + std::to_string(kMaxBlobAlignment));
  uint64_t offset = alignUp(state->weightBytes, alignment);
  DSPARK_RETURN_IF_ERROR(state->addWeightBytes({kZeros, size_t(offset - state->weightBytes)}));
  DSPARK_RETURN_IF_ERROR(state->addWeightBytes(bytes));
  return offset;
}

void PlanWriter::addCode(uint32_t isa, std::vector<std::byte> elf) {
  state->code.emplace_back(isa, std::move(elf));
}
void PlanWriter::setMeta(std::string json) { state->meta = std::move(json); }
void PlanWriter::setIr(std::string text) { state->ir = std::move(text); }
void PlanWriter::setTokenizer(std::vector<std::byte> bytes) { state->tokenizer = std::move(bytes); }
void PlanWriter::setTemplate(std::string text) { state->chatTemplate = std::move(text); }

void PlanWriter::setDrafters(std::string json) { state->drafters = std::move(json); }
void PlanWriter::addFunction(const fb::PlanT &function) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  builder.Finish(fb::Plan::Pack(builder, &function));
  state->functions.push_back(builder.Release());
  state->haveRuns |= usesRuns(function);
}

std::vector<Section> PlanWriter::State::layOut(std::span<const std::byte> planBytes) const {
  std::vector<Section> sections;
  auto add = [&](SectionKind kind, uint32_t tag, uint32_t flags, std::span<const std::byte> bytes) {
    sections.push_back({{uint32_t(kind), tag, 0, bytes.size(), hashBytes(bytes), flags, 0}, bytes});
  };
  add(SectionKind::Plan, 0, kSectionRequired, planBytes);
  add(SectionKind::Meta, 0, 0, std::as_bytes(std::span(meta)));
  for (const auto &[isa, elf] : code)
    add(SectionKind::Code, isa, 0, elf);
  if (!ir.empty())
    add(SectionKind::Ir, 0, 0, std::as_bytes(std::span(ir)));
  if (!tokenizer.empty())
    add(SectionKind::Tokenizer, 0, 0, tokenizer);
  if (!chatTemplate.empty())
    add(SectionKind::Template, 0, 0, std::as_bytes(std::span(chatTemplate)));
  for (uint32_t i = 0; i < functions.size(); ++i)
    add(SectionKind::Function, i, 0, std::as_bytes(std::span(functions[i].data(), functions[i].size())));
  if (!drafters.empty())
    add(SectionKind::Drafters, 0, 0, std::as_bytes(std::span(drafters)));

  bool hasWeights = weightBytes > 0;
  size_t count = sections.size() + hasWeights;
  uint64_t front = alignUp(sizeof(PlanHeader) + count * sizeof(SectionEntry), kSectionAlignment);
  uint64_t back = alignUp(kWeightsAlignment + weightBytes, kSectionAlignment);
  for (Section &section : sections) {
    bool fits = !hasWeights || front + section.bytes.size() <= kWeightsAlignment;
    uint64_t &next = fits ? front : back;
    section.entry.offset = next;
    next = alignUp(next + section.bytes.size(), kSectionAlignment);
  }
  if (hasWeights)
    sections.push_back({{uint32_t(SectionKind::Weights), 0, kWeightsAlignment, weightBytes,
                         weightsHash.value(), kSectionRequired, 0},
                        {}});
  return sections;
}

Status PlanWriter::finish(const fb::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  builder.Finish(fb::Plan::Pack(builder, &plan));
  std::vector<Section> sections =
      state->layOut(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));

  std::vector<SectionEntry> table;
  uint64_t fileBytes = 0;
  for (const Section &section : sections) {
    table.push_back(section.entry);
    fileBytes = std::max(fileBytes, section.entry.offset + section.entry.length);
    if (section.entry.kind != uint32_t(SectionKind::Weights))
      DSPARK_RETURN_IF_ERROR(state->writeAt(section.entry.offset, section.bytes));
  }
  PlanHeader header = {};
  std::memcpy(header.magic, kPlanMagic, sizeof(kPlanMagic));
  header.major = kPlanMajor;
  header.minor = kPlanMinor;
  header.minimalReader = state->haveRuns || usesRuns(plan) ? kMinorOfRuns : minimalReader(plan);
  header.byteOrder = kPlanByteOrder;
  header.sectionCount = uint32_t(table.size());
  header.fileBytes = fileBytes;
  header.tableHash = hashPlanTable(header, table);
  DSPARK_RETURN_IF_ERROR(state->writeAt(0, std::as_bytes(std::span(&header, 1))));
  DSPARK_RETURN_IF_ERROR(state->write(std::as_bytes(std::span(table))));

  FILE *file = std::exchange(state->file, nullptr);
  if (fclose(file) != 0)
    return state->failure("write");
  if (rename(state->temporary.c_str(), state->path.c_str()) != 0)
    return state->failure("rename the finished file");
  state->temporary.clear();
  return Status::ok();
}

} // namespace dspark

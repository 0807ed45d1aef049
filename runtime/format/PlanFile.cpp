#include "runtime/format/PlanFile.h"
#include "runtime/base/MappedFile.h"
#include "runtime/format/Hash.h"
#include "runtime/format/PlanCheck.h"
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

namespace dspark {

uint64_t hashPlanTable(PlanHeader header, std::span<const SectionEntry> table) {
  header.tableHash = 0;
  StreamHash hash;
  hash.add(std::as_bytes(std::span(&header, 1)));
  hash.add(std::as_bytes(table));
  return hash.value();
}

namespace {

std::string sectionName(const SectionEntry &entry) {
  switch (SectionKind(entry.kind)) {
  case SectionKind::Meta:
    return "META";
  case SectionKind::Plan:
    return "PLAN";
  case SectionKind::Weights:
    return "WEIGHTS";
  case SectionKind::Code:
    return "CODE " + std::to_string(entry.tag);
  case SectionKind::Cost:
    return "COST";
  case SectionKind::Ir:
    return "IR";
  case SectionKind::Tokenizer:
    return "TOKENIZER";
  case SectionKind::Template:
    return "TEMPLATE";
  case SectionKind::Function:
    return "FUNCTION " + std::to_string(entry.tag);
  case SectionKind::Drafters:
    return "DRAFTERS";
  }
  return "of kind " + std::to_string(entry.kind);
}
bool isKnown(uint32_t kind) {
  return kind >= uint32_t(SectionKind::Meta) && kind <= uint32_t(SectionKind::Drafters);
}

std::string hex(uint64_t value) {
  char buffer[20];
  snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(value));
  return buffer;
}
Status hashMismatch(const std::string &what, uint64_t found, uint64_t expected) {
  return corruptFile(what + ": its bytes have hash " + hex(found) + ", expected " + hex(expected));
}

class OpenPlan final : public PlanFile {
public:
  OpenPlan(std::string path, std::span<const std::byte> bytes, std::unique_ptr<MappedFile> mapping)
      : filePath(std::move(path)), file(bytes), mapping(std::move(mapping)) {}

  Status load() {
    DSPARK_RETURN_IF_ERROR(readHeader());
    DSPARK_RETURN_IF_ERROR(readTable());
    DSPARK_RETURN_IF_ERROR(readSections());
    DSPARK_RETURN_IF_ERROR(readPlan().in("section PLAN"));
    for (const SectionEntry &entry : table)
      if (entry.kind == uint32_t(SectionKind::Function))
        DSPARK_RETURN_IF_ERROR(readFunction(entry).in("section " + sectionName(entry)));
    return Status::ok();
  }

  const fb::Plan &plan() const override { return *root; }
  const fb::Plan *function(std::string_view name) const override {
    const auto place = functions.find(name);
    return place == functions.end() ? nullptr : place->second;
  }
  std::string_view meta() const override { return textOf(SectionKind::Meta); }
  std::string_view ir() const override { return textOf(SectionKind::Ir); }
  std::span<const std::byte> tokenizer() const override {
    return std::as_bytes(std::span(textOf(SectionKind::Tokenizer)));
  }
  std::string_view chatTemplate() const override { return textOf(SectionKind::Template); }
  std::string_view drafters() const override { return textOf(SectionKind::Drafters); }
  const std::string &path() const override { return filePath; }
  std::span<const SectionEntry> sections() const override { return table; }
  std::span<const std::byte> bytes(const SectionEntry &section) const override {
    return file.subspan(section.offset, section.length);
  }
  std::span<const std::byte> blob(const fb::Blob &blob) const override {
    return spaceOf(blob.file()).subspan(blob.offset(), blob.length());
  }
  Status verifyWeights() const override;

private:
  Status readHeader();
  Status readTable();
  Status readSections() const;
  Status checkGaps() const;
  StatusOr<const fb::Plan *> rootOf(const SectionEntry &entry) const;
  Status readPlan();
  Status readFunction(const SectionEntry &entry);
  Status openWeightFile(const std::string &name, size_t index);

  const SectionEntry *find(SectionKind kind) const {
    for (const SectionEntry &entry : table)
      if (entry.kind == uint32_t(kind))
        return &entry;
    return nullptr;
  }
  std::string_view textOf(SectionKind kind) const {
    const SectionEntry *entry = find(kind);
    if (!entry)
      return {};
    return {reinterpret_cast<const char *>(file.data()) + entry->offset, entry->length};
  }
  std::span<const std::byte> spaceOf(int fileIndex) const {
    if (fileIndex >= 0)
      return weightFiles[size_t(fileIndex)]->bytes();
    const SectionEntry *entry = find(SectionKind::Weights);
    return entry ? bytes(*entry) : std::span<const std::byte>();
  }

  std::string filePath;
  std::span<const std::byte> file;
  std::unique_ptr<MappedFile> mapping; // null when the bytes are the caller's
  PlanHeader header = {};
  std::vector<SectionEntry> table;
  const fb::Plan *root = nullptr;
  std::map<std::string, const fb::Plan *, std::less<>> functions;
  std::vector<std::unique_ptr<MappedFile>> weightFiles;
};

Status OpenPlan::readHeader() {
  if (file.size() < sizeof(PlanHeader))
    return corruptFile("the file has " + std::to_string(file.size()) + " bytes, expected a header of " +
                       std::to_string(sizeof(PlanHeader)));
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, kPlanMagic, sizeof kPlanMagic) != 0)
    return corruptFile("the header: this is not a plan file (its first bytes are not DSPARK)");
  if (header.byteOrder != kPlanByteOrder)
    return corruptFile("the header: byte order mark " + std::to_string(header.byteOrder) + ", expected " +
                       std::to_string(kPlanByteOrder));
  if (header.major != kPlanMajor || header.minimalReader > kPlanMinor)
    return {Code::Version, "the header: format version " + std::to_string(header.major) + "." +
                               std::to_string(header.minor) + " (readable from " +
                               std::to_string(header.major) + "." + std::to_string(header.minimalReader) +
                               "), expected " + std::to_string(kPlanMajor) + "." +
                               std::to_string(kPlanMinor) + "; compile the model again"};
  if (header.flags != 0)
    return {Code::Version, "the header: flags " + std::to_string(header.flags) + ", expected 0"};
  if (header.fileBytes != file.size())
    return corruptFile("the header: the file has " + std::to_string(file.size()) + " bytes, expected " +
                       std::to_string(header.fileBytes) +
                       (file.size() < header.fileBytes ? "; it is truncated" : ""));
  return Status::ok();
}

Status OpenPlan::readTable() {
  uint64_t room = (file.size() - sizeof(PlanHeader)) / sizeof(SectionEntry);
  if (header.sectionCount > room)
    return corruptFile("the section table: " + std::to_string(header.sectionCount) +
                       " sections, expected at most " + std::to_string(room));
  table.resize(header.sectionCount);
  if (!table.empty())
    std::memcpy(table.data(), file.data() + sizeof(PlanHeader), table.size() * sizeof(SectionEntry));
  if (uint64_t hash = hashPlanTable(header, table); hash != header.tableHash)
    return hashMismatch("the header and section table", hash, header.tableHash);
  for (const SectionEntry &entry : table) {
    std::string name = "section " + sectionName(entry);
    if (!isKnown(entry.kind) && (entry.flags & kSectionRequired))
      return {Code::Version, name + ": it is required and this reader does not know it"};
    bool isWeights = entry.kind == uint32_t(SectionKind::Weights);
    uint64_t alignment = isWeights ? kWeightsAlignment : 64;
    if (entry.offset % alignment != 0)
      return corruptFile(name + ": it lies at " + std::to_string(entry.offset) + ", expected a multiple of " +
                         std::to_string(alignment));
    if (entry.length > file.size() || entry.offset > file.size() - entry.length)
      return corruptFile(name + ": it lies at " + std::to_string(entry.offset) + " with length " +
                         std::to_string(entry.length) + ", expected to end within " +
                         std::to_string(file.size()));
    for (const SectionEntry *other = table.data(); other != &entry; ++other)
      if (other->kind == entry.kind && other->tag == entry.tag && isKnown(entry.kind))
        return corruptFile(name + ": it is there twice");
  }
  return checkGaps();
}

// Sections must not overlap, and the bytes between them are zero: no byte of the file is free to change.
Status OpenPlan::checkGaps() const {
  std::vector<SectionEntry> sorted = table;
  std::sort(sorted.begin(), sorted.end(), [](auto &a, auto &b) { return a.offset < b.offset; });
  uint64_t end = sizeof(PlanHeader) + table.size() * sizeof(SectionEntry);
  // The gap in front of the weights is up to 2 MiB: byte by byte it would be most of what opening costs. It
  // is zero if it begins with zero and equals itself one byte further on.
  auto gapIsZero = [&](uint64_t begin, uint64_t until) {
    auto gap = file.subspan(begin, until - begin);
    return gap.empty() ||
           (gap[0] == std::byte(0) && std::memcmp(gap.data(), gap.data() + 1, gap.size() - 1) == 0);
  };
  for (const SectionEntry &entry : sorted) {
    if (entry.offset < end)
      return corruptFile("section " + sectionName(entry) + ": it lies at " + std::to_string(entry.offset) +
                         ", expected at " + std::to_string(end) + " or later");
    if (!gapIsZero(end, entry.offset))
      return corruptFile("the padding in front of section " + sectionName(entry) +
                         " has bytes other than zero");
    end = entry.offset + entry.length;
  }
  if (!gapIsZero(end, file.size()))
    return corruptFile("the padding at the end has bytes other than zero");
  return Status::ok();
}

Status OpenPlan::readSections() const {
  for (const SectionEntry &entry : table)
    if (entry.kind != uint32_t(SectionKind::Weights))
      if (uint64_t hash = hashBytes(bytes(entry)); hash != entry.hash)
        return hashMismatch("section " + sectionName(entry), hash, entry.hash);
  return Status::ok();
}

Status OpenPlan::openWeightFile(const std::string &name, size_t index) {
  std::filesystem::path relative(name);
  bool leaves = relative.empty() || relative.is_absolute() ||
                std::any_of(relative.begin(), relative.end(), [](auto &part) { return part == ".."; });
  if (leaves)
    return corruptFile("weight file '" + name + "': expected a path inside the plan's folder");
  DSPARK_ASSIGN_OR_RETURN(auto mapped,
                          MappedFile::open((std::filesystem::path(filePath).parent_path() / relative)));
  const auto *lengths = root->file_bytes();
  if (lengths && lengths->size() > index && lengths->Get(unsigned(index)) != mapped->bytes().size())
    return corruptFile("weight file '" + name + "' has " + std::to_string(mapped->bytes().size()) +
                       " bytes, expected " + std::to_string(lengths->Get(unsigned(index))));
  weightFiles.push_back(std::move(mapped));
  return Status::ok();
}

StatusOr<const fb::Plan *> OpenPlan::rootOf(const SectionEntry &entry) const {
  auto section = bytes(entry);
  const auto *data = reinterpret_cast<const uint8_t *>(section.data());
  // A table takes at least 8 bytes, so a larger count only comes from tables that are reached twice.
  flatbuffers::Verifier verifier(data, section.size(), 8 * (kMaxBlockDepth + 2), section.size() / 4 + 1);
  if (section.size() < 8 || section.size() >= FLATBUFFERS_MAX_BUFFER_SIZE ||
      !verifier.VerifyBuffer<fb::Plan>(nullptr))
    return corruptFile("it is not a well-formed FlatBuffer of plan.fbs");
  const fb::Plan *root = flatbuffers::GetRoot<fb::Plan>(data);
  if (!isAligned(root->file_bytes()) || !isAligned(root->file_hashes()))
    return corruptFile("lengths or hashes of weight files are not aligned, expected a multiple of 8");
  return root;
}

Status OpenPlan::readFunction(const SectionEntry &entry) {
  DSPARK_ASSIGN_OR_RETURN(const fb::Plan *function, rootOf(entry));
  std::string name = function->name() ? function->name()->str() : "";
  if (name.empty() || !functions.emplace(name, function).second)
    return corruptFile("its name is '" + name + "', expected one of its own");
  if (function->files() && function->files()->size() > 0)
    return corruptFile("it names weight files, expected none: those of PLAN are not shared");
  return checkPlan(*function, {spaceOf(-1).size()}, {});
}

Status OpenPlan::readPlan() {
  const SectionEntry *entry = find(SectionKind::Plan);
  if (!entry)
    return corruptFile("it is missing");
  DSPARK_ASSIGN_OR_RETURN(root, rootOf(*entry));
  if (root->files())
    for (unsigned i = 0; i < root->files()->size(); ++i)
      DSPARK_RETURN_IF_ERROR(openWeightFile(root->files()->Get(i)->str(), i));
  std::vector<BlobSpace> spaces;
  for (const auto &mapped : weightFiles)
    spaces.push_back({mapped->bytes().size()});
  return checkPlan(*root, {spaceOf(-1).size()}, spaces);
}

Status OpenPlan::verifyWeights() const {
  if (const SectionEntry *entry = find(SectionKind::Weights))
    if (uint64_t hash = hashBytes(bytes(*entry)); hash != entry->hash)
      return hashMismatch("section WEIGHTS", hash, entry->hash).in(filePath);
  const auto *hashes = root->file_hashes();
  for (size_t i = 0; hashes && i < weightFiles.size() && i < hashes->size(); ++i)
    if (uint64_t hash = hashBytes(weightFiles[i]->bytes()); hash != hashes->Get(unsigned(i)))
      return hashMismatch("weight file '" + root->files()->Get(unsigned(i))->str() + "'", hash,
                          hashes->Get(unsigned(i)))
          .in(filePath);
  return Status::ok();
}

StatusOr<std::shared_ptr<const PlanFile>> openPlan(std::string path, std::span<const std::byte> bytes,
                                                   std::unique_ptr<MappedFile> mapping) {
  auto plan = std::make_shared<OpenPlan>(path, bytes, std::move(mapping));
  DSPARK_RETURN_IF_ERROR(plan->load().in(path));
  return std::shared_ptr<const PlanFile>(std::move(plan));
}

} // namespace

StatusOr<std::shared_ptr<const PlanFile>> PlanFile::open(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(auto mapping, MappedFile::open(path));
  auto bytes = mapping->bytes();
  return openPlan(path, bytes, std::move(mapping));
}

StatusOr<std::shared_ptr<const PlanFile>> PlanFile::fromBytes(std::span<const std::byte> bytes,
                                                              std::string path) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 64 != 0)
    return invalidArgument(path + ": the bytes are not 64-byte aligned");
  return openPlan(std::move(path), bytes, nullptr);
}

} // namespace dspark

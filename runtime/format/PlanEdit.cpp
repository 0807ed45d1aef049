#include "runtime/format/PlanEdit.h"
#include "runtime/format/Hash.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace dspark {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t alignUp(uint64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

// The section as the new table has it: in its old place if it fits there, else behind all others.
SectionEntry placed(SectionEntry entry, std::span<const std::byte> bytes,
                    std::span<const SectionEntry> table) {
  uint64_t end = 0;
  for (const SectionEntry &other : table)
    end = std::max(end, other.offset + other.length);
  if (bytes.size() > alignUp(entry.length))
    entry.offset = alignUp(end);
  entry.length = bytes.size();
  entry.hash = hashBytes(bytes);
  return entry;
}

} // namespace

Status replaceSection(const std::string &path, SectionKind kind, std::span<const std::byte> bytes) {
  PlanHeader header;
  std::vector<SectionEntry> table;
  {
    DSPARK_ASSIGN_OR_RETURN(auto plan, PlanFile::open(path));
    table.assign(plan->sections().begin(), plan->sections().end());
  }
  const auto entry = std::ranges::find(table, uint32_t(kind), &SectionEntry::kind);
  if (entry == table.end())
    return invalidArgument(path + ": the plan has no section of kind " + std::to_string(uint32_t(kind)));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  const auto write = [&](uint64_t offset, std::span<const std::byte> data) {
    file.seekp(std::streamoff(offset));
    file.write(reinterpret_cast<const char *>(data.data()), std::streamsize(data.size()));
  };
  write(entry->offset, std::vector<std::byte>(entry->length)); // no byte between sections but zero
  *entry = placed(*entry, bytes, table);
  write(entry->offset, bytes);
  header.fileBytes = std::max(header.fileBytes, entry->offset + entry->length);
  header.tableHash = hashPlanTable(header, table);
  write(0, std::as_bytes(std::span(&header, 1)));
  write(sizeof header, std::as_bytes(std::span(table)));
  if (!file.flush())
    return {Code::IoError, path + ": cannot be rewritten: " + std::strerror(errno)};
  return Status::ok();
}

} // namespace dspark

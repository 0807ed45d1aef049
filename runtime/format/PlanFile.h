// The plan file: header, section table, 64-byte-aligned sections (docs/plan-format.md). The writer streams,
// the reader maps. This is one of the two places where compiler and runtime meet.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/format/plan_generated.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dspark {

inline constexpr char kPlanMagic[8] = {'D', 'S', 'P', 'A', 'R', 'K', '\r', '\n'};
inline constexpr uint16_t kPlanMajor = 2, kPlanMinor = 5;
/// The oldest minor version that reads what this writer writes; plans with strings, sequences, optionals or
/// maps need more, and so do those with states and with constants stored as runs.
inline constexpr uint16_t kPlanMinimalReader = 1, kMinorOfLists = 2, kMinorOfStates = 3, kMinorOfRuns = 5;
inline constexpr uint16_t kPlanByteOrder = 0x0102;
inline constexpr uint64_t kWeightsAlignment = 2 << 20;
inline constexpr uint64_t kMaxBlobAlignment = 4096;
/// Blocks inside blocks (If, Loop); deeper plans are refused.
inline constexpr int kMaxBlockDepth = 64;
/// Ways to run a region, and devices beside the CPU.
inline constexpr size_t kMaxRegionVariants = 4, kMaxPlanDevices = 16, kMaxPlanSizes = 16;
/// Sequences of optionals of ...
inline constexpr int kMaxTypeDepth = 4;

/// Little-endian, 64 bytes, at offset 0.
struct PlanHeader {
  char magic[8];
  uint16_t major, minor;  // of the writer; another major is refused
  uint16_t minimalReader; // oldest reader minor that may open it
  uint16_t byteOrder;     // 0x0102 as written by a little-endian machine
  uint32_t sectionCount;
  uint32_t flags;       // none defined; unknown flags are refused
  uint64_t fileBytes;   // length of the whole file
  uint64_t tableHash;   // XXH3 of this header with tableHash = 0, followed by the section table
  uint64_t reserved[3]; // zero
};
static_assert(sizeof(PlanHeader) == 64);

enum class SectionKind : uint32_t {
  Meta = 1,      // JSON
  Plan = 2,      // FlatBuffers, plan.fbs
  Weights = 3,   // constant bytes, 2 MiB aligned in the file
  Code = 4,      // one ELF shared object; `tag` is the Isa level
  Cost = 5,      // JSON (later)
  Ir = 6,        // MLIR text, optional
  Tokenizer = 7, // of a language model: runtime/llm/tokenizer/SpecFormat.h
  Template = 8,  // of a language model: its chat template, Jinja text
  Function = 9,  // as Plan, of a further function; `tag` counts them from 0
  Drafters = 10, // of a language model: what it speculates with, JSON (docs/speculation.md)
};

struct SectionEntry {
  uint32_t kind;   // SectionKind; unknown kinds without kRequired are skipped
  uint32_t tag;    // for Code: the Isa level
  uint64_t offset; // multiple of 64; of 2 MiB for Weights
  uint64_t length;
  uint64_t
      hash; // XXH3 of the bytes; verified when opening, except for Weights, which dspark-rt --verify checks
  uint32_t flags; // kRequired: a reader that does not know the kind must refuse
  uint32_t reserved;
};
static_assert(sizeof(SectionEntry) == 40);
inline constexpr uint32_t kSectionRequired = 1;
/// What PlanHeader::tableHash must be.
uint64_t hashPlanTable(PlanHeader header, std::span<const SectionEntry> table);

/// Writes a plan to `path` by way of a temporary file that is renamed at the end; nothing is left behind on
/// failure.
class PlanWriter {
public:
  static StatusOr<std::unique_ptr<PlanWriter>> create(const std::string &path);
  ~PlanWriter(); // removes the temporary file unless finish() succeeded

  /// Appends `bytes` to the WEIGHTS section at a multiple of `alignment` (a power of two, at most 4096) and
  /// returns the offset within the section. Streamed: nothing is kept in memory.
  StatusOr<uint64_t> addWeight(std::span<const std::byte> bytes, uint64_t alignment = 64);
  /// Adds generated code for one ISA level.
  void addCode(uint32_t isa, std::vector<std::byte> elf);
  void setMeta(std::string json);
  void setIr(std::string text);
  void setTokenizer(std::vector<std::byte> bytes);
  void setTemplate(std::string text);
  void setDrafters(std::string json);
  /// A function beside the one that finish() is given; its name must be its own.
  void addFunction(const fb::PlanT &function);
  /// Packs `plan`, writes the remaining sections, table and header, and renames.
  Status finish(const fb::PlanT &plan);

private:
  PlanWriter();
  struct State;
  std::unique_ptr<State> state;
};

/// An open, mapped plan whose every reference has been checked: value ids, expression ids, blob ranges,
/// alignment. Immutable; may be shared by threads.
class PlanFile {
public:
  static StatusOr<std::shared_ptr<const PlanFile>> open(const std::string &path);
  /// The same from memory, which must outlive the result (fuzzing, tests).
  static StatusOr<std::shared_ptr<const PlanFile>> fromBytes(std::span<const std::byte> bytes,
                                                             std::string path);
  virtual ~PlanFile() = default;

  virtual const fb::Plan &plan() const = 0;
  /// A further function; null if there is none of that name.
  virtual const fb::Plan *function(std::string_view name) const = 0;
  virtual std::string_view meta() const = 0;
  virtual std::string_view ir() const = 0;
  /// Of a language model; empty if the plan has none.
  virtual std::span<const std::byte> tokenizer() const = 0;
  virtual std::string_view chatTemplate() const = 0;
  virtual std::string_view drafters() const = 0;
  virtual const std::string &path() const = 0;
  virtual std::span<const SectionEntry> sections() const = 0;
  virtual std::span<const std::byte> bytes(const SectionEntry &section) const = 0;
  /// The bytes or runs of a constant, inside this mapping or that of a by-reference file.
  virtual std::span<const std::byte> blob(const fb::Blob &blob) const = 0;
  /// Checks the WEIGHTS hash, which open() skips so that opening takes no time.
  virtual Status verifyWeights() const = 0;
};

} // namespace dspark

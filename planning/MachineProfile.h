// What is known about a machine: a CostModel as a JSON file, kept by the machine's fingerprint. Two for
// machines that were never probed are part of the program (planning/generic.json, generic-avx512.json).
// docs/cost-model.md describes the file.
#pragma once
#include "kernels/common/isa.h"
#include "planning/CostFit.h"
#include "runtime/base/Status.h"

namespace dspark {

/// What decides how fast a kernel is, as the operating system tells it.
struct MachineFacts {
  std::string cpu;             // vendor, family, model and name
  std::string isa;             // the best level
  int cores = 1;               // that the machine has online
  std::vector<int64_t> caches; // bytes of L1 data, L2, L3, as far as known

  static MachineFacts read();
  /// 16 hex digits that differ where one of the facts does.
  std::string fingerprint() const;
};

struct MachineProfile {
  MachineFacts machine;
  std::string fingerprint; // "" in the generic profile
  double spread = 0;       // of repeated measurements during the probe, relative
  FitReport fit;           // of the probe; kernels' own figures are not kept
  CostModel model;
  std::string source; // where it comes from, for people: a path, "generic" or "generic-avx512"

  /// CorruptFile with what is wrong and where in the file.
  static StatusOr<MachineProfile> parse(std::string_view json, const std::string &source);
  static StatusOr<MachineProfile> load(const std::string &path);
  /// Of no machine in particular, the same everywhere: what simulations and tests take.
  static const MachineProfile &generic();
  /// Of machines whose kernels are of that level and that were never probed.
  static const MachineProfile &genericOf(Isa isa);
  /// The profile of this machine: the file that the environment variable DSPARK_MACHINE names, else the one
  /// that a probe saved, else genericOf(activeIsa()). A file that cannot be used is named in `warning`.
  static MachineProfile ofThisMachine(std::string &warning);
  /// Where a probe saves the profile of `machine`: $XDG_CACHE_HOME/dspark or ~/.cache/dspark. "" where there
  /// is no such folder.
  static std::string defaultPath(const MachineFacts &machine);

  std::string text() const; // JSON
  /// Written beside and renamed, so that a reader never sees half of it.
  Status save(const std::string &path) const;
};

} // namespace dspark

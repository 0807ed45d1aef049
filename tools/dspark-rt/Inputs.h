// The inputs of a run: from files, and for what no file gives, random from the declared types and shapes.
#pragma once
#include "runtime/executor/Program.h"
#include "tools/dspark-rt/HostTensor.h"
#include <map>

namespace dspark {

struct InputRequest {
  std::map<std::string, int64_t> dims; // symbols fixed by --dim
  std::vector<std::string> files;      // NAME=FILE.npy
  std::string archive;                 // FILE.npz, "" for none
  std::vector<HostTensor> tensors;     // read already, from `source`
  std::string source;
  uint64_t seed = 0;
};

struct Inputs {
  std::vector<HostValue> values; // in the program's order
  std::vector<bool> isRandom;
  std::vector<std::string> assumedDims; // symbols that nothing fixed: taken as 1
};

StatusOr<Inputs> gatherInputs(const Program &program, const InputRequest &request);

} // namespace dspark

// Files of inputs that precisions are judged by:
//
//   .npz     one set, arrays named like the inputs
//   .pb      one ONNX TensorProto, named like an input or, without a name, input_K.pb; files of one folder
//   are a set .jsonl   a set per line, {"input": number or nested lists ...}; a list of fewer dims than the
//   input's gets
//            leading dims of 1
#pragma once
#include "runtime/executor/Program.h"
#include "tools/dspark-rt/HostTensor.h"

namespace dspark {

struct CalibrationSet {
  std::string source; // for messages: the file, with the line where there are several
  std::vector<HostTensor> tensors;
};

/// In the order of the files. InvalidArgument or NotFound name the file, and the line and input that are
/// wrong.
StatusOr<std::vector<CalibrationSet>> readCalibrationSets(const Program &program,
                                                          const std::vector<std::string> &files);

} // namespace dspark

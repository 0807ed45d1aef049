// A text file of a checkpoint's folder.
#pragma once
#include "runtime/base/Status.h"
#include <optional>
#include <string>

namespace dspark::checkpoint {

/// Nothing if there is no such file. Errors: IoError; CorruptFile if it has more than 256 MiB (the largest
/// published tokenizer.json has 35 MiB).
StatusOr<std::optional<std::string>> readTextFile(const std::string &folder, const std::string &name);

} // namespace dspark::checkpoint

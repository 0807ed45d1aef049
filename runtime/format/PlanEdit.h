// Changes a plan file that is finished.
#pragma once
#include "runtime/format/PlanFile.h"

namespace dspark {

/// Puts other bytes in the section of that kind, of which the plan must have one, not the weights. The file
/// must not be open elsewhere, and is damaged if this is interrupted. Errors: those of PlanFile::open;
/// InvalidArgument without the section; IoError.
Status replaceSection(const std::string &path, SectionKind kind, std::span<const std::byte> bytes);

} // namespace dspark

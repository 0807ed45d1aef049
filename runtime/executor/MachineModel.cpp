#include "runtime/executor/MachineModel.h"
#include "planning/MachineProfile.h"

namespace dspark {

const CostModel &modelOfThisMachine() {
  static const MachineProfile machine = [] {
    std::string ignored;
    return MachineProfile::ofThisMachine(ignored);
  }();
  return machine.model;
}

} // namespace dspark

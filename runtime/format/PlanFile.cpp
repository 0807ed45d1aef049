#include "runtime/format/PlanFile.h"

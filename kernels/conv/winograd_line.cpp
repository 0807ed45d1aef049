#include "kernels/conv/winograd_line_loops.h"

namespace dspark {
extern const LineOps lineOpsBaseline = {lineInput, lineFilters, lineOutput};
} // namespace dspark

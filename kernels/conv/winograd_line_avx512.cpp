#include "kernels/conv/winograd_line_loops.h"

namespace dspark {
extern const LineOps lineOpsAvx512 = {lineInput, lineFilters, lineOutput};
} // namespace dspark

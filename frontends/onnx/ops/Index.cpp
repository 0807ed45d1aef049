// Gathering, scattering, searching, sorting.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

/// Before opset 10 k was an attribute; before 11 the result was always the largest, sorted.
void buildTopK1(Node &n) { n.outs(n.emit("top_k", {n.in(0), n.list({n.i("k", 0)})}, n.pick("axis"), 2)); }

constexpr OpRow rows[] = {
    direct("Gather", 1, {2, 2}, "gather", "axis:i"),
    direct("GatherElements", 11, {2, 2}, "gather_elements", "axis:i"),
    direct("GatherND", 11, {2, 2}, "gather_nd", "batch_dims:i"),
    direct("Scatter", 9, {3, 3}, "scatter_elements", "axis:i"), // renamed in opset 11
    direct("ScatterElements", 11, {3, 3}, "scatter_elements", "axis:i reduction:s"),
    direct("ScatterND", 11, {3, 3}, "scatter_nd", "reduction:s"),
    direct("OneHot", 9, {3, 3}, "one_hot", "axis:i"),
    built("TopK", 1, {1, 1, 2, 2}, buildTopK1, "axis:i k:i!"),
    direct("TopK", 10, {2, 2, 2, 2}, "top_k", "axis:i largest:i sorted:i"),
    direct("NonZero", 9, {}, "nonzero"),
    direct("Compress", 9, {2, 2}, "compress", "axis:i"),
    direct("Unique", 11, {1, 1, 1, 4}, "unique", "axis:i sorted:i"),
    direct("NonMaxSuppression", 10, {2, 5}, "non_max_suppression", "center_point_box:i"),
};

} // namespace

OpRows indexRows() { return rows; }

} // namespace dspark::onnx

#include "planning/CostFeatures.h"
#include "kernels/elementwise/kinds.h"
#include "kernels/fused/program.h"
#include "kernels/reduce/float_reduce.h"
#include "planning/ContractionFeatures.h"
#include <algorithm>

namespace dspark {
namespace {

double elementsOf(const TensorView &view) { return view.present() ? double(view.elements()) : 0; }
double bytesOf(const TensorView &view) {
  return view.present() ? double(dtypeBytes(view.type, view.elements())) : 0;
}
double last(const TensorView &view) {
  return view.present() && view.rank > 0 ? std::max<double>(1, double(view.dim(view.rank - 1))) : 1;
}
double rowsOf(const TensorView &view) { return elementsOf(view) / last(view); }

// --- elementwise ---

bool isHeavy(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::k_abs:
  case UnaryKind::k_neg:
  case UnaryKind::k_floor:
  case UnaryKind::k_ceil:
  case UnaryKind::k_round:
  case UnaryKind::k_sign:
  case UnaryKind::k_relu:
  case UnaryKind::k_leaky_relu:
  case UnaryKind::k_hard_sigmoid:
  case UnaryKind::k_hard_swish:
    return false;
  default:
    return true;
  }
}

bool isHeavy(int64_t category, int64_t kind) {
  if (FusedCategory(category) == FusedCategory::Unary)
    return isHeavy(UnaryKind(kind));
  if (FusedCategory(category) == FusedCategory::Binary)
    return BinaryKind(kind) == BinaryKind::k_div || BinaryKind(kind) == BinaryKind::k_pow;
  return false;
}

// Evaluations of exp and the like in what follows a contraction, or stands between the two of
// expand_depthwise.
double heavyActivations(const KernelCall &call) {
  auto has = [&](std::string_view attribute) {
    UnaryKind kind = unaryKind(call.attrs.s(attribute, ""));
    return kind != UnaryKind::kCount && isHeavy(kind);
  };
  const TensorView &y = call.out[0];
  double between = has("expand_activation") ? rowsOf(call.in[0]) * last(y) : 0;
  return between + (has("activation") ? elementsOf(y) : 0);
}

// The largest operand: all others broadcast to its dims.
const TensorView &fullOperand(const KernelCall &call) {
  const TensorView *most = &call.input(0);
  for (std::span<const TensorView> side : {call.in, call.out})
    for (const TensorView &view : side)
      if (elementsOf(view) > elementsOf(*most))
        most = &view;
  return *most;
}

int64_t dimFromEnd(const TensorView &view, int i) { return i < view.rank ? view.dim(view.rank - 1 - i) : 1; }

// Elements of the trailing axes that are one loop: each operand either has all of them or none.
double collapsedLength(const KernelCall &call, const TensorView &full) {
  auto sameAs = [&](int i, int j) { // axes i and j, counted from the end
    for (std::span<const TensorView> side : {call.in, call.out})
      for (const TensorView &view : side)
        if (view.present() && (dimFromEnd(view, i) == 1) != (dimFromEnd(view, j) == 1))
          return false;
    return true;
  };
  double length = 1;
  int first = -1;
  for (int i = 0; i < full.rank; ++i) {
    if (dimFromEnd(full, i) == 1)
      continue;
    if (first >= 0 && !sameAs(first, i))
      break;
    first = first < 0 ? i : first;
    length *= double(dimFromEnd(full, i));
  }
  return length;
}

void elementwiseFeatures(CostFeatures &f, const KernelCall &call, bool isFused) {
  const TensorView &full = fullOperand(call);
  double elements = elementsOf(full), length = collapsedLength(call, full);
  // Rows are walked one by one; a single long one is cut into parts.
  f.starts = length < elements ? elements / length : f.parts;
  if (!isFused)
    return;
  std::span<const int64_t> program = call.attrs.ints("program");
  double heavy = 0, all = double(program.size() / kFusedStride);
  for (size_t i = 0; i + kFusedStride <= program.size(); i += kFusedStride)
    heavy += isHeavy(program[i], program[i + 1]);
  f.work = (all - heavy) * elements;
  f.heavy = heavy * elements;
}

// --- movement ---

// Elements that lie in one piece in both tensors: trailing axes of equal size, and what of the next is there.
double commonRun(const TensorView &a, const TensorView &b) {
  double run = 1;
  for (int i = 0; i < std::max(a.rank, b.rank); ++i) {
    run *= double(std::min(dimFromEnd(a, i), dimFromEnd(b, i)));
    if (dimFromEnd(a, i) != dimFromEnd(b, i))
      break;
  }
  return std::max(1.0, run);
}

// Elements per run that a permutation leaves in one piece; axes of size 1 do not count.
double permutedRun(const KernelCall &call) {
  std::span<const int64_t> perm = call.attrs.ints("perm");
  const TensorView &x = call.in[0];
  double run = 1;
  int expected = x.rank - 1;
  auto skipOnes = [&] {
    while (expected >= 0 && x.dim(expected) == 1)
      --expected;
  };
  for (size_t i = perm.size(); i-- > 0;) {
    if (perm[i] < 0 || perm[i] >= x.rank || x.dim(int(perm[i])) == 1)
      continue;
    skipOnes();
    if (perm[i] != expected)
      break;
    run *= double(x.dim(expected--));
  }
  return std::max(1.0, run);
}

bool isMovement(std::string_view op) {
  for (std::string_view name : {"concat", "slice", "pad", "expand", "split", "gather", "tile"})
    if (op == name)
      return true;
  return false;
}

void movementFeatures(CostFeatures &f, std::string_view op, const KernelCall &call) {
  f.work = 0;
  if (op == "gather") { // whole rows of the data
    f.starts = elementsOf(call.input(1));
    f.moved = bytesOf(call.out[0]) * 2 + bytesOf(call.input(1));
    f.constant = 0;
    return;
  }
  f.starts = 0;
  bool isJoin = op == "concat";
  for (const TensorView &view : isJoin ? call.in : call.out)
    if (view.present())
      f.starts += elementsOf(view) / commonRun(isJoin ? call.out[0] : call.in[0], view);
}

// --- keys ---

// Whether a reduction leaves the last axis alone, so that whole rows are added up.
bool keepsLast(const KernelCall &call) {
  return call.in[0].rank > 0 && last(call.in[0]) > 1 && last(call.out[0]) == last(call.in[0]);
}

// Whether rows are so short that they are folded side by side.
bool hasShortRows(const KernelCall &call) {
  return elementsOf(call.in[0]) <= double(reduce_ops::kShortRow) * elementsOf(call.out[0]);
}

std::string keyOf(const Kernel &kernel, const KernelCall &call) {
  std::string key = kernel.name;
  if (key.starts_with("multi_")) // costs what its products would as one
    key.erase(0, key.find('_') + 1);
  auto add = [&](std::string_view text) {
    if (!text.empty())
      key.append("/").append(text);
  };
  std::string_view op = kernel.op;
  if (key.find("packed") != key.npos) {
    add(call.attrs.s("packed", ""));
    add(call.attrs.s("arithmetic", ""));
  } else if (key.find("depthwise") != key.npos) {
    std::span<const int64_t> strides = call.attrs.ints("strides");
    const TensorView &w = call.input(op == "expand_depthwise" ? 3 : 1);
    if (w.rank > 2)
      add(std::to_string(w.dim(w.rank - 1)) + "s" + std::to_string(strides.empty() ? 1 : strides.back()));
  } else if (op == "unary" || op == "resize" || op == "pad") {
    add(call.attrs.s(op == "unary" ? "kind" : "mode", op == "pad" ? "constant" : ""));
  } else if (op == "reduce") {
    add(keepsLast(call) ? "columns" : hasShortRows(call) ? "short" : "rows");
  } else if (op == "transpose") {
    add(permutedRun(call) > 1 ? "runs" : "elements");
  }
  return key;
}

bool isOneOf(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

} // namespace

CostFeatures costFeatures(const Kernel &kernel, const KernelCall &call, const KernelWork &work,
                          uint64_t constants) {
  CostFeatures f;
  f.key = keyOf(kernel, call);
  for (size_t k = 0; k < call.in.size(); ++k)
    (k < 64 && constants >> k & 1 ? f.constant : f.moved) += bytesOf(call.in[k]);
  for (const TensorView &view : call.out)
    f.moved += bytesOf(view);
  for (int phase = 0; phase < work.phases; ++phase)
    f.parts = std::max(f.parts, double(work.tiles[phase]));
  f.work = work.flops;
  if (call.out.empty() || call.in.empty())
    return f;
  std::string_view op = kernel.op;
  f.starts = rowsOf(call.out[0]);
  if (f.work == 0)
    f.work = elementsOf(call.out[0]);
  if (isOneOf(op, {"matmul", "multi_matmul", "matmul_dequant", "qlinear_matmul", "matmul_integer"}))
    matmulFeatures(f, call);
  else if (isOneOf(op, {"conv", "conv_transpose", "expand_depthwise", "qlinear_conv", "conv_integer"})) {
    convFeatures(f, call, work);
    f.heavy += heavyActivations(call);
  } else if (isOneOf(op, {"unary", "binary", "compare", "select", "clip", "cast", "fused", "fused_reduce"}))
    elementwiseFeatures(f, call, op.starts_with("fused"));
  else if (isMovement(op))
    movementFeatures(f, op, call);
  else if (op == "transpose")
    f.starts = elementsOf(call.in[0]) / permutedRun(call);
  else if (op == "softmax")
    f.heavy = elementsOf(call.in[0]);
  else if (op == "reduce")
    f.starts = rowsOf(call.in[0]);
  else if (isOneOf(op, {"pool", "qlinear_pool"}))
    for (int64_t side : call.attrs.ints("kernel_shape"))
      f.work *= double(side);
  else if (op == "attention") {
    double heads = call.in[0].rank == 3 ? double(call.attrs.i("q_num_heads", 1)) : 1;
    f.heavy = work.flops * heads / (4 * last(call.in[0])); // one exp per pair of a query and a key
  }
  return f;
}

} // namespace dspark

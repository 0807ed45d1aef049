// Shape functions: from operand types, dims and (where an operator needs them) contents to result types and
// dims.
//
// Written once per operator in kernels/<op>/*_shape.cpp and used in two places: by the compiler on symbolic
// dims, and by the runtime on numbers whenever it meets a new input shape. They also compute the *contents*
// of small integer results (Shape, Gather, Concat, Add ... on a handful of elements), which is how shape
// subgraphs fold away.
#pragma once
#include "kernels/common/attrs.h"
#include "kernels/common/dim.h"
#include "kernels/common/dtype.h"
#include <span>
#include <string>
#include <vector>

namespace dspark {

/// Contents are tracked for tensors of at most so many elements.
inline constexpr int64_t kMaxKnownElements = 1024;
inline constexpr int kMaxRank = 12;

struct TensorInfo {
  DType type = DType::Undefined;
  bool hasRank = false;
  std::vector<Dim> dims; // empty unless hasRank

  /// Contents in row-major order. `ints` for integer and bool tensors (single entries may be unknown),
  /// `floats` for floating-point constants. Empty with `hasContents` false when nothing is known.
  bool hasContents = false;
  std::vector<Dim> ints;
  std::vector<double> floats;

  static TensorInfo make(DType type, std::vector<Dim> dims) {
    TensorInfo info;
    info.type = type;
    info.hasRank = true;
    info.dims = std::move(dims);
    return info;
  }
  bool present() const { return type != DType::Undefined; }
  int rank() const { return int(dims.size()); }
  /// Product of all dims; unknown if any is.
  Dim elements() const;
  /// "f32[batch, 3, 224]" for messages.
  std::string str() const;
};

enum class InferStatus : uint8_t {
  Ok,
  NeedsContents, // result shape depends on the contents of the operand in `needed`, not known (yet)
  Error,         // operands do not fit the operator; `error` says what was expected and found
};

/// What a shape function sees and fills. `out` arrives sized to the number of results with everything
/// unknown.
class InferContext {
public:
  std::span<const TensorInfo> in; // absent optional operands have type Undefined
  Attrs attrs;
  std::vector<TensorInfo> out;
  int needed = -1;
  /// Set by operators whose result dims only the kernel knows (NonZero, Unique ...): `out[k].dims` are then
  /// upper bounds, and the kernel writes the true dims.
  bool dimsFromKernel = false;
  std::string error;

  bool has(size_t i) const { return i < in.size() && in[i].present(); }
  /// The known integer contents of operand i, or null. Entries may still be symbolic or unknown.
  const std::vector<Dim> *ints(size_t i) const {
    return has(i) && in[i].hasContents && !(isFloat(in[i].type)) ? &in[i].ints : nullptr;
  }
  const std::vector<double> *floats(size_t i) const {
    return has(i) && in[i].hasContents && isFloat(in[i].type) ? &in[i].floats : nullptr;
  }
  InferStatus needsContents(int operand) {
    needed = operand;
    return InferStatus::NeedsContents;
  }
  InferStatus fail(std::string message) {
    error = std::move(message);
    return InferStatus::Error;
  }
};

using InferFn = InferStatus (*)(InferContext &);

// --- helpers that most shape functions share
// ---------------------------------------------------------------------

/// `axis` in [-rank, rank) as [0, rank), or -1 if outside.
int normalizeAxis(int64_t axis, int rank);
/// Numpy-style broadcast of all operands' dims. False, with ctx.error set, if they do not fit; an operand of
/// unknown rank makes the result's rank unknown (`hasRank` false).
bool broadcastDims(InferContext &ctx, std::span<const TensorInfo> operands, TensorInfo &result);
/// Product of dims[begin, end).
Dim dimProduct(std::span<const Dim> dims, size_t begin, size_t end);

} // namespace dspark

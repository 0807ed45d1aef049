// libFuzzer target: every shape function of the catalogue on arbitrary operands, attributes and contents:
// what a hostile plan can say. Whatever the input, a shape function ends in one of three ways, and each is
// checked:
//   Ok             results of at most kMaxRank dims; dims >= 0 where all operands are numbers; contents, if
//   any, are small NeedsContents  names a present operand whose contents are not all known, so that the
//   executor can go on Error          a sentence
// Crashes, undefined behaviour and large allocations are findings of the sanitizers and of the hook below.
#include "kernels/common/catalogue.h"
#include "kernels/common/infer.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sanitizer/allocator_interface.h>

using namespace dspark;

namespace {

constexpr size_t kLargestAllocation = 64 << 20;

// Numbers from the input; zeros once it is used up.
class Source {
public:
  Source(const uint8_t *data, size_t size) : at(data), end(data + size) {}
  uint8_t byte() { return at < end ? *at++ : 0; }
  size_t below(size_t n) { return n <= 256 ? byte() % n : (byte() | size_t(byte()) << 8) % n; }
  bool chance(int ofEight) { return byte() % 8 < ofEight; }
  int64_t word() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
      value = value << 8 | byte();
    return int64_t(value);
  }
  int64_t number() {
    constexpr int64_t kNotable[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, int64_t(1) << 40,
                                    -1,        -2,        1024,      65536};
    switch (byte() % 8) {
    case 0:
      return kNotable[below(std::size(kNotable))];
    case 1:
      return word();
    case 2:
      return -int64_t(below(16));
    default:
      return int64_t(below(16));
    }
  }
  double real() {
    constexpr double kNotable[] = {0, -1, 1e300, -1e300, 1e-300, __builtin_nan(""), __builtin_inf(), 0.5};
    return byte() % 2 ? double(number()) : kNotable[below(std::size(kNotable))];
  }

private:
  const uint8_t *at, *end;
};

// Attributes of the catalogue, and values of the string ones; "nodes_modes" and its like are read as lists.
constexpr const char *kNames[] = {"act_alpha",
                                  "act_beta",
                                  "activation",
                                  "activation_alpha",
                                  "activation_beta",
                                  "activations",
                                  "aggregate_function",
                                  "align_corners",
                                  "allowzero",
                                  "alpha",
                                  "antialias",
                                  "auto_pad",
                                  "axes",
                                  "axis",
                                  "batch_axis",
                                  "batch_dims",
                                  "beta",
                                  "bias",
                                  "block_size",
                                  "blocksize",
                                  "ceil_mode",
                                  "center_point_box",
                                  "clip",
                                  "coordinate_transformation_mode",
                                  "count_include_pad",
                                  "detect_negative",
                                  "dilations",
                                  "direction",
                                  "dtype",
                                  "end",
                                  "epsilon",
                                  "equation",
                                  "exclusive",
                                  "group",
                                  "hidden_size",
                                  "ignore_index",
                                  "inner",
                                  "input_forget",
                                  "interleaved",
                                  "inverse",
                                  "is_causal",
                                  "k",
                                  "keepdims",
                                  "kernel_shape",
                                  "kind",
                                  "keep_aspect_ratio_policy",
                                  "keys_floats",
                                  "keys_int64s",
                                  "keys_tensor",
                                  "kv_num_heads",
                                  "lambd",
                                  "largest",
                                  "layout",
                                  "leaf_targetids",
                                  "leaf_weights",
                                  "left_window_size",
                                  "linear_before_reset",
                                  "max_gram_length",
                                  "max_skip_count",
                                  "membership_values",
                                  "min_gram_length",
                                  "mode",
                                  "n_targets",
                                  "nearest_mode",
                                  "ngram_counts",
                                  "ngram_indexes",
                                  "nodes_falseleafs",
                                  "nodes_falsenodeids",
                                  "nodes_featureids",
                                  "nodes_missing_value_tracks_true",
                                  "nodes_modes",
                                  "nodes_splits",
                                  "nodes_trueleafs",
                                  "nodes_truenodeids",
                                  "noop_with_empty_axes",
                                  "num_groups",
                                  "num_heads",
                                  "num_outputs",
                                  "offset_group",
                                  "onesided",
                                  "output_datatype",
                                  "output_height",
                                  "output_padding",
                                  "output_shape",
                                  "output_width",
                                  "p",
                                  "packed",
                                  "padding_mode",
                                  "pads",
                                  "params",
                                  "periodic",
                                  "perm",
                                  "pool_int64s",
                                  "post_transform",
                                  "precision",
                                  "program",
                                  "q_num_heads",
                                  "qk_matmul_output_mode",
                                  "reduction",
                                  "results",
                                  "reverse",
                                  "rotary_embedding_dim",
                                  "round_mode",
                                  "sample_size",
                                  "sampling_ratio",
                                  "saturate",
                                  "scale",
                                  "seed",
                                  "select_last_index",
                                  "shape",
                                  "size",
                                  "softcap",
                                  "softmax_precision",
                                  "sorted",
                                  "split",
                                  "start",
                                  "stash_type",
                                  "storage_order",
                                  "strides",
                                  "threshold",
                                  "time_axis",
                                  "to",
                                  "trans_a",
                                  "trans_b",
                                  "tree_roots",
                                  "update_rule",
                                  "upper",
                                  "value",
                                  "values_dtype",
                                  "values_floats",
                                  "values_int64s",
                                  "values_tensor",
                                  "weights"};
constexpr const char *kWords[] = {"",
                                  "relu",
                                  "neg",
                                  "isinf",
                                  "add",
                                  "pow",
                                  "mod",
                                  "and",
                                  "shl",
                                  "eq",
                                  "lt",
                                  "sum",
                                  "mean",
                                  "max",
                                  "l2",
                                  "log_sum_exp",
                                  "argmax",
                                  "softmax",
                                  "layer",
                                  "rms",
                                  "average",
                                  "lp",
                                  "nchw",
                                  "nhwc",
                                  "panel16",
                                  "panel16k4",
                                  "depthwise",
                                  "SAME_UPPER",
                                  "SAME_LOWER",
                                  "VALID",
                                  "NOTSET",
                                  "linear",
                                  "cubic",
                                  "nearest",
                                  "constant",
                                  "reflect",
                                  "edge",
                                  "wrap",
                                  "none",
                                  "TF",
                                  "IDF",
                                  "forward",
                                  "reverse",
                                  "bidirectional",
                                  "Sigmoid,Tanh,Tanh",
                                  "gated_delta",
                                  "DCR",
                                  "CRD",
                                  "tf_crop_and_resize",
                                  "not_larger",
                                  "ij,jk->ik",
                                  "...i->i...",
                                  "bij,bjk",
                                  "i,,->i",
                                  "zzzz->",
                                  "ii->i",
                                  "circular",
                                  "lower",
                                  "->"};

class AttributeSet {
public:
  explicit AttributeSet(Source &source) {
    for (size_t i = source.below(9); i-- > 0;)
      add(source);
  }
  Attrs view() const { return Attrs(list); }

private:
  void add(Source &source) {
    Attr attr;
    attr.name = kNames[source.below(std::size(kNames))];
    size_t count = source.chance(5) ? 1 : source.below(12);
    switch (source.byte() % 4) {
    case 0:
      attr.str = kWords[source.below(std::size(kWords))];
      break;
    case 1:
      for (floats.emplace_back(); count-- > 0;)
        floats.back().push_back(source.real());
      attr.floats = floats.back();
      break;
    default:
      for (ints.emplace_back(); count-- > 0;)
        ints.back().push_back(source.number());
      attr.ints = ints.back();
    }
    list.push_back(attr);
  }

  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> floats;
  std::vector<Attr> list;
};

// Operands of one call, numbers only or with symbols.
class Operands {
public:
  explicit Operands(Source &source) : isSymbolic(source.chance(3)) {
    for (size_t i = source.below(9); i-- > 0;)
      list.push_back(operand(source));
  }

  std::vector<TensorInfo> list;
  bool isSymbolic;

private:
  Dim dim(Source &source) {
    if (!isSymbolic || source.chance(4))
      return Dim(source.chance(6) ? int64_t(source.below(9)) : std::max<int64_t>(0, source.number()));
    constexpr const char *kSymbols[] = {"n", "m", "k"};
    Dim symbol = table.symbol(kSymbols[source.below(3)]);
    switch (source.byte() % 4) {
    case 0:
      return Dim();
    case 1:
      return symbol * Dim(source.number()) + Dim(source.number());
    default:
      return symbol;
    }
  }

  TensorInfo operand(Source &source) {
    TensorInfo info;
    constexpr DType kCommon[] = {DType::F32,  DType::I64, DType::F32, DType::I32,
                                 DType::Bool, DType::F16, DType::U8};
    info.type =
        source.chance(6) ? kCommon[source.below(std::size(kCommon))] : DType(source.below(kDTypeCount));
    if (!info.present())
      return info;
    info.hasRank = !isSymbolic || source.chance(7);
    if (info.hasRank)
      for (size_t i = source.chance(7) ? source.below(6) : source.below(kMaxRank + 1); i-- > 0;)
        info.dims.push_back(dim(source));
    if (source.chance(4))
      setContents(source, info);
    return info;
  }

  void setContents(Source &source, TensorInfo &info) {
    int64_t count = knownElements(info);
    if (count < 0 || count > 64 || info.type == DType::String)
      return;
    info.hasContents = true;
    for (; count > 0; --count)
      if (isFloat(info.type))
        info.floats.push_back(source.real());
      else
        info.ints.push_back(isSymbolic && source.chance(2) ? dim(source) : Dim(source.number()));
  }

  DimTable table;
};

[[noreturn]] void finding(const OpEntry &op, const std::string &what) {
  std::fprintf(stderr, "%s: %s\n", op.name, what.c_str());
  std::abort();
}

void checkResult(const OpEntry &op, const TensorInfo &info, bool isSymbolic) {
  if (info.hasRank && info.rank() > kMaxRank)
    finding(op, "a result of rank " + std::to_string(info.rank()));
  if (!info.hasRank && !info.dims.empty())
    finding(op, "dims without a rank");
  for (Dim dim : info.dims)
    if (dim.isConst() && dim.value() < 0 && !isSymbolic)
      finding(op, "a negative dim: " + info.str());
  if (info.hasContents && int64_t(std::max(info.ints.size(), info.floats.size())) > kMaxKnownElements)
    finding(op, "contents of a large result");
}

void checkNeed(const OpEntry &op, const InferContext &ctx) {
  if (ctx.needed < 0 || size_t(ctx.needed) >= ctx.in.size() || !ctx.in[size_t(ctx.needed)].present())
    finding(op, "needs the contents of operand " + std::to_string(ctx.needed) + ", which is not there");
  const TensorInfo &info = ctx.in[size_t(ctx.needed)];
  bool isKnown = contentsFit(info) && (isFloat(info.type) || numbers(info.ints).has_value());
  if (isKnown)
    finding(op, "needs the contents of operand " + std::to_string(ctx.needed) + ", which are known");
}

void onAllocation(const volatile void *, size_t size) {
  if (size > kLargestAllocation) {
    std::fprintf(stderr, "an allocation of %zu bytes\n", size);
    std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  __sanitizer_install_malloc_and_free_hooks(onAllocation, [](const volatile void *) {});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Source source(data, size);
  const OpEntry &op = allOps()[source.below(allOps().size())];
  size_t results = source.chance(6) ? 1 : source.below(6);
  AttributeSet attributes(source);
  Operands operands(source);
  InferContext ctx;
  ctx.in = operands.list;
  ctx.attrs = attributes.view();
  ctx.out.resize(results);
  switch (op.infer(ctx)) {
  case InferStatus::Ok:
    for (const TensorInfo &info : ctx.out)
      checkResult(op, info, operands.isSymbolic);
    break;
  case InferStatus::NeedsContents:
    checkNeed(op, ctx);
    break;
  case InferStatus::Error:
    if (ctx.error.empty())
      finding(op, "an error without a sentence");
  }
  return 0;
}

// What the fuzz targets share: an operator's call drawn from the fuzzer's bytes, with values that favour the
// edges.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/infer.h"
#include <algorithm>
#include <cstring>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

namespace dspark::fuzz {

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

inline std::vector<std::string> split(const char *text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

// Attributes of the catalogue, and values of the string ones; "nodes_modes" and its like are read as lists.
inline const std::vector<std::string> kNames =
    split("act_alpha act_beta activation activation_alpha activation_beta activations aggregate_function "
          "align_corners allowzero alpha antialias auto_pad axes axis batch_axis batch_dims beta bias "
          "block_size blocksize ceil_mode center_point_box clip coordinate_transformation_mode "
          "count_include_pad detect_negative dilations direction dtype end epsilon equation exclusive group "
          "hidden_size ignore_index inner input_forget interleaved inverse is_causal k keepdims "
          "kernel_shape kind keep_aspect_ratio_policy keys_floats keys_int64s keys_tensor kv_num_heads "
          "lambd largest layout leaf_targetids leaf_weights left_window_size linear_before_reset "
          "max_gram_length max_skip_count membership_values min_gram_length mode n_targets nearest_mode "
          "ngram_counts ngram_indexes nodes_falseleafs nodes_falsenodeids nodes_featureids "
          "nodes_missing_value_tracks_true nodes_modes nodes_splits nodes_trueleafs nodes_truenodeids "
          "noop_with_empty_axes num_groups num_heads num_outputs offset_group onesided output_datatype "
          "output_height output_padding output_shape output_width p packed padding_mode pads params "
          "periodic perm pool_int64s post_transform precision program q_num_heads qk_matmul_output_mode "
          "reduction results reverse rotary_embedding_dim round_mode sample_size sampling_ratio saturate "
          "scale seed select_last_index shape size softcap softmax_precision sorted split start stash_type "
          "storage_order strides threshold time_axis to trans_a trans_b tree_roots update_rule upper value "
          "values_dtype values_floats values_int64s values_tensor weights");
inline const std::vector<std::string> kWords =
    split("relu neg isinf add pow mod and shl eq lt sum mean max l2 log_sum_exp argmax softmax layer rms "
          "average lp nchw nhwc panel16 panel16k4 depthwise SAME_UPPER SAME_LOWER VALID NOTSET linear cubic "
          "nearest constant reflect edge wrap none TF IDF forward reverse bidirectional Sigmoid,Tanh,Tanh "
          "gated_delta DCR CRD tf_crop_and_resize not_larger ij,jk->ik ...i->i... bij,bjk i,,->i zzzz-> "
          "ii->i circular lower ->");

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
    attr.name = kNames[source.below(kNames.size())];
    size_t count = source.chance(5) ? 1 : source.below(12);
    switch (source.byte() % 4) {
    case 0:
      if (size_t word = source.below(kWords.size() + 1); word < kWords.size())
        attr.str = kWords[word];
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

} // namespace dspark::fuzz

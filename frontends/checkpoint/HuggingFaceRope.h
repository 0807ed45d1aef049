// The rotary embeddings of config.json: rope_theta with rope_scaling, or rope_parameters, one for all layers
// or one for each kind of layer.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/checkpoint/JsonFields.h"

namespace dspark::checkpoint {

/// What a model's class in transformers knows.
struct RopeDefaults {
  double base = 1e4;
  double localBase = 0;        // of layers with a window; 0: one rope for all
  int64_t originalContext = 0; // 0: the context's length
  bool isYarnLongrope = false; // "su" and "yarn" are old names of "longrope"
};

struct RopeTables {
  std::vector<RopeTable> ropes;
  int local = 0; // index of the rope of layers with a window
};

/// `config` gives head size and context. Errors go to the fields' status: Unsupported for kinds whose angles
/// depend on a sequence's length ("dynamic") and unknown ones.
RopeTables readHuggingFaceRope(const JsonFields &fields, const RopeDefaults &defaults,
                               const DecoderConfig &config);

} // namespace dspark::checkpoint

// What config.json says of DeepSeek-V2 and V3 beyond other decoders: latent attention, and routers with
// groups, biases and shared experts. Names and defaults are those of transformers'
// configuration_deepseek_v2.py and _v3.py.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/checkpoint/JsonFields.h"

namespace dspark::checkpoint {

enum class DeepSeek { No, V2, V3 };

/// Fills `latent`, `experts` and the sizes and scale of attention that follow. Errors go to the fields'
/// status.
void readDeepSeek(const JsonFields &fields, DeepSeek version, DecoderConfig &config);

} // namespace dspark::checkpoint

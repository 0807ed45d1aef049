// quantization_config -> QuantizationScheme; keys as in transformers' quantization_config.py and in
// compressed-tensors' quantization/quant_args.py.
#include "frontends/checkpoint/QuantizedTensor.h"

namespace dspark::checkpoint {
namespace {

using Method = QuantizationScheme::Method;
constexpr int64_t kLargestGroup = 1 << 20;

// -1 (or none): one group for all terms.
int64_t groupSize(const JsonFields &fields, const char *key, int64_t otherwise) {
  double given = fields.number(key, double(otherwise));
  return given <= 0 ? 0 : fields.size(key, kLargestGroup, otherwise);
}

void readGptq(const JsonFields &fields, QuantizationScheme &scheme) {
  scheme.bits = int(fields.size("bits", 8, 4));
  scheme.group = groupSize(fields, "group_size", 128);
  std::string form = fields.string("checkpoint_format", "gptq");
  scheme.isFirstVersion = form == "gptq";
  if (form != "gptq" && form != "gptq_v2")
    fields.refuse("checkpoint_format is '" + form.substr(0, 80) + "', expected gptq or gptq_v2");
}

void readAwq(const JsonFields &fields, QuantizationScheme &scheme) {
  scheme.bits = int(fields.size("bits", 8, fields.size("w_bit", 8, 4)));
  scheme.group = groupSize(fields, "group_size", groupSize(fields, "q_group_size", 128));
  std::string form = fields.string("version", "gemm");
  if (form != "gemm" && form != "GEMM")
    fields.refuse("version is '" + form.substr(0, 80) + "', expected gemm");
  if (!fields.boolean("zero_point", true))
    fields.refuse("zero_point is false, expected zero points");
}

void readFp8(const JsonFields &fields, QuantizationScheme &scheme) {
  std::vector<double> block = fields.numbers("weight_block_size");
  if (block.empty())
    return;
  if (block.size() != 2 || !(block[0] >= 1 && block[0] <= 65536) || !(block[1] >= 1 && block[1] <= 65536))
    return fields.fail("weight_block_size", std::to_string(block.size()) + " numbers", "two of 1 to 65536");
  scheme.blockRows = int64_t(block[0]);
  scheme.blockTerms = int64_t(block[1]);
}

// One group of settings for all layers; ignored layers are recognised by having plain weights.
void readCompressed(const JsonFields &fields, QuantizationScheme &scheme) {
  std::string form = fields.string("format", "");
  if (form != "pack-quantized" && form != "int-quantized" && form != "float-quantized" &&
      form != "naive-quantized")
    return fields.refuse("format is '" + form.substr(0, 80) +
                         "', expected pack-quantized, int-quantized, float-quantized or naive-quantized");
  const Json *groups = fields.object("config_groups");
  if (!groups || groups->size() != 1 || !groups->begin()->is_object())
    return fields.refuse("config_groups has " + std::to_string(groups ? groups->size() : 0) +
                         " groups, expected one for all layers");
  JsonFields group = fields.within(*groups->begin(), "quantization_config.config_groups: ");
  const Json *weights = group.object("weights");
  if (!weights)
    return group.fail("weights", "missing", "an object");
  JsonFields own = group.within(*weights, "quantization_config weights: ");
  scheme.bits = int(own.size("num_bits", 8));
  std::string strategy = own.string("strategy", "");
  if (strategy == "group")
    scheme.group = groupSize(own, "group_size", 128);
  else if (strategy != "channel" && strategy != "tensor" && strategy != "block")
    own.refuse("strategy is '" + strategy.substr(0, 80) + "', expected group, channel, tensor or block");
  std::vector<double> block = own.numbers("block_structure");
  if (block.size() == 2 && block[0] >= 1 && block[0] <= 65536 && block[1] >= 1 && block[1] <= 65536) {
    scheme.blockRows = int64_t(block[0]);
    scheme.blockTerms = int64_t(block[1]);
  }
}

} // namespace

QuantizationScheme readQuantizationScheme(const JsonFields &fields) {
  QuantizationScheme scheme;
  std::string method = fields.string("quant_method", "");
  if (method == "gptq") {
    scheme.method = Method::Gptq;
    readGptq(fields, scheme);
  } else if (method == "awq") {
    scheme.method = Method::Awq;
    readAwq(fields, scheme);
  } else if (method == "fp8" || method == "fbgemm_fp8") {
    scheme.method = Method::Fp8;
    readFp8(fields, scheme);
  } else if (method == "compressed-tensors") {
    scheme.method = Method::Compressed;
    readCompressed(fields, scheme);
  } else {
    fields.refuse("quant_method is '" + method.substr(0, 80) +
                  "', expected gptq, awq, fp8, fbgemm_fp8 or compressed-tensors");
  }
  return scheme;
}

} // namespace dspark::checkpoint

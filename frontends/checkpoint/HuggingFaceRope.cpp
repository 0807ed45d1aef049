#include "frontends/checkpoint/HuggingFaceRope.h"
#include "frontends/checkpoint/Rope.h"
#include <cmath>

namespace dspark::checkpoint {
namespace {

constexpr int64_t kLongestContext = int64_t(1) << 32;

// One rope: `own` has its kind and settings, `outer` is config.json, where older files keep some of them.
class Reader {
public:
  Reader(const JsonFields &outer, const JsonFields &own, const RopeDefaults &defaults,
         const DecoderConfig &config)
      : outer(outer), own(own), defaults(defaults), config(config) {}

  RopeTable read(double base) {
    base = own.positive("rope_theta", base);
    std::string kind = own.string("rope_type", own.string("type", "default"));
    if (defaults.isYarnLongrope && (kind == "su" || kind == "yarn"))
      kind = "longrope";
    if (kind == "default")
      return plainRope(base, rotated());
    if (kind == "linear")
      return plainRope(base, rotated(), own.positive("factor", 1));
    if (kind == "llama3")
      return llama3(base);
    if (kind == "yarn")
      return yarn(base);
    if (kind == "longrope" || kind == "su")
      return longrope(base);
    own.refuse("the rope_type '" + kind.substr(0, 80) +
               "' is not supported, expected default, linear, llama3, yarn or longrope" +
               (kind == "dynamic" ? " (its angles change with a sequence's length, so that cached keys would "
                                    "have to change, too)"
                                  : ""));
    return {};
  }

private:
  int64_t rotated() {
    double share = own.positive("partial_rotary_factor", outer.positive("partial_rotary_factor", 1));
    auto elements = int64_t(double(config.headSize) * std::min(share, 1.0));
    if (share > 1 || elements < 2 || elements % 2 != 0)
      own.fail("partial_rotary_factor", std::to_string(share),
               "an even part of the head size of " + std::to_string(config.headSize));
    return std::max<int64_t>(2, elements / 2 * 2);
  }

  int64_t originalContext() {
    const char *key = "original_max_position_embeddings";
    int64_t inner = own.size(key, kLongestContext,
                             defaults.originalContext > 0 ? defaults.originalContext : config.contextLength);
    return outer.size(key, kLongestContext, inner); // Phi-3's, which comes first
  }

  double factor() { return own.positive("factor", double(config.contextLength) / double(originalContext())); }

  RopeTable llama3(double base) {
    Llama3Settings settings;
    settings.factor = own.positive("factor", 1);
    settings.lowFactor = own.positive("low_freq_factor", 1);
    settings.highFactor = own.positive("high_freq_factor", 4);
    settings.originalContext = originalContext();
    if (settings.highFactor <= settings.lowFactor)
      own.fail("high_freq_factor", std::to_string(settings.highFactor),
               "more than low_freq_factor, " + std::to_string(settings.lowFactor));
    return llama3Rope(base, rotated(), settings);
  }

  RopeTable yarn(double base) {
    YarnSettings settings;
    settings.factor = factor();
    settings.originalContext = originalContext();
    settings.betaFast = own.positive("beta_fast", 32);
    settings.betaSlow = own.positive("beta_slow", 1);
    settings.isTruncated = own.boolean("truncate", true);
    double one = own.number("mscale", 0), all = own.number("mscale_all_dim", 0);
    auto magnitude = [&](double share) {
      return settings.factor <= 1 ? 1 : 0.1 * share * std::log(settings.factor) + 1;
    };
    settings.magnitude = own.positive("attention_factor",
                                      one != 0 && all != 0 ? magnitude(one) / magnitude(all) : magnitude(1));
    RopeTable table = yarnRope(base, rotated(), settings);
    if (all != 0)
      table.latentScale = magnitude(all) * magnitude(all);
    return table;
  }

  // Which factors hold depends on a sequence's length in transformers; here the long ones serve every length
  // where the context is longer than the original one, so that cached keys stay true.
  RopeTable longrope(double base) {
    RopeTable table = plainRope(base, rotated());
    double original = double(originalContext()), ratio = factor();
    const char *name = double(config.contextLength) > original ? "long_factor" : "short_factor";
    std::vector<double> factors = own.numbers(name);
    bool isPositive = true;
    for (double value : factors)
      isPositive &= value > 0;
    if (factors.size() != table.inverseFrequencies.size() || !isPositive) {
      own.fail(name, std::to_string(factors.size()) + " numbers",
               std::to_string(table.inverseFrequencies.size()) + " above 0");
      return table;
    }
    divideFrequencies(table, {factors.begin(), factors.end()});
    table.magnitude =
        own.positive("attention_factor",
                     ratio > 1 && original > 1 ? std::sqrt(1 + std::log(ratio) / std::log(original)) : 1);
    return table;
  }

  const JsonFields &outer, &own;
  const RopeDefaults &defaults;
  const DecoderConfig &config;
};

} // namespace

RopeTables readHuggingFaceRope(const JsonFields &fields, const RopeDefaults &defaults,
                               const DecoderConfig &config) {
  static const Json none = Json::object();
  const Json *parameters = fields.object("rope_parameters"), *scaling = fields.object("rope_scaling");
  double base = fields.positive("rope_theta", defaults.base);
  double localBase =
      defaults.localBase > 0 ? fields.positive("rope_local_base_freq", defaults.localBase) : base;
  auto read = [&](const Json *own, double theta) {
    return Reader(fields, fields.within(own ? *own : none, "rope: "), defaults, config).read(theta);
  };
  RopeTables tables;
  bool isNested =
      parameters && (parameters->contains("full_attention") || parameters->contains("sliding_attention"));
  if (isNested) {
    JsonFields kinds = fields.within(*parameters, "rope_parameters.");
    tables.ropes.push_back(read(kinds.object("full_attention"), base));
    tables.ropes.push_back(read(kinds.object("sliding_attention"), localBase));
    tables.local = 1;
    return tables;
  }
  tables.ropes.push_back(read(parameters ? parameters : scaling, base));
  if (defaults.localBase > 0) {
    tables.ropes.push_back(read(nullptr, localBase));
    tables.local = 1;
  }
  return tables;
}

} // namespace dspark::checkpoint

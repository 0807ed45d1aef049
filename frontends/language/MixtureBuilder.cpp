#include "frontends/language/MixtureBuilder.h"
#include <limits>

using namespace mlir;

namespace dspark::language {
namespace {

using checkpoint::DecoderConfig;
using checkpoint::ExpertSettings;
using checkpoint::Matrix;

std::string text(int64_t number) { return std::to_string(number); }

struct Routes {
  Value ids, shares; // [rows, used]: a row's experts, and their weights
};

class Mixture {
public:
  Mixture(GraphBuilder &graph, const DecoderConfig &config, const std::string &block)
      : g(graph), config(config), e(config.experts), block(block) {}

  Routes route(Value x) {
    Value logits = g.matmul(x, block + "ffn_gate_inp", e.count, config.hidden);
    g.at(block + "ffn_router");
    Value scores =
        e.isSigmoid ? g.unary("sigmoid", logits) : g.op("softmax", {logits}, {g.attr("axis", int64_t(-1))});
    Value choice = g.plusBias(scores, block + "exp_probs_b.bias", e.count);
    choice = e.groups > 1 ? ofBestGroups(choice) : choice;
    auto [best, ids] = g.topK(choice, e.used);
    Value shares =
        choice == scores ? best : g.op("gather_elements", {scores, ids}, {g.attr("axis", int64_t(-1))});
    if (e.normalizes) {
      Value sum = g.sum(shares, -1, /*keeps=*/true);
      // Sigmoids may all be 0; transformers adds as much.
      shares = g.binary("div", shares, e.isSigmoid ? g.plus(sum, 1e-20) : sum);
    }
    shares = g.scale(shares, e.scale);
    return {g.reshape(ids, {"rows", text(e.used)}), g.reshape(shares, {"rows", text(e.used), "1"})};
  }

  Value experts(Value x, const Routes &routes) {
    std::vector<Matrix> gate = g.expertsOf(block + "ffn_gate_exps", e.count, e.feedForward, config.hidden),
                        up = g.expertsOf(block + "ffn_up_exps", e.count, e.feedForward, config.hidden),
                        down = g.expertsOf(block + "ffn_down_exps", e.count, config.hidden, e.feedForward);
    Value y = g.experts(g.reshape(x, {"rows", "1", text(config.hidden)}), routes.ids, block + "ffn_exps",
                        gate, up, config.activation);
    y = g.experts(y, routes.ids, block + "ffn_down_exps", {}, down);
    y = g.sum(g.binary("mul", y, routes.shares), 1, /*keeps=*/false);
    return g.reshape(y, {"1", "rows", text(config.hidden)});
  }

  // residual + the expert of every row.
  Value shared(Value x, Value residual) {
    std::optional<Matrix> gate = g.matrixOf(block + "ffn_gate_shexp", e.shared, config.hidden),
                          up = g.matrixOf(block + "ffn_up_shexp", e.shared, config.hidden);
    Value y = gate && up ? g.gated(x, block + "ffn_shexp", *gate, *up, config.activation) : Value();
    return g.matmul(y, block + "ffn_down_shexp", config.hidden, e.shared, residual);
  }

private:
  // Scores of the other groups' experts become -inf. Groups that tie with the last one stay.
  Value ofBestGroups(Value choice) {
    Value grouped = g.reshape(choice, {"1", "rows", text(e.groups), text(e.count / e.groups)});
    Value groups = g.sum(g.topK(grouped, e.bestOfGroup).first, -1, /*keeps=*/false);
    Value last = g.slice(g.topK(groups, e.usedGroups).first, 2, e.usedGroups - 1, e.usedGroups);
    Value isUsed = g.op("compare", {groups, last}, {g.attr("kind", "ge")});
    isUsed = g.reshape(isUsed, {"1", "rows", text(e.groups), "1"});
    Value none = g.scalar(-std::numeric_limits<float>::infinity());
    return g.reshape(g.op("select", {isUsed, grouped, none}), {"1", "rows", text(e.count)});
  }

  GraphBuilder &g;
  const DecoderConfig &config;
  const ExpertSettings &e;
  const std::string &block;
};

} // namespace

Value buildMixture(GraphBuilder &graph, const DecoderConfig &config, const std::string &block, Value x,
                   Value residual) {
  Mixture mixture(graph, config, block);
  Routes routes = mixture.route(x);
  Value sum = graph.binary("add", residual, mixture.experts(x, routes));
  return config.experts.shared > 0 ? mixture.shared(x, sum) : sum;
}

} // namespace dspark::language

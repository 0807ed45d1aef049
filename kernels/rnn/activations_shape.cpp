#include "kernels/rnn/activations.h"

namespace dspark {
namespace {

struct FunctionRow {
  std::string_view name;
  RnnFunction kind;
  bool hasAlpha, hasBeta;
  float alpha, beta; // ONNX's defaults
};
constexpr FunctionRow kFunctions[] = {
    {"sigmoid", RnnFunction::Sigmoid, false, false, 0, 0},
    {"tanh", RnnFunction::Tanh, false, false, 0, 0},
    {"relu", RnnFunction::Relu, false, false, 0, 0},
    {"affine", RnnFunction::Affine, true, true, 1, 0},
    {"leakyrelu", RnnFunction::LeakyRelu, true, false, 0.01f, 0},
    {"thresholdedrelu", RnnFunction::ThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", RnnFunction::ScaledTanh, true, true, 1, 1},
    {"hardsigmoid", RnnFunction::HardSigmoid, true, true, 0.2f, 0.5f},
    {"elu", RnnFunction::Elu, true, false, 1, 0},
    {"softsign", RnnFunction::Softsign, false, false, 0, 0},
    {"softplus", RnnFunction::Softplus, false, false, 0, 0},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }

const FunctionRow *findFunction(std::string_view name) {
  for (const FunctionRow &row : kFunctions) {
    bool same = row.name.size() == name.size();
    for (size_t i = 0; same && i < name.size(); ++i)
      same = row.name[i] == lower(name[i]);
    if (same)
      return &row;
  }
  return nullptr;
}

} // namespace

const char *RnnActivations::read(const Attrs &attrs, int perCell, int directions) {
  std::string_view list = attrs.s("activations", "");
  std::span<const double> alphas = attrs.floats("activation_alpha"), betas = attrs.floats("activation_beta");
  size_t nextAlpha = 0, nextBeta = 0;
  for (int i = 0; i < perCell * directions; ++i) {
    std::string_view name = perCell == 1 || i % perCell != 0 ? "tanh" : "sigmoid";
    if (!attrs.s("activations", "").empty()) {
      size_t comma = list.find(',');
      if ((comma == std::string_view::npos) != (i + 1 == perCell * directions))
        return "activations: expected one name per function of the cell and direction";
      name = list.substr(0, comma);
      list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    }
    const FunctionRow *row = findFunction(name);
    if (!row)
      return "activations: expected ONNX's names of recurrent activation functions";
    functions[i] = {row->kind, row->alpha, row->beta};
    // The lists hold values only for the functions that have them, in order.
    if (row->hasAlpha && nextAlpha < alphas.size())
      functions[i].alpha = float(alphas[nextAlpha++]);
    if (row->hasBeta && nextBeta < betas.size())
      functions[i].beta = float(betas[nextBeta++]);
  }
  return nullptr;
}

} // namespace dspark

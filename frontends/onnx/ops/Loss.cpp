// Losses and optimiser steps.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

constexpr std::string_view kTraining = "ai.onnx.preview.training";

constexpr OpRow rows[] = {
    direct("NegativeLogLikelihoodLoss", 12, {2, 3}, "negative_log_likelihood_loss",
           "ignore_index:i reduction:s"),
    direct("SoftmaxCrossEntropyLoss", 12, {2, 3, 1, 2}, "softmax_cross_entropy_loss",
           "ignore_index:i reduction:s"),
    in(kTraining, direct("Adagrad", 1, {3, kVariadic, 1, kVariadic}, "adagrad",
                         "decay_factor:f epsilon:f norm_coefficient:f")),
    in(kTraining, direct("Adam", 1, {3, kVariadic, 1, kVariadic}, "adam",
                         "alpha:f beta:f epsilon:f norm_coefficient:f norm_coefficient_post:f")),
    in(kTraining, direct("Momentum", 1, {3, kVariadic, 1, kVariadic}, "momentum",
                         "alpha:f! beta:f! mode:s! norm_coefficient:f!")),
};

} // namespace

OpRows lossRows() { return rows; }

} // namespace dspark::onnx

// LSTM, GRU and RNN.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

/// The `activations` list becomes one comma-joined string (Node::pick joins lists of strings).
constexpr std::string_view kRecurrent =
    "activation_alpha:F activation_beta:F activations:S clip:f direction:s "
    "hidden_size:i layout:i";
constexpr std::string_view kLstm = "activation_alpha:F activation_beta:F activations:S clip:f direction:s "
                                   "hidden_size:i layout:i input_forget:i";
constexpr std::string_view kGru = "activation_alpha:F activation_beta:F activations:S clip:f direction:s "
                                  "hidden_size:i layout:i linear_before_reset:i";

/// Before opset 7 output_sequence told whether result 0 is wanted, which the node's own results say as well.
constexpr OpRow rows[] = {
    direct(
        "LSTM", 1, {3, 8, 1, 3}, "lstm",
        "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i input_forget:i "
        "output_sequence>:i"),
    direct("LSTM", 7, {3, 8, 1, 3}, "lstm", kLstm),
    direct("GRU", 1, {3, 6, 1, 2}, "gru",
           "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
           "linear_before_reset:i output_sequence>:i"),
    direct("GRU", 7, {3, 6, 1, 2}, "gru", kGru),
    direct("RNN", 1, {3, 6, 1, 2}, "rnn",
           "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
           "output_sequence>:i"),
    direct("RNN", 7, {3, 6, 1, 2}, "rnn", kRecurrent),
};

} // namespace

OpRows recurrentRows() { return rows; }

} // namespace dspark::onnx

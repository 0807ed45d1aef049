// If, Loop and Scan; and the operators of types that are not supported yet.
#include "frontends/onnx/ops/Control.h"

namespace dspark::onnx {
namespace {

constexpr const char *kSequences = "sequence types are not supported yet";
constexpr const char *kOptionals = "optional types are not supported yet";
constexpr const char *kStrings = "string tensors are not supported yet";

constexpr OpRow rows[] = {
    built("If", 1, {1, 1, 1, kVariadic}, buildIf, "then_branch:g! else_branch:g!"),
    built("Loop", 1, {0, 254, 1, kVariadic}, buildLoop, "body:g!"),
    built("Scan", 8, {0, 254, 1, kVariadic}, buildScan8, "body:g! directions:I num_scan_inputs:i!"),
    built("Scan", 9, {1, kVariadic, 1, kVariadic}, buildScan,
          "body:g! num_scan_inputs:i! scan_input_axes:I scan_input_directions:I scan_output_axes:I "
          "scan_output_directions:I"),

    refused("SequenceAt", 11, kSequences),
    refused("SequenceConstruct", 11, kSequences),
    refused("SequenceEmpty", 11, kSequences),
    refused("SequenceErase", 11, kSequences),
    refused("SequenceInsert", 11, kSequences),
    refused("SequenceLength", 11, kSequences),
    refused("SequenceMap", 17, kSequences),
    refused("SplitToSequence", 11, kSequences),
    refused("ConcatFromSequence", 11, kSequences),
    refused("Optional", 15, kOptionals),
    refused("OptionalGetElement", 15, kOptionals),
    refused("OptionalHasElement", 15, kOptionals),
    refused("RegexFullMatch", 20, kStrings),
    refused("StringConcat", 20, kStrings),
    refused("StringNormalizer", 10, kStrings),
    refused("StringSplit", 20, kStrings),
    refused("ImageDecoder", 20, "decoding of image files is not supported"),
};

} // namespace

OpRows controlRows() { return rows; }

} // namespace dspark::onnx

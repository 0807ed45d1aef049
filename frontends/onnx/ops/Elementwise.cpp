// Elementwise operators: unary, binary, comparisons, selection, casts.
#include "frontends/onnx/Node.h"
#include "frontends/onnx/ops/Legacy.h"

namespace dspark::onnx {
namespace {

constexpr OpRow unary(std::string_view op, int since, std::string_view kind,
                      std::string_view attributes = "") {
  return direct(op, since, {}, "unary", attributes, kind);
}
constexpr OpRow binary(std::string_view op, int since, std::string_view kind) {
  return direct(op, since, {2, 2}, "binary", "", kind);
}
constexpr OpRow compare(std::string_view op, int since, std::string_view kind) {
  return direct(op, since, {2, 2}, "compare", "", kind);
}

/// Add, And, Equal ... before opset 7: no broadcasting unless asked for, and then B's dims stand at `axis`.
void buildLegacyBroadcast(Node &n) {
  n.out(0, n.one(n.row().entry, {n.in(0), alignLegacyOperand(n)}, {n.attr("kind", n.row().kind)}));
}
constexpr OpRow legacy(std::string_view op, std::string_view entry, std::string_view kind) {
  OpRow row = built(op, 1, {2, 2}, buildLegacyBroadcast, "axis:i broadcast:i");
  row.entry = entry;
  row.kind = kind;
  return row;
}

/// Max, Min, Sum, Mean of any number of operands: a chain.
mlir::Value chain(Node &n, std::string_view kind) {
  mlir::Value result = n.in(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    result = n.binary(kind, result, n.in(i));
  return n.numInputs() == 1 ? n.one("identity", {result}) : result;
}
void buildMax(Node &n) { n.out(0, chain(n, "max")); }
void buildMin(Node &n) { n.out(0, chain(n, "min")); }
void buildSum(Node &n) { n.out(0, chain(n, "add")); }
void buildMean(Node &n) {
  mlir::Value sum = chain(n, "add");
  n.out(0, n.binary("mul", sum, n.scalarLike(sum, 1.0 / double(n.numInputs()))));
}

/// Sequences, optionals and maps are passed on as they are.
void buildIdentity(Node &n) {
  n.out(0, mlir::isa<mlir::TensorType>(n.in(0).getType()) ? n.one("identity", {n.in(0)}) : n.in(0));
}

void buildMod(Node &n) { n.out(0, n.binary(n.i("fmod", 0) ? "fmod" : "mod", n.in(0), n.in(1))); }

void buildBitShift(Node &n) {
  std::string direction = n.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.invalid("direction is '" + direction + "'; expected LEFT or RIGHT");
  n.out(0, n.binary(direction == "LEFT" ? "shl" : "shr", n.in(0), n.in(1)));
}

void buildGelu(Node &n) {
  std::string form = n.s("approximate", "none");
  if (form != "none" && form != "tanh")
    return n.invalid("approximate is '" + form + "'; expected none or tanh");
  n.out(0, n.unary(form == "tanh" ? "gelu_tanh" : "gelu", n.in(0)));
}

/// Until opset 5 the type was a name.
void buildCast1(Node &n) {
  std::string name = n.s("to", "");
  ::onnx::TensorProto::DataType type;
  if (!::onnx::TensorProto::DataType_Parse(name, &type))
    return n.invalid("to is '" + name + "', which is no element type");
  n.out(0, n.cast(n.in(0), DType(type)));
}

void buildCastLike(Node &n) {
  DType to = n.type(n.in(1));
  if (to == DType::Undefined)
    return n.unsupported("the element type of its second operand is not known");
  Attributes attributes = n.pick("saturate round_mode");
  attributes.push_back(n.attr("to", int64_t(to)));
  n.out(0, n.one("cast", {n.in(0)}, attributes));
}

/// Before opset 11 the bounds were attributes.
void buildClip1(Node &n) {
  mlir::Value low = n.hasAttribute("min") ? n.scalarLike(n.in(0), n.f("min", 0)) : mlir::Value();
  mlir::Value high = n.hasAttribute("max") ? n.scalarLike(n.in(0), n.f("max", 0)) : mlir::Value();
  n.out(0, n.one("clip", {n.in(0), low, high}));
}

constexpr OpRow rows[] = {
    unary("Abs", 1, "abs"),
    unary("Acos", 7, "acos"),
    unary("Acosh", 9, "acosh"),
    unary("Asin", 7, "asin"),
    unary("Asinh", 9, "asinh"),
    unary("Atan", 7, "atan"),
    unary("Atanh", 9, "atanh"),
    unary("BitwiseNot", 18, "bitnot"),
    unary("Ceil", 1, "ceil"),
    unary("Celu", 12, "celu", "alpha:f"),
    unary("Cos", 7, "cos"),
    unary("Cosh", 9, "cosh"),
    unary("Elu", 1, "elu", "alpha:f"),
    unary("Erf", 9, "erf"),
    unary("Exp", 1, "exp"),
    unary("Floor", 1, "floor"),
    built("Gelu", 20, {}, buildGelu, "approximate:s"),
    unary("HardSigmoid", 1, "hard_sigmoid", "alpha:f beta:f"),
    unary("HardSwish", 14, "hard_swish"),
    unary("IsInf", 10, "isinf", "detect_negative:i detect_positive:i"),
    unary("IsNaN", 9, "isnan"),
    unary("LeakyRelu", 1, "leaky_relu", "alpha:f"),
    unary("Log", 1, "log"),
    unary("Mish", 18, "mish"),
    unary("Neg", 1, "neg"),
    unary("Not", 1, "not"),
    unary("Reciprocal", 1, "reciprocal"),
    unary("Relu", 1, "relu"),
    unary("Round", 11, "round"),
    unary("Selu", 1, "selu", "alpha:f gamma>beta:f"),
    unary("Shrink", 9, "shrink", "lambd>alpha:f bias>beta:f"),
    unary("Sigmoid", 1, "sigmoid"),
    unary("Sign", 9, "sign"),
    unary("Sin", 7, "sin"),
    unary("Sinh", 9, "sinh"),
    unary("Softplus", 1, "softplus"),
    unary("Softsign", 1, "softsign"),
    unary("Sqrt", 1, "sqrt"),
    unary("Swish", 24, "swish", "alpha:f"),
    unary("Tan", 7, "tan"),
    unary("Tanh", 1, "tanh"),
    unary("ThresholdedRelu", 10, "thresholded_relu", "alpha:f"),

    legacy("Add", "binary", "add"),
    binary("Add", 7, "add"),
    legacy("Sub", "binary", "sub"),
    binary("Sub", 7, "sub"),
    legacy("Mul", "binary", "mul"),
    binary("Mul", 7, "mul"),
    legacy("Div", "binary", "div"),
    binary("Div", 7, "div"),
    legacy("Pow", "binary", "pow"),
    binary("Pow", 7, "pow"),
    legacy("And", "binary", "and"),
    binary("And", 7, "and"),
    legacy("Or", "binary", "or"),
    binary("Or", 7, "or"),
    legacy("Xor", "binary", "xor"),
    binary("Xor", 7, "xor"),
    binary("BitwiseAnd", 18, "bitand"),
    binary("BitwiseOr", 18, "bitor"),
    binary("BitwiseXor", 18, "bitxor"),
    binary("PRelu", 7, "prelu"),
    built("PRelu", 1, {2, 2}, buildPRelu1),
    built("BitShift", 11, {2, 2}, buildBitShift, "direction:s!"),
    built("Mod", 10, {2, 2}, buildMod, "fmod:i"),
    built("Max", 1, {1, kVariadic}, buildMax),
    built("Min", 1, {1, kVariadic}, buildMin),
    built("Sum", 1, {1, kVariadic}, buildSum),
    built("Mean", 1, {1, kVariadic}, buildMean),

    legacy("Equal", "compare", "eq"),
    compare("Equal", 7, "eq"),
    legacy("Less", "compare", "lt"),
    compare("Less", 7, "lt"),
    legacy("Greater", "compare", "gt"),
    compare("Greater", 7, "gt"),
    compare("LessOrEqual", 12, "le"),
    compare("GreaterOrEqual", 12, "ge"),

    direct("Where", 9, {3, 3}, "select"),
    built("Identity", 1, {}, buildIdentity),
    direct("BitCast", 26, {}, "bitcast", "to:i!"),
    built("Cast", 1, {}, buildCast1, "to:s!"),
    direct("Cast", 6, {}, "cast", "to:i! saturate:i round_mode:s"),
    built("CastLike", 15, {2, 2}, buildCastLike, "saturate:i round_mode:s"),
    built("Clip", 1, {}, buildClip1, "min:f max:f"),
    direct("Clip", 11, {1, 3}, "clip"),
};

} // namespace

OpRows elementwiseRows() { return rows; }

} // namespace dspark::onnx

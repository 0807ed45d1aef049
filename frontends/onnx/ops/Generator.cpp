// Operators that make tensors from nothing or from little: constants, ranges, random numbers.
#include "frontends/onnx/GraphImporter.h"

namespace dspark::onnx {
namespace {

/// The attribute that is present says what the constant is.
void buildConstant(Node &n) {
  if (const auto *value = n.attribute("value"))
    return n.out(0, n.importer().constant(n, value->t()));
  if (const auto *value = n.attribute("sparse_value"))
    return n.out(0, n.importer().constant(n, value->sparse_tensor()));
  if (n.hasAttribute("value_int"))
    return n.out(0, n.intScalar(n.i("value_int", 0)));
  if (n.hasAttribute("value_ints"))
    return n.out(0, n.list(n.ints("value_ints")));
  if (n.hasAttribute("value_float"))
    return n.out(0, n.scalar(DType::F32, n.f("value_float", 0)));
  if (n.hasAttribute("value_floats"))
    return n.out(0, n.floatList(n.floats("value_floats")));
  if (n.hasAttribute("value_string"))
    return n.out(0, n.stringScalar(n.s("value_string", "")));
  if (n.hasAttribute("value_strings"))
    return n.out(0, n.stringList(n.strings("value_strings")));
  n.invalid("a Constant without a value");
}

/// The fill becomes attributes; without one it is zeros of f32.
void buildConstantOfShape(Node &n) {
  const auto *value = n.attribute("value");
  if (!value)
    return n.out(0, n.one("constant_of_shape", {n.in(0)}));
  TensorInfo fill = n.info(n.importer().constant(n, value->t()));
  if (n.failed())
    return;
  if (!fill.hasContents || fill.floats.size() + fill.ints.size() != 1)
    return n.invalid("its value is " + fill.str() + "; expected one element");
  if (!fill.ints.empty() && !fill.ints[0].isConst())
    return n.unsupported("a fill value above the range of i64");
  mlir::NamedAttribute one =
      fill.ints.empty() ? n.attr("value", fill.floats[0]) : n.attr("value", fill.ints[0].value());
  n.out(0, n.one("constant_of_shape", {n.in(0)}, {one, n.attr("dtype", int64_t(fill.type))}));
}

/// Data pass, and the mask is all true, unless training_mode may be true: then elements are dropped at
/// random.
void buildDropout(Node &n) {
  TensorInfo training = n.info(n.in(2));
  bool isOff = training.hasContents && training.ints.size() == 1 && training.ints[0].is(0);
  if (n.has(2) && !isOff)
    return n.outs(n.emit("dropout", n.inputs(), n.pick("seed"), n.wants(1) ? 2 : 1));
  n.out(0, n.one("identity", {n.in(0)}));
  if (n.wants(1)) // before opset 10 the mask had the data's type; nobody reads it in inference
    n.out(1, n.one("expand", {n.scalar(DType::Bool, 1), n.one("shape", {n.in(0)})}));
}

constexpr OpRow rows[] = {
    built("Constant", 1, {0, 0}, buildConstant,
          "value:t sparse_value:p value_float:f value_floats:F value_int:i value_ints:I value_string:s "
          "value_strings:S"),
    built("ConstantOfShape", 9, {}, buildConstantOfShape, "value:t"),
    direct("Range", 11, {3, 3}, "range", "stash_type:i"),
    direct("EyeLike", 9, {}, "eye_like", "dtype:i k:i"),
    built("Dropout", 1, {1, 1, 1, 2}, buildDropout, "is_test:i ratio:f"),
    built("Dropout", 12, {1, 3, 1, 2}, buildDropout, "seed:i"),

    direct("RandomNormal", 1, {0, 0}, "random_normal", "dtype:i mean:f scale:f seed:f shape:I!"),
    direct("RandomNormalLike", 1, {}, "random_normal_like", "dtype:i mean:f scale:f seed:f"),
    direct("RandomUniform", 1, {0, 0}, "random_uniform", "dtype:i high:f low:f seed:f shape:I!"),
    direct("RandomUniformLike", 1, {}, "random_uniform_like", "dtype:i high:f low:f seed:f"),
    direct("Multinomial", 7, {}, "multinomial", "dtype:i sample_size:i seed:f"),
    direct("Bernoulli", 15, {}, "bernoulli", "dtype:i seed:f"),
};

} // namespace

OpRows generatorRows() { return rows; }

} // namespace dspark::onnx

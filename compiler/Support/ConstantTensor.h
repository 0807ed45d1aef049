// Arithmetic on constant tensors that runs when the plan is written: a value is a recipe over weights, so
// that a pass can fold batch norms into a convolution without touching a byte.
#pragma once
#include "dialects/DSpark/DSpark.h"
#include "dialects/DSpark/WeightStore.h"
#include "mlir/IR/Builders.h"
#include <functional>
#include <span>

namespace dspark {

/// An f32 tensor known at compile time.
struct ConstantTensor {
  std::vector<int64_t> dims;
  std::string name; // of where it comes from, for the names of weights made of it
  /// Row-major elements; false with a sentence in `error`.
  std::function<bool(std::vector<float> &values, std::string &error)> read;

  int64_t elements() const;

  /// The tensor behind a dspark.constant or dspark.weight of f32, row-major; nullopt for anything else. The
  /// store must outlive the recipe.
  static std::optional<ConstantTensor> of(mlir::Value value, const std::shared_ptr<WeightStore> &weights);
  /// The one number that all elements of a dspark.constant are.
  static std::optional<float> splat(mlir::Value value);

  /// A recipe that gives the same elements under other dims of the same product.
  ConstantTensor reshaped(std::vector<int64_t> newDims) const;
  /// f(a[i], b[i]) with b broadcast as numpy does onto a's dims; b's dims must broadcast to a's.
  template <typename F> static ConstantTensor zip(ConstantTensor a, ConstantTensor b, F f) {
    return zipStretches(std::move(a), std::move(b), [f](std::span<float> left, const float *right, int step) {
      if (step == 0) // on its own, so that the loops become vector code
        for (float &value : left)
          value = f(value, *right);
      else
        for (float &value : left)
          value = f(value, *right++);
    });
  }
  static ConstantTensor map(ConstantTensor a, std::function<float(float)> f);
  /// All elements `value`.
  static ConstantTensor filled(std::vector<int64_t> dims, float value, std::string name);

  /// Adds the recipe to the store and refers to it.
  mlir::Value materialize(mlir::OpBuilder &builder, mlir::Location loc,
                          const std::shared_ptr<WeightStore> &weights, const std::string &suffix) const;

private:
  /// f(stretch of a, where b's elements for it begin, how far its next one is: 0 or 1).
  using Stretch = std::function<void(std::span<float> left, const float *right, int step)>;
  static ConstantTensor zipStretches(ConstantTensor a, ConstantTensor b, Stretch f);
};

} // namespace dspark

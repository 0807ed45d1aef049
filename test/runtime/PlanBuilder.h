// Builds small plans by hand for the runtime's tests.
#pragma once
#include "kernels/common/dim.h"
#include "kernels/common/dtype.h"
#include "runtime/format/PlanFile.h"
#include "test/runtime/TemporaryFolder.h"
#include <cstring>
#include <gtest/gtest.h>

namespace dspark::test {

/// Assembles an fb::PlanT; ids are returned as they are made. Blocks are filled through `block`.
class PlanBuilder {
public:
  explicit PlanBuilder(const std::string &path) {
    auto made = PlanWriter::create(path);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    writer = std::move(*made);
    plan.body = std::make_unique<fb::BlockT>();
    block = plan.body.get();
    plan.locations.push_back("");
  }

  int number(int64_t value) { return expression(DimOp::Const, value); }
  int symbol(const std::string &name) {
    plan.symbols.push_back(name);
    return expression(DimOp::Symbol, int64_t(plan.symbols.size()) - 1);
  }
  int expression(DimOp op, int64_t value, int lhs = -1, int rhs = -1) {
    auto expr = std::make_unique<fb::DimExprT>();
    expr->op = uint8_t(op);
    expr->value = value;
    expr->lhs = lhs;
    expr->rhs = rhs;
    plan.dim_exprs.push_back(std::move(expr));
    return int(plan.dim_exprs.size()) - 1;
  }

  int temp() { return value(fb::ValueKind::Temp, DType::Undefined, {}, ""); }
  int value(fb::ValueKind kind, DType type, std::vector<int> dims, const std::string &name) {
    auto made = std::make_unique<fb::ValueT>();
    made->kind = kind;
    made->dtype = uint8_t(type);
    made->dims = std::move(dims);
    made->name = name;
    plan.values.push_back(std::move(made));
    return int(plan.values.size()) - 1;
  }
  /// dims are expression ids.
  int input(const std::string &name, DType type, std::vector<int> dims) {
    int id = value(fb::ValueKind::Input, type, std::move(dims), name);
    auto entry = std::make_unique<fb::InputT>();
    entry->value = id;
    plan.inputs.push_back(std::move(entry));
    plan.body->args.push_back(id);
    return id;
  }
  template <typename T> int constant(DType type, std::vector<int64_t> dims, const std::vector<T> &data) {
    std::vector<int> exprs;
    for (int64_t dim : dims)
      exprs.push_back(number(dim));
    int id = value(fb::ValueKind::Constant, type, exprs, "");
    auto offset = writer->addWeight(std::as_bytes(std::span(data)));
    EXPECT_TRUE(offset.isOk());
    plan.values[size_t(id)]->blob = std::make_unique<fb::BlobT>();
    plan.values[size_t(id)]->blob->offset = *offset;
    plan.values[size_t(id)]->blob->length = data.size() * sizeof(T);
    return id;
  }
  void output(int id, const std::string &name) {
    auto entry = std::make_unique<fb::OutputT>();
    entry->value = id;
    entry->name = name;
    plan.outputs.push_back(std::move(entry));
  }

  fb::StepT &step(fb::StepKind kind, const std::string &op, std::vector<int> inputs,
                  std::vector<int> outputs) {
    auto made = std::make_unique<fb::StepT>();
    made->kind = kind;
    made->op = op;
    made->inputs = std::move(inputs);
    made->outputs = std::move(outputs);
    plan.locations.push_back(op + "_" + std::to_string(plan.locations.size()));
    made->location = uint32_t(plan.locations.size() - 1);
    block->steps.push_back(std::move(made));
    return *block->steps.back();
  }
  /// A catalogue step with one result.
  int kernel(const std::string &op, std::vector<int> inputs, const std::string &kind = "") {
    int result = temp();
    fb::StepT &made = step(fb::StepKind::Kernel, op, std::move(inputs), {result});
    if (!kind.empty())
      attr(made, "kind", kind);
    return result;
  }
  static void attr(fb::StepT &step, const std::string &name, const std::string &text) {
    auto made = std::make_unique<fb::AttrT>();
    made->name = name;
    made->str = text;
    step.attrs.push_back(std::move(made));
  }
  static void attr(fb::StepT &step, const std::string &name, std::vector<int64_t> ints, bool isList = false) {
    auto made = std::make_unique<fb::AttrT>();
    made->name = name;
    made->is_list = isList;
    made->ints = std::move(ints);
    step.attrs.push_back(std::move(made));
  }
  /// Adds a block to `step` and makes it the one that further steps go to, until leave().
  fb::BlockT &enter(fb::StepT &step) {
    step.blocks.push_back(std::make_unique<fb::BlockT>());
    outer.push_back(block);
    block = step.blocks.back().get();
    return *block;
  }
  void leave(std::vector<int> results) {
    block->results = std::move(results);
    block = outer.back();
    outer.pop_back();
  }

  /// Returns the device's number.
  int device(const std::string &name) {
    auto made = std::make_unique<fb::DeviceT>();
    made->name = name;
    plan.devices.push_back(std::move(made));
    return int(plan.devices.size());
  }
  /// One variant per device, all predicted to take a microsecond.
  fb::RegionT &region(std::vector<int> steps, const std::vector<int> &devices, int chosen) {
    auto made = std::make_unique<fb::RegionT>();
    made->steps = std::move(steps);
    made->chosen = chosen;
    for (int device : devices) {
      auto variant = std::make_unique<fb::RegionVariantT>();
      variant->device = device;
      variant->seconds = 1e-6;
      made->variants.push_back(std::move(variant));
    }
    plan.regions.push_back(std::move(made));
    return *plan.regions.back();
  }

  void finish() {
    Status status = writer->finish(plan);
    EXPECT_TRUE(status.isOk()) << status.message();
  }

  fb::PlanT plan;
  fb::BlockT *block;
  std::unique_ptr<PlanWriter> writer;

private:
  std::vector<fb::BlockT *> outer;
};

} // namespace dspark::test

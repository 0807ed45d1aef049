// Kernels of programs that reduce rows. A row is walked in passes (kernels/fused/passes.h), and what a pass
// does to a tile is one linalg.generic:
//
//   for each row
//     values that are the same for the row, before the pass that needs them
//     for c = 0, kFusedChunk .. n1        only where the pass reduces: lanes start from the identity
//       for j = c, W .. main              a tile: new rows to keep, results, lanes folded with it
//       the rest of the chunk             a tile under a mask, or (baseline) element by element
//       totals joined with the lanes
//     the totals as a tree: the value of the reduction
//
// Lanes and totals are vectors on the stack, which LLVM keeps in registers within a loop. Their order is that
// of kernels/fused/program.h.
#include "compiler/Target/FusedIrBuilder.h"
#include "kernels/fused/passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

namespace dspark::codegen {
using namespace mlir;
namespace {

/// A reduction's vectors on the stack, and how it folds.
struct Fold {
  int value, operand; // value numbers
  FusedReduce kind;
  Value lanes, total; // pointers

  float identity() const {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    return kind == FusedReduce::Max ? -kInf : kind == FusedReduce::Min ? kInf : 0.0f;
  }
  Value join(ScalarMath &m, Value a, Value b) const {
    return kind == FusedReduce::Max ? m.max(a, b) : kind == FusedReduce::Min ? m.min(a, b) : m.add(a, b);
  }
};

uint32_t scalarInputs(const FusedKernelSpec &spec) {
  uint32_t mask = 0;
  for (int k = 0; k < spec.program.inputs; ++k)
    mask |= uint32_t(spec.inner[k] == 0) << k;
  return mask;
}

class RowKernel : public FusedIrBuilder {
public:
  RowKernel(MLIRContext &context, const FusedKernelSpec &spec, Isa level)
      : FusedIrBuilder(context, spec, level), body(spec.program.body()),
        passes(planPasses(body, scalarInputs(spec))),
        laneType(VectorType::get({tileWidth(level)}, b.getF32Type())), uniform(body.values()) {}

private:
  void emitStart(Value pointers) override {
    one = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(1));
    auto stack = [&] { return LLVM::AllocaOp::create(b, loc, pointers.getType(), laneType, one, 64); };
    for (auto [i, instruction] : llvm::enumerate(body.code))
      if (instruction.category == FusedCategory::Reduce)
        folds.push_back(
            {body.inputs + int(i), instruction.a, FusedReduce(instruction.kind), stack(), stack()});
    if (body.kept.empty())
      return;
    // fusedKeptStride() of the row
    Value room = loadEntry(pointers, pointers.getType(), operandCount() + 1), lanes = index(kMaxFusedLanes);
    Value padded = arith::AddIOp::create(b, loc, columns, index(kMaxFusedLanes - 1));
    Value stride = arith::SubIOp::create(b, loc, padded, arith::RemUIOp::create(b, loc, padded, lanes));
    for (size_t k = 0; k < body.kept.size(); ++k)
      keptRows.push_back(
          advance(room, b.getF32Type(), toI64(arith::MulIOp::create(b, loc, stride, index(int64_t(k))))));
  }

  void emitRow(ArrayRef<Value> operands) override {
    rowOperands.assign(operands.begin(), operands.end());
    for (int pass = 0;; ++pass) {
      emitUniform(pass);
      if (pass == passes.count)
        break;
      emitPass(pass);
    }
    for (size_t r = 0; r < body.results.size(); ++r)
      if (body.isReduced(r))
        LLVM::StoreOp::create(b, loc, uniform[body.results[r]], operands[size_t(body.inputs) + r]);
  }

  /// Values of the row that can be computed before `pass`; reductions have left theirs already.
  void emitUniform(int pass) {
    ScalarMath math(b, loc, level);
    SmallVector<int> parameters = parameterConstants(spec.program);
    for (int v = 0; v < body.values(); ++v) {
      if (!passes.isUniform[v] || passes.level[v] != pass)
        continue;
      int i = v - body.inputs;
      if (i < 0)
        uniform[v] = asFloat(b, math, rowOperands[v]);
      else if (const int *at = llvm::find(parameters, i); at != parameters.end())
        uniform[v] = constants[at - parameters.begin()];
      else if (body.code[i].category != FusedCategory::Reduce)
        uniform[v] = emitInstruction(math, spec.program, body.code[i], uniform);
    }
  }

  void emitPass(int pass) {
    SmallVector<Fold> active;
    for (const Fold &fold : folds)
      if (passes.level[fold.value] == pass + 1)
        active.push_back(fold);
    if (active.empty()) {
      emitTiles(pass, active, index(0), columns);
      return;
    }
    for (const Fold &fold : active)
      setLanes(fold.total, fold.identity());
    Value chunk = index(kFusedChunk);
    forRange(index(0), columns, chunk, [&](Value begin) {
      for (const Fold &fold : active)
        setLanes(fold.lanes, fold.identity());
      Value rest = arith::SubIOp::create(b, loc, columns, begin);
      Value end = arith::AddIOp::create(b, loc, begin, arith::MinUIOp::create(b, loc, rest, chunk));
      emitTiles(pass, active, begin, end);
      ScalarMath math(b, loc, level);
      for (const Fold &fold : active)
        LLVM::StoreOp::create(b, loc, fold.join(math, getLanes(fold.total), getLanes(fold.lanes)), fold.total,
                              64);
    });
    for (const Fold &fold : active)
      uniform[fold.value] = emitTree(fold);
  }

  void setLanes(Value pointer, float value) {
    auto splat = DenseElementsAttr::get(laneType, value);
    LLVM::StoreOp::create(b, loc, arith::ConstantOp::create(b, loc, splat), pointer, 64);
  }
  Value getLanes(Value pointer) { return LLVM::LoadOp::create(b, loc, laneType, pointer, 64); }

  Value emitTree(const Fold &fold) {
    ScalarMath math(b, loc, level);
    Value lanes = getLanes(fold.total);
    for (int64_t half = tileWidth(level) / 2; half > 0; half /= 2) {
      auto part = [&](int64_t from) -> Value {
        return vector::ExtractStridedSliceOp::create(b, loc, lanes, ArrayRef<int64_t>{from},
                                                     ArrayRef<int64_t>{half}, ArrayRef<int64_t>{1});
      };
      lanes = fold.join(math, part(0), part(half));
    }
    Value folded = vector::ExtractOp::create(b, loc, lanes, ArrayRef<int64_t>{0});
    if (fold.kind != FusedReduce::Mean)
      return folded;
    return math.div(folded, arith::SIToFPOp::create(b, loc, b.getF32Type(), toI64(columns)));
  }

  void emitTiles(int pass, ArrayRef<Fold> active, Value begin, Value end) {
    Value width = index(tileWidth(level)), zero = index(0);
    Value count = arith::SubIOp::create(b, loc, end, begin);
    Value main = arith::SubIOp::create(b, loc, end, arith::RemUIOp::create(b, loc, count, width));
    forRange(begin, main, width, [&](Value j) { emitTile(pass, active, {j, zero, tileWidth(level), {}}); });
    if (!hasMaskedVectors(level)) {
      forRange(main, end, index(1),
               [&](Value j) { emitTile(pass, active, {j, arith::SubIOp::create(b, loc, j, main), 1, {}}); });
      return;
    }
    forRange(main, end, width, [&](Value j) {
      Value rest = arith::SubIOp::create(b, loc, end, j);
      auto maskType = VectorType::get({tileWidth(level)}, b.getI1Type());
      emitTile(pass, active,
               {j, zero, tileWidth(level), vector::CreateMaskOp::create(b, loc, maskType, rest)});
    });
  }

  /// Elements [j, j + size) of a row, which belong to lanes from `lane` on. With a mask only its lanes exist.
  struct Tile {
    Value j, lane;
    int64_t size;
    Value mask;
  };

  /// A memref of the tile's elements at `pointer`, which is the row's. Under a mask it is a copy on the
  /// stack, filled from the row: linalg then works on whole vectors, and no masked store (slow on AMD) hides
  /// what a load needs.
  Value tileView(const Tile &tile, Value pointer, Type type, bool isOutput) {
    Value at = advance(pointer, type, toI64(tile.j));
    if (!tile.mask)
      return view(at, type, tile.size, {});
    auto vectorType = VectorType::get({tile.size}, type);
    Value room = stackTile(vectorType);
    if (!isOutput) {
      Value rest = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
      Value loaded = vector::MaskedLoadOp::create(b, loc, vectorType, view(at, type, tile.size, {}), index(0),
                                                  tile.mask, rest);
      LLVM::StoreOp::create(b, loc, loaded, room, 64);
    }
    return view(room, type, tile.size, {});
  }

  /// Room for a tile, at the start of the function.
  Value stackTile(VectorType type) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(one);
    return LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), type, one, 64);
  }

  /// What a pass does to a tile.
  void emitTile(int pass, ArrayRef<Fold> active, const Tile &tile) {
    SmallVector<Value> inputs, outputs;
    SmallVector<int> read, written; // value numbers
    auto isKept = [&](int v) { return llvm::is_contained(body.kept, v); };
    // Kept rows have room for whole tiles.
    auto keptTile = [&](int v) {
      return view(advance(keptRow(v), b.getF32Type(), toI64(tile.j)), b.getF32Type(), tile.size, {});
    };
    for (int v = 0; v < body.values(); ++v) {
      bool isRead = v < body.inputs || (isKept(v) && passes.level[v] < pass);
      if (!isRead || !passes.runsIn(v, pass))
        continue;
      inputs.push_back(v < body.inputs ? tileView(tile, rowOperands[v], elementType(v), false) : keptTile(v));
      read.push_back(v);
    }
    if (tile.mask) { // 1 where an element exists
      auto vectorType = VectorType::get({tile.size}, b.getF32Type());
      Value ones = arith::UIToFPOp::create(b, loc, vectorType, tile.mask), room = stackTile(vectorType);
      LLVM::StoreOp::create(b, loc, ones, room, 64);
      inputs.push_back(view(room, b.getF32Type(), tile.size, {}));
    }
    size_t tiles = inputs.size();
    for (int v = 0; v < body.values(); ++v)
      if (passes.isUniform[v] && passes.level[v] <= pass) {
        inputs.push_back(uniform[v]);
        read.push_back(v);
      }
    for (int v : body.kept)
      if (passes.level[v] == pass && passes.runsIn(v, pass)) {
        outputs.push_back(keptTile(v));
        written.push_back(v);
      }
    size_t firstResult = outputs.size();
    SmallVector<size_t> results;
    for (size_t r = 0; r < body.results.size(); ++r)
      if (pass == passes.count - 1 && !body.isReduced(r)) {
        outputs.push_back(tileView(tile, rowOperands[size_t(body.inputs) + r], b.getF32Type(), true));
        written.push_back(body.results[r]);
        results.push_back(size_t(body.inputs) + r);
      }
    size_t firstLanes = inputs.size() + outputs.size();
    for (const Fold &fold : active)
      outputs.push_back(
          view(advance(fold.lanes, b.getF32Type(), toI64(tile.lane)), b.getF32Type(), tile.size, {}));
    AffineMap all = b.getDimIdentityMap(), none = AffineMap::get(1, 0, b.getContext());
    SmallVector<AffineMap> maps(tiles, all);
    maps.append(inputs.size() - tiles, none);
    maps.append(outputs.size(), all);
    linalg::GenericOp::create(b, loc, inputs, outputs, maps, {utils::IteratorType::parallel},
                              [&](OpBuilder &inner, Location, ValueRange arguments) {
                                SmallVector<Value> values(arguments.begin(), arguments.end());
                                Value exists = tile.mask ? values[tiles - 1] : Value();
                                if (tile.mask)
                                  values.erase(values.begin() + ptrdiff_t(tiles - 1));
                                emitBody(inner, pass, read, values, written, active,
                                         arguments.drop_front(firstLanes), exists);
                              });
    for (size_t i = 0; tile.mask && i < results.size(); ++i)
      storeMasked(tile, outputs[firstResult + i], rowOperands[results[i]]);
  }

  void storeMasked(const Tile &tile, Value room, Value pointer) {
    auto vectorType = VectorType::get({tile.size}, b.getF32Type());
    Value computed = vector::LoadOp::create(b, loc, vectorType, room, index(0));
    Value target = view(advance(pointer, b.getF32Type(), toI64(tile.j)), b.getF32Type(), tile.size, {});
    vector::MaskedStoreOp::create(b, loc, target, index(0), tile.mask, computed);
  }

  void emitBody(OpBuilder &inner, int pass, ArrayRef<int> read, ArrayRef<Value> arguments,
                ArrayRef<int> written, ArrayRef<Fold> active, ValueRange lanes, Value exists) {
    ScalarMath math(inner, loc, level);
    SmallVector<Value> values(body.values()), results;
    for (auto [argument, v] : llvm::zip(arguments, read))
      values[v] = asFloat(inner, math, argument);
    for (int v = body.inputs; v < body.values(); ++v)
      if (passes.runsIn(v, pass) && !values[v])
        values[v] = emitInstruction(math, spec.program, body.code[v - body.inputs], values);
    for (int v : written)
      results.push_back(values[v]);
    for (auto [fold, lane] : llvm::zip(active, lanes)) {
      Value folded = fold.join(math, lane, values[fold.operand]);
      results.push_back(exists ? math.select(math.nonZero(exists), folded, lane) : folded);
    }
    linalg::YieldOp::create(inner, loc, results);
  }

  Value keptRow(int v) const { return keptRows[llvm::find(body.kept, v) - body.kept.begin()]; }

  const FusedBody body;
  const FusedPasses passes;
  VectorType laneType;
  SmallVector<Fold> folds;
  Value one;                   // i64
  SmallVector<Value> keptRows; // pointers
  // Of the current row: its operands, and by value number what is the same in all of it.
  SmallVector<Value> rowOperands, uniform;
};

} // namespace

OwningOpRef<ModuleOp> buildRowKernel(MLIRContext &context, const FusedKernelSpec &spec, Isa level) {
  return RowKernel(context, spec, level).build();
}

} // namespace dspark::codegen

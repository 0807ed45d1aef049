#include "frontends/checkpoint/DecoderWeights.h"
#include "kernels/common/numeric.h"
#include "kernels/matmul/packed.h"
#include <cstring>

namespace dspark::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;
using Blocks = std::shared_ptr<const BlockSource>;

// Columns from `first` on.
class ShiftedBlocks : public BlockSource {
public:
  ShiftedBlocks(Blocks whole, int64_t first) : whole(std::move(whole)), first(first) {}
  void read(int64_t column, int64_t block, BlockValues &values) const override {
    whole->read(first + column, block, values);
  }

private:
  Blocks whole;
  int64_t first;
};

// The columns of `upper`, then those of `lower`.
class StackedBlocks : public BlockSource {
public:
  StackedBlocks(Blocks upper, Blocks lower, int64_t columns)
      : upper(std::move(upper)), lower(std::move(lower)), columns(columns) {}
  void read(int64_t column, int64_t block, BlockValues &values) const override {
    column < columns ? upper->read(column, block, values) : lower->read(column - columns, block, values);
  }

private:
  Blocks upper, lower;
  int64_t columns; // of upper
};

// All rows in f32, exactly.
StatusOr<Bytes> unpackedRows(const Matrix &matrix, std::vector<std::byte> &storage) {
  DSPARK_ASSIGN_OR_RETURN(std::vector<std::byte> packed, packMatrix(matrix, /*isGated=*/false));
  PackedFormat format = *PackedFormat::named(matrix.layout);
  size_t rowBytes = size_t(matrix.k) * sizeof(float);
  storage.resize(size_t(matrix.n) * rowBytes);
  for (int64_t row = 0; row < matrix.n; ++row) {
    auto *panel =
        reinterpret_cast<const uint8_t *>(packed.data()) + row / kPackedColumns * format.panelBytes(matrix.k);
    auto *out = reinterpret_cast<float *>(storage.data() + size_t(row) * rowBytes);
    packedOps(Isa::Baseline).column(format, panel, row % kPackedColumns, matrix.k, out);
  }
  return Bytes(storage);
}

// What madeOnce's readings share.
struct MadeRows {
  Matrix matrix;
  int64_t uses, readings = 0;
  std::vector<std::byte> storage;
  Bytes bytes;
};

} // namespace

Matrix transposed(const Matrix &matrix) {
  Matrix made;
  made.layout = matrix.isBlocks() ? "" : matrix.layout;
  made.n = matrix.k;
  made.k = matrix.n;
  size_t element = made.layout.empty() ? 4 : 2;
  made.rowBytes = made.k * int64_t(element);
  made.rows = [matrix, element](std::vector<std::byte> &storage) -> StatusOr<Bytes> {
    std::vector<std::byte> own;
    DSPARK_ASSIGN_OR_RETURN(Bytes rows, matrix.isBlocks() ? unpackedRows(matrix, own) : matrix.rows(own));
    std::vector<std::byte> columns(rows.size());
    size_t n = size_t(matrix.n), k = size_t(matrix.k);
    for (size_t row = 0; row < n; ++row)
      for (size_t column = 0; column < k; ++column)
        std::memcpy(&columns[(column * n + row) * element], &rows[(row * k + column) * element], element);
    storage = std::move(columns);
    return Bytes(storage);
  };
  return made;
}

Matrix asFloats(const Matrix &matrix) {
  Matrix made = matrix;
  made.layout = "f32";
  made.rowBytes = matrix.k * int64_t(sizeof(float));
  if (matrix.rowBytes != made.rowBytes)
    made.rows = [matrix](std::vector<std::byte> &storage) -> StatusOr<Bytes> {
      std::vector<std::byte> own;
      DSPARK_ASSIGN_OR_RETURN(Bytes halves, matrix.rows(own));
      std::vector<std::byte> wide(halves.size() * 2);
      for (size_t i = 0; i < halves.size(); i += 2) {
        uint16_t half;
        std::memcpy(&half, &halves[i], sizeof half);
        const float value = matrix.layout == "f16" ? f16ToF32(half) : bf16ToF32(half);
        std::memcpy(&wide[2 * i], &value, sizeof value);
      }
      storage = std::move(wide);
      return Bytes(storage);
    };
  return made;
}

Matrix madeOnce(const Matrix &matrix, int64_t uses) {
  if (matrix.blocks)
    return matrix;
  Matrix made = matrix;
  made.rows = [state = std::make_shared<MadeRows>(MadeRows{matrix, uses, 0, {}, {}})](
                  std::vector<std::byte> &storage) -> StatusOr<Bytes> {
    if (state->readings == 0) {
      DSPARK_ASSIGN_OR_RETURN(state->bytes, state->matrix.rows(state->storage));
    }
    state->readings = (state->readings + 1) % state->uses;
    if (state->readings == 0)
      storage = std::move(state->storage); // the bytes stay where they are
    return state->bytes;
  };
  return made;
}

Matrix Matrix::slice(int64_t first, int64_t count) const {
  Matrix part = *this;
  part.n = count;
  if (blocks)
    part.blocks = [whole = blocks, first]() -> StatusOr<Blocks> {
      DSPARK_ASSIGN_OR_RETURN(Blocks all, whole());
      return Blocks(std::make_shared<ShiftedBlocks>(std::move(all), first));
    };
  else
    part.rows = [whole = rows, at = size_t(first * rowBytes),
                 bytes = size_t(count * rowBytes)](std::vector<std::byte> &storage) -> StatusOr<Bytes> {
      DSPARK_ASSIGN_OR_RETURN(Bytes all, whole(storage));
      return all.subspan(at, bytes);
    };
  return part;
}

Matrix stack(const Matrix &first, const Matrix &second) {
  Matrix both = first;
  both.n += second.n;
  if (first.blocks)
    both.blocks = [a = first.blocks, b = second.blocks, columns = first.n]() -> StatusOr<Blocks> {
      DSPARK_ASSIGN_OR_RETURN(Blocks upper, a());
      DSPARK_ASSIGN_OR_RETURN(Blocks lower, b());
      return Blocks(std::make_shared<StackedBlocks>(std::move(upper), std::move(lower), columns));
    };
  else
    both.rows = [a = first.rows, b = second.rows](std::vector<std::byte> &storage) -> StatusOr<Bytes> {
      std::vector<std::byte> made;
      DSPARK_ASSIGN_OR_RETURN(Bytes upper, a(made));
      storage.assign(upper.begin(), upper.end());
      DSPARK_ASSIGN_OR_RETURN(Bytes lower, b(made));
      storage.insert(storage.end(), lower.begin(), lower.end());
      return Bytes(storage);
    };
  return both;
}

StatusOr<std::vector<std::byte>> packMatrix(const Matrix &matrix, bool isGated) {
  std::vector<std::byte> storage;
  if (matrix.layout.empty()) {
    DSPARK_ASSIGN_OR_RETURN(Bytes rows, matrix.rows(storage));
    return std::vector<std::byte>(rows.begin(), rows.end());
  }
  std::optional<PackedFormat> format = PackedFormat::named(matrix.layout);
  std::optional<int64_t> bytes = !format   ? std::nullopt
                                 : isGated ? gatedBytes(*format, matrix.k, matrix.n)
                                           : format->bytes(matrix.k, matrix.n);
  if (!bytes)
    return invalidArgument("no packed form in layout '" + matrix.layout + "' of [" +
                           std::to_string(matrix.n) + ", " + std::to_string(matrix.k) + "]");
  std::vector<std::byte> packed(static_cast<size_t>(*bytes));
  if (matrix.blocks) {
    DSPARK_ASSIGN_OR_RETURN(Blocks blocks, matrix.blocks());
    DSPARK_RETURN_IF_ERROR(packBlocks(*format, matrix.k, matrix.n, *blocks, packed, isGated));
    return packed;
  }
  DSPARK_ASSIGN_OR_RETURN(Bytes rows, matrix.rows(storage));
  DSPARK_RETURN_IF_ERROR(format->isFloat()
                             ? packFloats(matrix.layout, matrix.k, matrix.n,
                                          /*isTransposed=*/true, rows, packed, isGated)
                             : packGguf(matrix.layout, matrix.k, matrix.n, rows, packed, isGated));
  return packed;
}

} // namespace dspark::checkpoint

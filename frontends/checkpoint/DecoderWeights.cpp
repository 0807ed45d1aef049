#include "frontends/checkpoint/DecoderWeights.h"
#include "runtime/format/PackedBits.h"

namespace dspark::checkpoint {

Matrix Matrix::slice(int64_t first, int64_t count) const {
  Matrix part = *this;
  part.n = count;
  part.rows = [whole = rows, at = size_t(first * rowBytes), bytes = size_t(count * rowBytes)](
                  std::vector<std::byte> &storage) -> StatusOr<std::span<const std::byte>> {
    DSPARK_ASSIGN_OR_RETURN(auto all, whole(storage));
    return all.subspan(at, bytes);
  };
  return part;
}

Matrix stack(const Matrix &first, const Matrix &second) {
  Matrix both = first;
  both.n += second.n;
  both.rows = [a = first.rows,
               b = second.rows](std::vector<std::byte> &storage) -> StatusOr<std::span<const std::byte>> {
    std::vector<std::byte> made;
    DSPARK_ASSIGN_OR_RETURN(auto upper, a(made));
    storage.assign(upper.begin(), upper.end());
    DSPARK_ASSIGN_OR_RETURN(auto lower, b(made));
    storage.insert(storage.end(), lower.begin(), lower.end());
    return std::span<const std::byte>(storage);
  };
  return both;
}

StatusOr<std::vector<std::byte>> packMatrix(const Matrix &matrix, bool isGated) {
  std::vector<std::byte> storage;
  DSPARK_ASSIGN_OR_RETURN(auto rows, matrix.rows(storage));
  if (matrix.layout.empty())
    return std::vector<std::byte>(rows.begin(), rows.end());
  std::optional<PackedFormat> format = PackedFormat::named(matrix.layout);
  std::optional<int64_t> bytes = !format   ? std::nullopt
                                 : isGated ? gatedBytes(*format, matrix.k, matrix.n)
                                           : format->bytes(matrix.k, matrix.n);
  if (!bytes || (isGated && !matrix.isBlocks()))
    return invalidArgument("no packed form in layout '" + matrix.layout + "' of [" +
                           std::to_string(matrix.n) + ", " + std::to_string(matrix.k) + "]");
  std::vector<std::byte> packed(static_cast<size_t>(*bytes));
  DSPARK_RETURN_IF_ERROR(
      matrix.isBlocks() ? packGguf(matrix.layout, matrix.k, matrix.n, rows, packed, isGated)
                        : packHalves(matrix.layout, matrix.k, matrix.n, /*isTransposed=*/true, rows, packed));
  return packed;
}

} // namespace dspark::checkpoint

// What every step over paged caches has: the batch that its rows belong to, the states that keys and values
// lie in, writing new rows there, attention over them (docs/language-models.md).
#pragma once
#include "frontends/language/GraphBuilder.h"

namespace dspark::language {

/// A state with keys or values of one layer.
struct PagedRows {
  mlir::Value rows;   // [pages, heads, page_size, size]
  mlir::Value scales; // [pages, heads, page_size], of i8 rows only
};

struct AttentionForm {
  double scale;
  double softcap = 0; // 0: none
  int64_t window = 0; // keys that a query sees, itself included; 0: all
  mlir::Value slopes = {}; // [heads], of scores by distance (ALiBi); null: none
};

class PagedStep {
public:
  PagedStep(GraphBuilder &graph, DType cacheType) : g(graph), cacheType(cacheType) {}

  /// Adds query_offsets i32 [sequences + 1], sequence_lengths i32 [sequences] and block_table i32 [sequences,
  /// table_pages] to the function's arguments. Before `write` and `attend`.
  void addBatch();
  /// Adds the states <kind>_cache.<layer> and, if they are i8, <kind>_scales.<layer>.
  PagedRows addCache(const std::string &kind, int64_t layer, int64_t heads, int64_t size);
  /// The state with the step's rows [rows, heads, size] written at their positions.
  PagedRows write(const PagedRows &cache, mlir::Value rows);
  /// q [rows, heads, size] -> [rows, heads, size of values]; `attributes` are further ones of
  /// paged_attention.
  mlir::Value attend(mlir::Value q, const PagedRows &keys, const PagedRows &values, const AttentionForm &form,
                     llvm::SmallVector<mlir::NamedAttribute> attributes = {});

private:
  GraphBuilder &g;
  DType cacheType;
  llvm::SmallVector<mlir::Value> batch; // query_offsets, sequence_lengths, block_table
};

} // namespace dspark::language

#include "frontends/language/PagedStep.h"

using namespace mlir;

namespace dspark::language {

void PagedStep::addBatch() {
  // Sequences are bound by their lengths, of which there is one each.
  Value offsets = g.argument("query_offsets", DType::I32, {"sequences + 1"});
  Value lengths = g.argument("sequence_lengths", DType::I32, {"sequences"});
  batch = {offsets, lengths, g.argument("block_table", DType::I32, {"sequences", "table_pages"})};
}

PagedRows PagedStep::addCache(const std::string &kind, int64_t layer, int64_t heads, int64_t size) {
  std::vector<std::string> dims = {"pages", std::to_string(heads), "page_size"};
  std::string ending = "." + std::to_string(layer);
  PagedRows cache;
  if (cacheType == DType::I8)
    cache.scales = g.argument(kind + "_scales" + ending, DType::F32, dims, /*isState=*/true);
  dims.push_back(std::to_string(size));
  cache.rows = g.argument(kind + "_cache" + ending, cacheType, dims, /*isState=*/true);
  return cache;
}

PagedRows PagedStep::write(const PagedRows &cache, Value rows) {
  SmallVector<Value> operands = {cache.rows, rows, batch[0], batch[1], batch[2]};
  if (!cache.scales)
    return {g.op("paged_cache_write", operands), {}};
  operands.push_back(cache.scales);
  SmallVector<Value> written = g.ops("paged_cache_write", operands, {}, 2);
  return {written[0], written[1]};
}

Value PagedStep::attend(Value q, const PagedRows &keys, const PagedRows &values, const AttentionForm &form,
                        SmallVector<NamedAttribute> attributes) {
  attributes.push_back(g.attr("scale", form.scale));
  if (form.softcap != 0)
    attributes.push_back(g.attr("softcap", form.softcap));
  if (form.window > 0)
    attributes.push_back(g.attr("left_window_size", form.window - 1));
  SmallVector<Value> operands = {q, keys.rows, values.rows, batch[0], batch[1], batch[2]};
  if (keys.scales)
    operands.append({keys.scales, values.scales});
  if (form.slopes) {
    operands.resize(9, g.none()); // no scales, no sinks
    operands.push_back(form.slopes);
  }
  return g.op("paged_attention", operands, attributes);
}

} // namespace dspark::language

#include "frontends/onnx/OpTable.h"
#include <algorithm>
#include <vector>

namespace dspark::onnx {

/// Every row, ordered by domain, operator and version.
static const std::vector<const OpRow *> &sortedRows() {
  static const std::vector<const OpRow *> sorted = [] {
    std::vector<const OpRow *> rows;
    for (OpRows family :
         {elementwiseRows(), reduceRows(),         normRows(),      movementRows(),  indexRows(),
          contractionRows(), quantRows(),          recurrentRows(), attentionRows(), imageRows(),
          generatorRows(),   lossRows(),           controlRows(),   sequenceRows(),  textRows(),
          microsoftRows(),   microsoftQuantRows(), contribRows(),   expertRows(),    mlRows(),
          mlFeatureRows(),   mlPredictorRows(),    mlTreeRows()})
      for (const OpRow &row : family)
        rows.push_back(&row);
    std::ranges::sort(rows, {},
                      [](const OpRow *row) { return std::tuple(row->domain, row->op, row->since); });
    return rows;
  }();
  return sorted;
}

const OpRow *findRow(std::string_view domain, std::string_view op, int64_t version, bool *older) {
  const OpRow *found = nullptr;
  auto [begin, end] = std::ranges::equal_range(sortedRows(), std::pair(domain, op), {}, [](const OpRow *row) {
    return std::pair(row->domain, row->op);
  });
  for (auto row = begin; row != end; ++row)
    if ((*row)->since <= version)
      found = *row;
  if (older)
    *older = !found && begin != end;
  return found;
}

std::span<const OpRow *const> allRows() { return sortedRows(); }

} // namespace dspark::onnx

// The operator table agrees with itself and with the catalogue.
#include "frontends/onnx/AttributeSpec.h"
#include "frontends/onnx/OpTable.h"
#include "kernels/common/catalogue.h"
#include <gmock/gmock.h>
#include <set>

namespace dspark::onnx {
namespace {

TEST(OpTable, EveryVersionHasOneRow) {
  std::set<std::tuple<std::string_view, std::string_view, int>> seen;
  for (const OpRow *row : allRows())
    EXPECT_TRUE(seen.insert({row->domain, row->op, row->since}).second) << row->op << " " << row->since;
}

TEST(OpTable, DirectRowsNameCatalogueOperators) {
  // Operators that have a row but no kernel yet: their nodes are reported as unsupported.
  const std::set<std::string_view> kLater = {"max_roi_pool"};
  for (const OpRow *row : allRows())
    if (!row->build && !row->refusal && !kLater.contains(row->entry))
      EXPECT_TRUE(findOp(row->entry)) << row->op << " -> " << row->entry;
}

TEST(OpTable, AttributeWordsAreWellFormed) {
  for (const OpRow *row : allRows()) {
    std::string_view words = row->attributes;
    for (AttributeSpec spec; nextSpec(words, spec);)
      EXPECT_TRUE(!spec.name.empty() &&
                  std::string_view("ifstpgyIFS").find(spec.type) != std::string_view::npos)
          << row->op << ": " << spec.name;
  }
}

TEST(OpTable, TheNewestRowNotNewerThanTheOpset) {
  EXPECT_EQ(findRow("", "Reshape", 4)->since, 1);
  EXPECT_EQ(findRow("", "Reshape", 5)->since, 5);
  EXPECT_EQ(findRow("", "Reshape", 28)->since, 5);
  bool onlyNewer = false;
  EXPECT_EQ(findRow("", "Gelu", 19, &onlyNewer), nullptr);
  EXPECT_TRUE(onlyNewer);
  EXPECT_EQ(findRow("", "NoSuchOp", 19, &onlyNewer), nullptr);
  EXPECT_FALSE(onlyNewer);
  EXPECT_EQ(findRow("com.microsoft", "Reshape", 1), nullptr);
}

} // namespace
} // namespace dspark::onnx

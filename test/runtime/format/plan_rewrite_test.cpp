// A finished plan with other steps: everything else in it stays.
#include "runtime/format/PlanRewrite.h"
#include "test/runtime/PlanBuilder.h"
#include <algorithm>

namespace dspark {
namespace {

using test::PlanBuilder;
using test::TemporaryFolder;

using Contents = std::vector<std::tuple<uint32_t, uint32_t, std::vector<std::byte>>>;

// Kind, tag and bytes of every section but PLAN.
Contents contentsBesidePlan(const PlanFile &plan) {
  Contents contents;
  for (const SectionEntry &entry : plan.sections())
    if (SectionKind(entry.kind) != SectionKind::Plan) {
      auto bytes = plan.bytes(entry);
      contents.emplace_back(entry.kind, entry.tag, std::vector(bytes.begin(), bytes.end()));
    }
  std::ranges::sort(contents);
  return contents;
}

TEST(PlanRewrite, KeepsEverySectionButThePlan) {
  TemporaryFolder folder;
  const std::string path = folder.file("p.dsp");
  PlanBuilder b(path);
  int x = b.input("x", DType::F32, {b.symbol("n"), b.number(3)});
  b.output(b.kernel("binary", {x, b.constant<float>(DType::F32, {3}, {1, 2, 3})}, "add"), "y");
  fb::PlanT function = b.plan;
  function.name = "again";
  b.writer->addFunction(function);
  b.writer->setMeta("{\"model\":\"small\"}");
  b.writer->setIr("module {}");
  b.writer->addCode(1, std::vector<std::byte>(100, std::byte(7)));
  b.writer->setTokenizer(std::vector<std::byte>(50, std::byte(3)));
  b.writer->setTemplate("{{ messages }}");
  b.writer->setDrafters("{\"drafters\":[]}");
  b.finish();
  auto before = PlanFile::open(path);
  ASSERT_TRUE(before.isOk()) << before.status().message();

  Status status = rewritePlan(path, [](fb::PlanT &plan) { plan.symbols[0] = "batch"; });
  ASSERT_TRUE(status.isOk()) << status.message();
  auto after = PlanFile::open(path);
  ASSERT_TRUE(after.isOk()) << after.status().message();
  EXPECT_EQ((*after)->plan().symbols()->Get(0)->str(), "batch");
  Contents kept = contentsBesidePlan(**after);
  EXPECT_EQ(kept.size(), 8u);
  EXPECT_EQ(kept, contentsBesidePlan(**before));
}

} // namespace
} // namespace dspark

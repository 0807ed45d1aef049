// A section of a finished plan in other bytes.
#include "runtime/format/PlanEdit.h"
#include "test/runtime/PlanBuilder.h"
#include <gmock/gmock.h>

namespace dspark {
namespace {

using test::PlanBuilder;
using test::TemporaryFolder;
using testing::HasSubstr;

std::span<const std::byte> bytesOf(const std::string &text) { return std::as_bytes(std::span(text)); }

std::string writePlan(TemporaryFolder &folder, const std::string &drafters) {
  PlanBuilder b(folder.file("p.dsp"));
  int x = b.input("x", DType::F32, {b.number(3)});
  b.output(b.kernel("binary", {x, b.constant<float>(DType::F32, {3}, {1, 2, 3})}, "add"), "y");
  b.writer->setMeta("{\"model\":\"small\"}");
  b.writer->setDrafters(drafters);
  b.finish();
  return folder.file("p.dsp");
}

TEST(PlanEdit, ReplacesASectionByShorterAndLongerOnes) {
  TemporaryFolder folder;
  const std::string path = writePlan(folder, std::string(100, 'a'));
  for (size_t length : {100, 3, 64, 65, 5000, 0, 3 << 20, 10}) {
    const std::string text(length, 'b');
    Status status = replaceSection(path, SectionKind::Drafters, bytesOf(text));
    ASSERT_TRUE(status.isOk()) << status.message();
    auto plan = PlanFile::open(path);
    ASSERT_TRUE(plan.isOk()) << length << ": " << plan.status().message();
    EXPECT_EQ((*plan)->drafters(), text);
    EXPECT_EQ((*plan)->meta(), "{\"model\":\"small\"}");
    EXPECT_TRUE((*plan)->verifyWeights().isOk());
  }
}

TEST(PlanEdit, RefusesAPlanWithoutTheSection) {
  TemporaryFolder folder;
  const std::string path = writePlan(folder, "");
  EXPECT_THAT(replaceSection(path, SectionKind::Drafters, bytesOf("{}")).message(),
              HasSubstr("no section of kind 10"));
  EXPECT_FALSE(replaceSection(folder.file("missing"), SectionKind::Drafters, {}).isOk());
}

} // namespace
} // namespace dspark

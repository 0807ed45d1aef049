#include "runtime/llm/model/StepCostFile.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {

using testing::HasSubstr;

class StepCostFiles : public testing::Test {
protected:
  StepCostFiles() : folder(std::filesystem::path(testing::TempDir()) / "step-cost-files") {
    std::filesystem::remove_all(folder);
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  ~StepCostFiles() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder);
  }

  void write(const StepCostFile &file, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(file.path()).parent_path());
    std::ofstream(file.path()) << text;
  }

  std::filesystem::path folder;
  CostTable table = std::move(*CostTable::create({{1, 0, 0.5}, {1, 8, 1.5}}));
};

TEST_F(StepCostFiles, aTableIsFoundAgainByItsPlanThreadsAndPoints) {
  const StepCostFile file(7, 2, {.sequences = 4});
  EXPECT_FALSE(file.exists());
  ASSERT_TRUE(file.save(table).isOk());
  EXPECT_TRUE(file.exists());
  const auto back = StepCostFile(7, 2, {.sequences = 4}).load();
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_DOUBLE_EQ(back->seconds(1, 3), table.seconds(1, 3));
  EXPECT_FALSE(StepCostFile(8, 2, {.sequences = 4}).exists());
  EXPECT_FALSE(StepCostFile(7, 1, {.sequences = 4}).exists());
  EXPECT_FALSE(StepCostFile(7, 2, {.sequences = 8}).exists());
}

TEST_F(StepCostFiles, whatIsNoTableOrAnotherOnesIsRefused) {
  const StepCostFile file(7, 2, {}), other(8, 2, {});
  const auto refusal = [&](const std::string &text) {
    write(file, text);
    const auto loaded = file.load();
    EXPECT_EQ(loaded.status().code(), Code::CorruptFile);
    return loaded.status().message();
  };
  EXPECT_THAT(refusal("{"), HasSubstr("\"steps_of\" is not"));
  EXPECT_THAT(refusal("[]"), HasSubstr("\"steps_of\" is not"));
  EXPECT_THAT(refusal(std::string(2 << 20, ' ')), HasSubstr("at most"));
  ASSERT_TRUE(other.save(table).isOk());
  std::filesystem::copy_file(other.path(), file.path(), std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(file.load().status().message(), HasSubstr("\"steps_of\" is not"));
  ASSERT_TRUE(file.save(table).isOk());
  std::string text;
  std::getline(std::ifstream(file.path()), text);
  const size_t seconds = text.find("1.5");
  EXPECT_THAT(refusal(text.replace(seconds, 3, "-15")), HasSubstr("was not measured"));
}

TEST_F(StepCostFiles, whereThereIsNoFolderTheErrorNamesThePath) {
  std::ofstream(folder) << "a file, not a folder";
  const StepCostFile file(7, 2, {});
  const Status saved = file.save(table);
  EXPECT_EQ(saved.code(), Code::IoError);
  EXPECT_THAT(saved.message(), HasSubstr(file.path()));
  EXPECT_FALSE(file.exists());
}

} // namespace
} // namespace dspark::llm

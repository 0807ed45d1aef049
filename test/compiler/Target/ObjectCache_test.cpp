// The cache of compiled objects: hits, misses, damage, and many writers at once.
#include "FusedHarness.h"
#include <filesystem>
#include <fstream>
#include <thread>

using namespace dspark;
using namespace dspark::test;
namespace fs = std::filesystem;

namespace {

class ObjectCacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dspark-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    for (float value : {1.0f, 2.0f, 3.0f})
      specs.push_back(contiguous(1, {clip(0, -value, value)}, {1}));
  }
  void TearDown() override { fs::remove_all(folder); }

  StatusOr<FusedLibrary> compile(Isa level = Isa::Baseline) const {
    return compileFused(specs, level, {.threads = 1, .useCache = true, .cacheDir = folder / "cache"});
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> files;
    for (const auto &entry : fs::directory_iterator(folder / "cache"))
      files.push_back(entry.path());
    return files;
  }
  void expectWorks(const FusedLibrary &library) const {
    LoadedLibrary loaded(library.elf);
    for (size_t i = 0; i < specs.size(); ++i) {
      float x = 10, y = 0;
      void *operands[] = {&x, &y};
      int64_t strides[] = {0, 0};
      loaded.find(specs[i])(operands, 1, 1, strides);
      EXPECT_EQ(y, 1 + float(i));
    }
  }

  fs::path folder;
  std::vector<FusedKernelSpec> specs;
};

TEST_F(ObjectCacheTest, SecondCompileFindsEverything) {
  StatusOr<FusedLibrary> first = compile(), second = compile();
  ASSERT_TRUE(first.isOk() && second.isOk());
  EXPECT_EQ(first->compiled, 3);
  EXPECT_EQ(second->compiled, 0);
  EXPECT_EQ(first->elf, second->elf);
  expectWorks(*second);
  EXPECT_EQ(compile(Isa::Avx2)->compiled, 3) << "levels must not share objects";
}

TEST_F(ObjectCacheTest, DamagedEntriesAreCompiledAgain) {
  StatusOr<FusedLibrary> first = compile();
  std::vector<fs::path> files = entries();
  ASSERT_EQ(files.size(), 3u);
  fs::resize_file(files[0], 0);
  fs::resize_file(files[1], fs::file_size(files[1]) - 1);
  std::fstream(files[2], std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('\x5a').put('\xa5');
  StatusOr<FusedLibrary> second = compile();
  EXPECT_EQ(second->compiled, 3);
  EXPECT_EQ(first->elf, second->elf);
  EXPECT_EQ(compile()->compiled, 0) << "the damaged entries were not replaced";
}

TEST_F(ObjectCacheTest, UnusableFolderOnlyCostsTime) {
  std::ofstream(folder / "cache") << "a file where the folder should be";
  StatusOr<FusedLibrary> library = compile();
  ASSERT_TRUE(library.isOk()) << library.status().message();
  expectWorks(*library);
}

TEST_F(ObjectCacheTest, WritersAtTheSameTimeAgree) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::byte>> results(6);
  for (auto &result : results)
    threads.emplace_back([&] {
      StatusOr<FusedLibrary> library = compile();
      if (library.isOk())
        result = library->elf;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &result : results)
    EXPECT_EQ(result, results[0]);
  ASSERT_FALSE(results[0].empty());
  EXPECT_EQ(entries().size(), 3u) << "temporary files were left behind";
  EXPECT_EQ(compile()->compiled, 0);
}

TEST_F(ObjectCacheTest, FolderComesFromTheEnvironment) {
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  unsetenv("DSPARK_CACHE");
  EXPECT_EQ(defaultCodegenCache(), "/xdg/dspark/codegen");
  setenv("DSPARK_CACHE", "/chosen", 1);
  EXPECT_EQ(defaultCodegenCache(), "/chosen");
  unsetenv("DSPARK_CACHE");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/user", 1);
  EXPECT_EQ(defaultCodegenCache(), "/home/user/.cache/dspark/codegen");
}

} // namespace

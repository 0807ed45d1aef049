#include "planning/CostSamples.h"
#include "planning/MachineProfile.h"
#include "test/runtime/TemporaryFolder.h"
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

namespace dspark {
namespace {

class GenericProfile : public testing::TestWithParam<Isa> {};

TEST_P(GenericProfile, IsValid) {
  const MachineProfile &profile = MachineProfile::genericOf(GetParam());
  EXPECT_EQ(profile.source, GetParam() == Isa::Avx512 ? "generic-avx512" : "generic");
  EXPECT_EQ(profile.fingerprint, "");
  EXPECT_EQ(profile.model.levels.size(), 4u);
  for (const char *isa : {"baseline", "avx2", "avx512"})
    EXPECT_GT(profile.model.peaks.at(isa).f32, 1e9) << isa;
  // Bandwidth falls from level to level, capacity grows.
  for (size_t i = 1; i < profile.model.levels.size(); ++i) {
    EXPECT_LT(profile.model.levels[i].onePerSecond, profile.model.levels[i - 1].onePerSecond);
    EXPECT_GT(profile.model.levels[i].bytes, profile.model.levels[i - 1].bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, GenericProfile, testing::Values(Isa::Avx2, Isa::Avx512));

TEST(MachineProfile, GenericIsThatOfTheLevel) {
  EXPECT_EQ(&MachineProfile::genericOf(Isa::Avx2), &MachineProfile::generic());
  EXPECT_EQ(&MachineProfile::genericOf(Isa::Amx), &MachineProfile::genericOf(Isa::Avx512));
  EXPECT_TRUE(MachineProfile::genericOf(Isa::Avx512).model.kernels.contains("conv_f32_avx512"));
}

TEST(MachineProfile, SavedIsRead) {
  test::TemporaryFolder folder;
  MachineProfile profile = MachineProfile::generic();
  profile.machine = MachineFacts::read();
  profile.fingerprint = profile.machine.fingerprint();
  profile.spread = 0.03;
  profile.model.kernels["conv_f32_avx2"] = {1.25e-11, 0, 3e-9, 0, 1.5, 1, 2e-7};
  std::string path = folder.file("deeper/profile.json");
  ASSERT_TRUE(profile.save(path).isOk());
  StatusOr<MachineProfile> read = MachineProfile::load(path);
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(read->fingerprint, profile.fingerprint);
  EXPECT_EQ(read->machine.cpu, profile.machine.cpu);
  EXPECT_EQ(read->spread, 0.03);
  EXPECT_EQ(read->model.kernels.at("conv_f32_avx2"), profile.model.kernels.at("conv_f32_avx2"));
  EXPECT_EQ(read->model.levels.size(), 4u);
  EXPECT_EQ(read->source, path);
}

TEST(MachineProfile, FingerprintTellsMachinesApart) {
  MachineFacts a = MachineFacts::read(), b = a;
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.fingerprint().size(), 16u);
  b.cores += 1;
  EXPECT_NE(a.fingerprint(), b.fingerprint());
  b = a;
  b.caches.push_back(1);
  EXPECT_NE(a.fingerprint(), b.fingerprint());
}

std::string without(const std::string &key) {
  std::string text = MachineProfile::generic().text();
  size_t at = text.find("\"" + key + "\"");
  return text.replace(at, key.size() + 2, "\"other\"");
}

TEST(MachineProfile, WrongFilesEndInASentence) {
  auto message = [](std::string_view text) {
    StatusOr<MachineProfile> parsed = MachineProfile::parse(text, "p.json");
    return parsed.isOk() ? "" : parsed.status().message();
  };
  EXPECT_EQ(message("{"), "p.json: no JSON object");
  EXPECT_EQ(message("[]"), "p.json: no JSON object");
  EXPECT_EQ(message("{\"format\": 3}"), "p.json: expected \"format\": \"dspark machine profile\"");
  EXPECT_EQ(message("{\"format\": \"dspark machine profile\", \"version\": 9}"),
            "p.json: expected version 1, found 9");
  EXPECT_EQ(message(without("levels")), "p.json: expected an array 'levels' of 1 to 8 entries");
  EXPECT_EQ(message(without("launch_s")), "p.json: expected a number 'launch_s'");
  EXPECT_EQ(message(without("kernels")), "p.json: expected an object 'kernels'");
  std::string negative = MachineProfile::generic().text();
  size_t at = negative.find("\"barrier_s\": ");
  negative.insert(at + 13, "-");
  EXPECT_NE(message(negative).find("'barrier_s' is -"), std::string::npos);
}

TEST(MachineProfile, AFileThatCannotBeUsedIsNamedAndLeftAside) {
  test::TemporaryFolder folder;
  std::string path = folder.file("broken.json"), warning;
  std::ofstream(path) << "{}";
  setenv("DSPARK_MACHINE", path.c_str(), 1);
  MachineProfile profile = MachineProfile::ofThisMachine(warning);
  unsetenv("DSPARK_MACHINE");
  EXPECT_EQ(profile.source, MachineProfile::genericOf(activeIsa()).source);
  EXPECT_NE(warning.find(path), std::string::npos);
}

TEST(CostSamples, WrongEntriesAreNamed) {
  test::TemporaryFolder folder;
  std::string path = folder.file("samples.json");
  std::ofstream(path) << R"({"cost_samples": [{"key": "a", "work": -1}]})";
  StatusOr<std::vector<CostSample>> samples = readSamples(path);
  ASSERT_FALSE(samples.isOk());
  EXPECT_NE(samples.status().message().find("entry 0"), std::string::npos);
  EXPECT_FALSE(readSamples(folder.file("missing.json")).isOk());
}

} // namespace
} // namespace dspark

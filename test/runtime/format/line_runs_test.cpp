#include "runtime/format/LineRuns.h"
#include <cstring>
#include <gtest/gtest.h>

namespace dspark {
namespace {

std::vector<std::byte> bytesOf(const std::vector<float> &values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

void expectRoundTrip(const std::vector<std::byte> &bytes, size_t runs) {
  auto found = lineRuns(bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), runs * 72);
  ASSERT_TRUE(checkLineRuns(*found, bytes.size()).isOk());
  std::vector<std::byte> again(bytes.size(), std::byte(0xff));
  writeLineRuns(*found, again);
  EXPECT_EQ(again, bytes);
}

// The lengths are 0, 1 and 63 bytes over whole lines.
TEST(LineRuns, AFillIsOneRunAndWhatIsLeftOver) {
  for (size_t length : {size_t(1) << 20, (size_t(1) << 20) + 1, (size_t(1) << 20) + 63})
    expectRoundTrip(std::vector<std::byte>(length, std::byte(7)), length % 64 == 0 ? 1 : 2);
}

TEST(LineRuns, PanelsWithDifferentColumns) {
  std::vector<float> values(100 * 10000);
  for (size_t i = 0; i < values.size(); ++i) // 62 and a half panels of 16 columns and 1000 rows
    values[i] = float(i % 16 + i / 16000);
  expectRoundTrip(bytesOf(values), 63);
}

TEST(LineRuns, OnlyWhereTheySaveMuch) {
  EXPECT_FALSE(lineRuns(std::vector<std::byte>(64 * 1023, std::byte(7)))) << "too few bytes";
  std::vector<float> values(1 << 20);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(i / 1024); // 1024 runs of 64 lines
  EXPECT_FALSE(lineRuns(bytesOf(values)));
}

TEST(LineRuns, CheckedBeforeTheyAreWritten) {
  std::vector<std::byte> runs = *lineRuns(std::vector<std::byte>(1 << 20, std::byte(7)));
  EXPECT_FALSE(checkLineRuns(runs, (1 << 20) + 1).isOk());
  EXPECT_FALSE(checkLineRuns(runs, (1 << 20) - 64).isOk());
  EXPECT_FALSE(checkLineRuns(std::span(runs).first(71), 1 << 20).isOk());
  EXPECT_FALSE(checkLineRuns({}, 1 << 20).isOk());
  EXPECT_FALSE(checkLineRuns(runs, UINT64_MAX).isOk());
}

} // namespace
} // namespace dspark

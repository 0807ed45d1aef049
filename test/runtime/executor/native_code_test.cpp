#include "runtime/executor/NativeCode.h"
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <vector>

namespace dspark {
namespace {

std::vector<std::byte> fileBytes(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  auto *bytes = reinterpret_cast<const std::byte *>(chars.data());
  return {bytes, bytes + chars.size()};
}

int answerOf(const NativeCode &code) {
  return reinterpret_cast<int (*)()>(const_cast<void *>(code.find("answer")))();
}

// Two plans open in one process: each must run its own code, also when one has been closed in between.
TEST(NativeCode, EveryObjectIsItsOwn) {
  auto first = NativeCode::load(fileBytes(NATIVE_1), "first"),
       second = NativeCode::load(fileBytes(NATIVE_2), "second");
  ASSERT_TRUE(first.isOk()) << first.status().message();
  ASSERT_TRUE(second.isOk()) << second.status().message();
  EXPECT_EQ(answerOf(**first), 1);
  EXPECT_EQ(answerOf(**second), 2);
  first->reset();
  auto third = NativeCode::load(fileBytes(NATIVE_1), "third");
  ASSERT_TRUE(third.isOk()) << third.status().message();
  EXPECT_EQ(answerOf(**second), 2);
  EXPECT_EQ(answerOf(**third), 1);
  EXPECT_EQ((*third)->find("question"), nullptr);
}

TEST(NativeCode, GarbageIsRefused) {
  std::vector<std::byte> bytes = fileBytes(NATIVE_1);
  bytes.resize(200);
  EXPECT_FALSE(NativeCode::load(bytes, "truncated").isOk());
  bytes.assign(4096, std::byte(7));
  EXPECT_FALSE(NativeCode::load(bytes, "garbage").isOk());
}

} // namespace
} // namespace dspark

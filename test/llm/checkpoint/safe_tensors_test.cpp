#include "frontends/checkpoint/SafeTensors.h"
#include "test/runtime/TemporaryFolder.h"
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>

namespace dspark::checkpoint {
namespace {

using testing::HasSubstr;

std::string file(const std::string &header, size_t dataBytes) {
  uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char *>(&size), sizeof size);
  return bytes + header + std::string(dataBytes, '\1');
}

std::string entry(const std::string &name, const std::string &type, const std::string &shape,
                  const std::string &offsets) {
  return "\"" + name + R"(": {"dtype": ")" + type + R"(", "shape": )" + shape + R"(, "data_offsets": )" +
         offsets + "}";
}

std::string failure(const std::string &bytes) {
  auto made = SafeTensorsFile::read(std::as_bytes(std::span(bytes)));
  return made.isOk() ? "fine" : made.status().message();
}

TEST(SafeTensors, readsTensorsOfEveryOrder) {
  std::string bytes =
      file("{" + entry("b", "BF16", "[2, 3]", "[8, 20]") + R"(, "__metadata__": {"format": "pt"}, )" +
               entry("a", "F64", "[]", "[0, 8]") + ", " + entry("none", "I8", "[0, 4]", "[8, 8]") + "}   ",
           20);
  auto made = SafeTensorsFile::read(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(made.isOk()) << made.status().message();
  const SafeTensors &tensors = (*made)->tensors();
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("b").type, DType::BF16);
  EXPECT_EQ(tensors.at("b").dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors.at("b").bytes.size(), 12u);
  EXPECT_EQ(tensors.at("a").dims, std::vector<int64_t>());
  EXPECT_EQ(tensors.at("none").bytes.size(), 0u);
}

TEST(SafeTensors, everyTruncationIsRefused) {
  std::string whole = file("{" + entry("a", "F32", "[2]", "[0, 8]") + "}", 8);
  EXPECT_EQ(failure(whole), "fine");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(failure(whole.substr(0, size)), "fine") << size;
}

TEST(SafeTensors, hostileHeadersAreRefusedInASentence) {
  auto one = [](const std::string &type, const std::string &shape, const std::string &offsets,
                size_t bytes = 8) {
    return failure(file("{" + entry("a", type, shape, offsets) + "}", bytes));
  };
  EXPECT_THAT(one("F32", "[3]", "[0, 8]"), HasSubstr("offsets are 0 and 8, its shape has 12 bytes"));
  EXPECT_THAT(one("F32", "[2]", "[8, 0]"), HasSubstr("offsets are 8 and 0"));
  EXPECT_THAT(one("F32", "[4294967296, 4294967296]", "[0, 8]"), HasSubstr("more than 2^63 bytes"));
  EXPECT_THAT(one("F32", "[18446744073709551615]", "[0, 8]"), HasSubstr("more than 2^63 bytes"));
  EXPECT_THAT(one("F32", "[-1]", "[0, 8]"), HasSubstr("\"shape\": found -1"));
  EXPECT_THAT(one("F32", "[[2]]", "[0, 8]"), HasSubstr("\"shape\": found a list"));
  EXPECT_THAT(one("F32", "[1,1,1,1,1,1,1,1,2]", "[0, 8]"), HasSubstr("more than 8 numbers"));
  EXPECT_THAT(one("F32", "[2]", "[0]"), HasSubstr("expected dtype, shape and two data_offsets"));
  EXPECT_THAT(one("C64", "[1]", "[0, 8]"), HasSubstr("elements of type \"C64\" are not read"));
  EXPECT_THAT(one("F32", "[2]", "[0, 8]", 12), HasSubstr("ends at byte 8 of 12"));
  EXPECT_THAT(one("F32", "[2]", "[4, 12]", 12), HasSubstr("the tensors before it end at 0"));
  EXPECT_THAT(one("F32", "[2]", "[0, 8]", 4), HasSubstr("and the file at 4"));
  auto two = [](const std::string &a, const std::string &b, size_t bytes) {
    return failure(file("{" + a + "," + b + "}", bytes));
  };
  EXPECT_THAT(two(entry("a", "F32", "[2]", "[0, 8]"), entry("b", "F32", "[2]", "[4, 12]"), 12),
              HasSubstr("tensor \"b\": its offsets are 4 and 12, the tensors before it end at 8"));
  EXPECT_THAT(two(entry("a", "F32", "[2]", "[0, 8]"), entry("a", "F32", "[2]", "[8, 16]"), 16),
              HasSubstr("tensor \"a\": the name occurs twice"));
  EXPECT_THAT(failure(file("[" + std::string(1000, '['), 0)), HasSubstr("the header: found a list"));
  EXPECT_THAT(failure(file(R"({"a": {"dtype": {"b": 1}}})", 0)), HasSubstr("found an object"));
  EXPECT_THAT(failure(file(R"({"a": {"dtype": "F32", "dtype": "F16"}})", 0)),
              HasSubstr("\"dtype\" occurs twice"));
  EXPECT_THAT(failure(file(R"({"a": {"dtype": "F)", 0)), HasSubstr("the header is no JSON at its byte"));
  EXPECT_THAT(failure(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)),
              HasSubstr("18446744073709551615 bytes"));
}

class Folder : public testing::Test {
protected:
  void write(const std::string &name, const std::string &text) {
    std::ofstream(folder.path / name, std::ios::binary) << text;
  }
  std::string failure() {
    auto made = SafeTensorsFolder::open(folder.path.string());
    return made.isOk() ? "fine" : made.status().message();
  }
  test::TemporaryFolder folder;
};

TEST_F(Folder, severalFilesAreOneSetOfTensors) {
  write("x.safetensors", file("{" + entry("a", "F32", "[2]", "[0, 8]") + "}", 8));
  write("y.safetensors", file("{" + entry("b", "F32", "[2]", "[0, 8]") + "}", 8));
  write("model.safetensors.index.json", R"({"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}})");
  auto made = SafeTensorsFolder::open(folder.path.string());
  ASSERT_TRUE(made.isOk()) << made.status().message();
  EXPECT_TRUE((*made)->find("a") && (*made)->find("b"));
  write("y.safetensors", file("{" + entry("a", "F32", "[2]", "[0, 8]") + "}", 8));
  EXPECT_THAT(failure(), HasSubstr("y.safetensors: tensor \"a\" is in another file, too"));
}

TEST_F(Folder, namesLeadNowhereElse) {
  EXPECT_THAT(failure(), HasSubstr("neither model.safetensors nor its index"));
  for (const char *name : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", ""}) {
    write("model.safetensors.index.json", R"({"weight_map": {"a": ")" + std::string(name) + R"("}})");
    EXPECT_THAT(failure(), HasSubstr("is no name of a .safetensors file in the folder")) << name;
  }
  write("model.safetensors.index.json", R"({"weight_map": {"a": "gone.safetensors"}})");
  EXPECT_THAT(failure(), HasSubstr("gone.safetensors"));
  write("model.safetensors.index.json", R"({"weight_map": 3})");
  EXPECT_THAT(failure(), HasSubstr("model.safetensors.index.json"));
}

} // namespace
} // namespace dspark::checkpoint

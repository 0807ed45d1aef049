// Tensors in all the ways ONNX stores them, and the ways to get them wrong.
#include "frontends/onnx/TensorReader.h"
#include "test/frontends/onnx/ModelBuilder.h"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

namespace dspark::onnx::test {
namespace {

using ::onnx::TensorProto;
using ::testing::HasSubstr;

template <typename T> std::vector<T> valuesOf(const Weight &weight) {
  auto bytes = bytesOf(weight);
  auto *begin = reinterpret_cast<const T *>(bytes.data());
  return {begin, begin + bytes.size() / sizeof(T)};
}

StatusOr<Weight> read(const TensorProto &proto) { return TensorReader(nullptr, "").read(proto); }
std::string errorOf(const TensorProto &proto) {
  auto weight = read(proto);
  return weight.isOk() ? "" : weight.status().message();
}

TensorProto typed(int type, const std::vector<int64_t> &dims) {
  TensorProto proto;
  proto.set_name("t");
  proto.set_data_type(type);
  for (int64_t dim : dims)
    proto.add_dims(dim);
  return proto;
}

TEST(TensorReader, TypedFields) {
  TensorProto i8 = typed(TensorProto::INT8, {3});
  for (int value : {-1, 2, -128})
    i8.add_int32_data(value);
  EXPECT_EQ(valuesOf<int8_t>(*read(i8)), (std::vector<int8_t>{-1, 2, -128}));

  TensorProto f16 = typed(TensorProto::FLOAT16, {2});
  f16.add_int32_data(0x3c00);
  f16.add_int32_data(0xbc00);
  EXPECT_EQ(valuesOf<uint16_t>(*read(f16)), (std::vector<uint16_t>{0x3c00, 0xbc00}));

  TensorProto u32 = typed(TensorProto::UINT32, {1});
  u32.add_uint64_data(4000000000u);
  EXPECT_EQ(valuesOf<uint32_t>(*read(u32)), std::vector<uint32_t>{4000000000u});

  TensorProto i64 = typed(TensorProto::INT64, {});
  i64.add_int64_data(-7);
  EXPECT_EQ(valuesOf<int64_t>(*read(i64)), std::vector<int64_t>{-7});

  TensorProto c64 = typed(TensorProto::COMPLEX64, {1});
  c64.add_float_data(1);
  c64.add_float_data(2);
  EXPECT_EQ(valuesOf<float>(*read(c64)), (std::vector<float>{1, 2}));

  TensorProto i4 = typed(TensorProto::INT4, {3}); // two to a byte
  i4.add_int32_data(0x21);
  i4.add_int32_data(0x03);
  EXPECT_EQ(valuesOf<uint8_t>(*read(i4)), (std::vector<uint8_t>{0x21, 0x03}));
}

TEST(TensorReader, BoolsBecomeZeroOrOne) {
  EXPECT_EQ(valuesOf<uint8_t>(*read(tensor("b", kBool, {3}, std::string("\x00\x02\xff", 3)))),
            (std::vector<uint8_t>{0, 1, 1}));
}

TEST(TensorReader, WrongAmountsOfData) {
  EXPECT_THAT(errorOf(tensor("w", kF32, {2, 3}, std::string(20, 0))),
              HasSubstr("tensor 'w': raw_data holds 20 bytes; f32[2, 3] needs 24"));
  EXPECT_NE(errorOf(tensor("w", TensorProto::UINT4, {5}, std::string(2, 0))), ""); // needs 3 bytes
  EXPECT_EQ(errorOf(tensor("w", TensorProto::UINT4, {5}, std::string(3, 0))), "");
  EXPECT_EQ(errorOf(tensor("w", kF32, {0, 1000}, "")), "");
}

TEST(TensorReader, DimsThatOverflow) {
  EXPECT_THAT(errorOf(tensor("w", kF32, {int64_t(1) << 40, int64_t(1) << 40}, "")), HasSubstr("too large"));
  EXPECT_THAT(errorOf(tensor("w", kF32, {int64_t(1) << 62}, "")), HasSubstr("too large"));
  EXPECT_THAT(errorOf(tensor("w", kF32, {-1}, "")), HasSubstr("negative"));
}

TEST(TensorReader, TypesThatAreNotKnown) {
  EXPECT_THAT(errorOf(tensor("w", TensorProto::STRING, {1}, "")), HasSubstr("string"));
  EXPECT_THAT(errorOf(tensor("w", 99, {1}, "")), HasSubstr("element type 99"));
  EXPECT_THAT(errorOf(tensor("w", 0, {1}, "")), HasSubstr("element type 0"));
}

TEST(TensorReader, SparseTensorsAreExpanded) {
  ::onnx::SparseTensorProto sparse;
  *sparse.mutable_values() = tensor("s", kF32, {2}, rawBytes<float>({5, 7}));
  *sparse.mutable_indices() = tensor("", kI64, {2, 2}, rawBytes<int64_t>({0, 1, 1, 0}));
  sparse.add_dims(2);
  sparse.add_dims(2);
  auto dense = TensorReader(nullptr, "").read(sparse);
  ASSERT_TRUE(dense.isOk()) << dense.status().message();
  EXPECT_EQ(valuesOf<float>(*dense), (std::vector<float>{0, 5, 7, 0}));

  *sparse.mutable_indices() = tensor("", kI64, {2}, rawBytes<int64_t>({3, 4}));
  dense = TensorReader(nullptr, "").read(sparse);
  ASSERT_FALSE(dense.isOk());
  EXPECT_THAT(dense.status().message(), HasSubstr("index 4 is outside [0, 4)"));

  sparse.set_dims(0, int64_t(1) << 30);
  EXPECT_THAT(TensorReader(nullptr, "").read(sparse).status().message(), HasSubstr("too large"));
}

// --- External data ---

TensorProto external(const std::string &location, const std::string &offset = "",
                     const std::string &length = "") {
  TensorProto proto = typed(kF32, {4});
  proto.set_data_location(TensorProto::EXTERNAL);
  auto add = [&](const char *key, const std::string &value) {
    auto *entry = proto.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  if (!offset.empty())
    add("offset", offset);
  if (!length.empty())
    add("length", length);
  add("checksum", "ignored");
  return proto;
}

struct ExternalData : ::testing::Test {
  TempFolder folder;
  std::string errorOf(const TensorProto &proto) {
    auto weight = TensorReader(nullptr, folder / "m.onnx").read(proto);
    return weight.isOk() ? "" : weight.status().message();
  }
};

TEST_F(ExternalData, IsReadWhereItLies) {
  folder.write("w.bin", rawBytes<float>({9, 1, 2, 3, 4}));
  auto weight = TensorReader(nullptr, folder / "m.onnx").read(external("w.bin", "4", "16"));
  ASSERT_TRUE(weight.isOk()) << weight.status().message();
  EXPECT_EQ(valuesOf<float>(*weight), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(weight->file);
}

TEST_F(ExternalData, MayLieInASubfolder) {
  std::filesystem::create_directory(folder.path / "data");
  folder.write("data/w.bin", std::string(16, 0));
  EXPECT_EQ(errorOf(external("data/w.bin")), "");
  EXPECT_EQ(errorOf(external("./data/w.bin")), "");
}

TEST_F(ExternalData, MayNotLeaveTheFolder) {
  TempFolder elsewhere;
  std::string outside = elsewhere.write("secret", std::string(16, 0));
  EXPECT_THAT(errorOf(external(outside)), HasSubstr("absolute"));
  EXPECT_THAT(errorOf(external("../" + elsewhere.path.filename().string() + "/secret")), HasSubstr("'..'"));
  EXPECT_THAT(errorOf(external("a/../../b")), HasSubstr("'..'"));
  std::filesystem::create_symlink(outside, folder.path / "link");
  EXPECT_THAT(errorOf(external("link")), HasSubstr("outside the model's folder"));
  std::filesystem::create_directory_symlink(elsewhere.path, folder.path / "dir");
  EXPECT_THAT(errorOf(external("dir/secret")), HasSubstr("outside the model's folder"));
  folder.write("inside", std::string(16, 0));
  std::filesystem::create_symlink("inside", folder.path / "ok");
  EXPECT_EQ(errorOf(external("ok")), "");
}

TEST_F(ExternalData, OnlyRegularFiles) {
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(errorOf(external("pipe")), HasSubstr("regular"));
  EXPECT_NE(errorOf(external(".")), "");
  EXPECT_NE(errorOf(external("")), "");
  EXPECT_THAT(errorOf(external("missing.bin")), HasSubstr("tensor 't': external data file 'missing.bin'"));
}

TEST_F(ExternalData, OffsetAndLengthAreChecked) {
  folder.write("w.bin", std::string(20, 0));
  EXPECT_THAT(errorOf(external("w.bin", "8")), HasSubstr("beyond its end"));
  EXPECT_THAT(errorOf(external("w.bin", "18446744073709551615")), HasSubstr("beyond its end"));
  EXPECT_THAT(errorOf(external("w.bin", "-4")), HasSubstr("no number"));
  EXPECT_THAT(errorOf(external("w.bin", "99999999999999999999")), HasSubstr("no number"));
  EXPECT_THAT(errorOf(external("w.bin", "0", "20")), HasSubstr("need 16"));
  EXPECT_THAT(errorOf(external("w.bin", "0", "12")), HasSubstr("need 16"));
}

} // namespace
} // namespace dspark::onnx::test

// The file formats of dspark-rt, against bytes as NumPy and protobuf write them.
#include "test/runtime/TemporaryFolder.h"
#include "tools/dspark-rt/Compare.h"
#include "tools/dspark-rt/Npy.h"
#include "tools/dspark-rt/TensorProto.h"
#include <cmath>
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>

namespace dspark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T> HostTensor tensorOf(DType type, std::vector<int64_t> dims, std::vector<T> values) {
  HostTensor tensor{"t", type, std::move(dims), {}};
  auto bytes = std::as_bytes(std::span(values));
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}
template <typename T> std::vector<T> valuesOf(const HostTensor &tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}
std::vector<std::byte> npy(const std::string &header, const std::string &data) {
  std::string text = std::string("\x93NUMPY\x01\0", 8) + char(header.size()) + '\0' + header + data;
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
template <typename T> std::string raw(std::vector<T> values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

TEST(Npy, RoundTrip) {
  for (const HostTensor &tensor :
       {tensorOf<float>(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}), tensorOf<int64_t>(DType::I64, {}, {-7}),
        tensorOf<uint8_t>(DType::Bool, {0, 4}, {})}) {
    auto read = parseNpy(npyBytes(tensor), "file");
    ASSERT_TRUE(read.isOk()) << read.status().message();
    EXPECT_EQ(read->type, tensor.type);
    EXPECT_EQ(read->dims, tensor.dims);
    EXPECT_EQ(read->bytes, tensor.bytes);
  }
}

TEST(Npy, FortranOrderAndByteOrder) {
  auto columns = parseNpy(
      npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n", raw<int32_t>({1, 4, 2, 5, 3, 6})),
      "f");
  ASSERT_TRUE(columns.isOk()) << columns.status().message();
  EXPECT_THAT(valuesOf<int32_t>(*columns), ElementsAre(1, 2, 3, 4, 5, 6));
  auto swapped = parseNpy(
      npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", std::string("\0\1\1\0", 4)), "f");
  ASSERT_TRUE(swapped.isOk()) << swapped.status().message();
  EXPECT_THAT(valuesOf<int16_t>(*swapped), ElementsAre(1, 256));
}

TEST(Npy, Refused) {
  auto message = [](const std::string &header, const std::string &data) {
    return parseNpy(npy(header, data), "f.npy").status().message();
  };
  EXPECT_THAT(message("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234"),
              HasSubstr("4 bytes of data, expected 8"));
  EXPECT_THAT(message("{'descr': '<M8', 'fortran_order': False, 'shape': (2,)}", ""),
              HasSubstr("element type '<M8'"));
  EXPECT_THAT(message("{'descr': '<f4', 'shape': (99999999999, 99999999999)}", ""), HasSubstr("overflows"));
  EXPECT_THAT(message("{'descr': '<f4', 'shape': (2", ""), HasSubstr("shape is not a tuple"));
  EXPECT_THAT(message("", ""), HasSubstr("f.npy: not a usable .npy file"));
  EXPECT_FALSE(parseNpy({}, "f").isOk());
}

TEST(Npy, TypesThatNumpyLacks) {
  HostTensor bf16 = tensorOf<uint16_t>(DType::BF16, {2}, {0x3f80, 0xc000});
  auto read = parseNpy(npyBytes(bf16), "f");
  ASSERT_EQ(read->type, DType::F32);
  EXPECT_THAT(valuesOf<float>(*read), ElementsAre(1.f, -2.f));
  EXPECT_EQ(asDeclared(*read, DType::BF16).bytes, bf16.bytes);
  HostTensor i4 = tensorOf<uint8_t>(DType::I4, {3}, {0xf1, 0x07});
  read = parseNpy(npyBytes(i4), "f");
  ASSERT_EQ(read->type, DType::I8);
  EXPECT_THAT(valuesOf<int8_t>(*read), ElementsAre(1, -1, 7));
  EXPECT_EQ(asDeclared(*read, DType::I4).bytes, i4.bytes);
}

TEST(Npz, RoundTrip) {
  test::TemporaryFolder folder;
  std::vector<HostTensor> tensors = {tensorOf<float>(DType::F32, {2}, {1, 2}),
                                     tensorOf<int64_t>(DType::I64, {1}, {3})};
  tensors[1].name = "a/b:0";
  ASSERT_TRUE(writeNpz(folder.file("f.npz"), tensors).isOk());
  auto read = readNpz(folder.file("f.npz"));
  ASSERT_TRUE(read.isOk()) << read.status().message();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[1].name, "a/b:0");
  EXPECT_EQ((*read)[1].bytes, tensors[1].bytes);

  // Any truncated or changed byte is an error or changes a value, never more.
  std::ifstream in(folder.file("f.npz"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string changed = bytes;
    changed[i] ^= 0x41;
    std::ofstream(folder.file("g.npz"), std::ios::binary) << changed;
    (void)readNpz(folder.file("g.npz")).isOk();
    std::ofstream(folder.file("g.npz"), std::ios::binary) << bytes.substr(0, i);
    EXPECT_FALSE(readNpz(folder.file("g.npz")).isOk());
  }
  EXPECT_EQ(writeNpz(folder.file("no/f.npz"), tensors).code(), Code::IoError);
}

TEST(TensorProto, Forms) {
  test::TemporaryFolder folder;
  auto read = [&](const std::string &bytes) {
    return parseTensorProto(std::as_bytes(std::span(bytes)), "t.pb");
  };
  // dims [2], f32, name "x", raw_data
  auto tensor = read(std::string("\x08\x02\x10\x01\x42\x01x\x4a\x08", 9) + raw<float>({1, 2}));
  ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
  EXPECT_EQ(tensor->name, "x");
  EXPECT_THAT(valuesOf<float>(*tensor), ElementsAre(1, 2));
  // the same as packed float_data with packed dims
  tensor = read(std::string("\x0a\x01\x02\x10\x01\x22\x08", 7) + raw<float>({1, 2}));
  ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
  EXPECT_THAT(valuesOf<float>(*tensor), ElementsAre(1, 2));
  // int8 in int32_data, one of them negative
  tensor = read(std::string("\x08\x02\x10\x03\x2a\x0b\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 17));
  ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
  EXPECT_THAT(valuesOf<int8_t>(*tensor), ElementsAre(5, -1));
  EXPECT_FALSE(read(std::string("\x08\x03\x10\x01\x4a\x08", 6) + raw<float>({1, 2})).isOk())
      << "too little data";
  EXPECT_FALSE(read(std::string("\x08\xff", 2)).isOk()) << "cut off";
  tensor = read(std::string("\x08\x02\x10\x08\x32\x01s\x32\x00", 9)); // strings
  ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
  EXPECT_THAT(tensor->strings, ElementsAre("s", ""));
  EXPECT_FALSE(read(std::string("\x08\x02\x10\x08\x32\x01s", 7)).isOk()) << "one string of two";
}

TEST(ValueProto, Lists) {
  test::TemporaryFolder folder;
  auto tree = [](fb::TypeKind kind, DType type) {
    fb::ValueTypeT made;
    made.kind = kind;
    made.dtype = uint8_t(type);
    return made;
  };
  auto sequence = tree(fb::TypeKind::Sequence, DType::Undefined),
       optional = tree(fb::TypeKind::Optional, DType::Undefined);
  sequence.items.push_back(std::make_unique<fb::ValueTypeT>(tree(fb::TypeKind::Tensor, DType::F32)));
  optional.items.push_back(std::make_unique<fb::ValueTypeT>(sequence));
  auto map = tree(fb::TypeKind::Map, DType::Undefined);
  map.items.push_back(std::make_unique<fb::ValueTypeT>(tree(fb::TypeKind::Tensor, DType::String)));
  map.items.push_back(std::make_unique<fb::ValueTypeT>(tree(fb::TypeKind::Tensor, DType::F32)));
  auto read = [&](const std::string &bytes, const fb::ValueTypeT &type) {
    std::ofstream(folder.file("v.pb"), std::ios::binary) << bytes;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::ValueType::Pack(builder, &type));
    return readValueProto(folder.file("v.pb"),
                          flatbuffers::GetRoot<fb::ValueType>(builder.GetBufferPointer()));
  };
  auto field = [](char tag, const std::string &bytes) {
    return std::string{tag, char(bytes.size())} + bytes;
  };
  std::string one = std::string("\x08\x01\x10\x01\x4a\x04", 6) + raw<float>({2});
  std::string two = field(0x0a, "s") + std::string("\x10\x01", 2) + field(0x1a, one) +
                    field(0x1a, one); // name, type, items
  auto value = read(two, sequence);
  ASSERT_TRUE(value.isOk()) << value.status().message();
  ASSERT_EQ(value->items.size(), 2u);
  EXPECT_THAT(valuesOf<float>(value->items[1].tensor), ElementsAre(2));
  EXPECT_EQ(*readProtoName(folder.file("v.pb")), "s");
  value = read(field(0x2a, two), optional); // the optional's sequence
  ASSERT_TRUE(value.isOk()) << value.status().message();
  ASSERT_EQ(value->items.size(), 1u);
  EXPECT_EQ(value->items[0].items.size(), 2u);
  value = read("", optional);
  ASSERT_TRUE(value.isOk());
  EXPECT_TRUE(value->isList && value->items.empty());
  value = read(field(0x22, "k") + field(0x22, "l") + field(0x2a, two), map); // two string keys, the values
  ASSERT_TRUE(value.isOk()) << value.status().message();
  EXPECT_THAT(value->items[0].tensor.strings, ElementsAre("k", "l"));
  EXPECT_THAT(valuesOf<float>(value->items[1].tensor), ElementsAre(2, 2));
  EXPECT_FALSE(read(two.substr(0, two.size() - 1), sequence).isOk()) << "cut off";
}

TEST(Npy, Strings) {
  HostTensor tensor{"s", DType::String, {2, 2}, {}, {"a", "", "gr\xc3\xbc\xc3\x9f", "\xf0\x9f\x98\x80!"}};
  std::vector<std::byte> bytes = npyBytes(tensor);
  auto back = parseNpy(bytes, "s.npy");
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_EQ(back->strings, tensor.strings);
  EXPECT_EQ(back->dims, tensor.dims);
  for (size_t end = 0; end < bytes.size(); end += 7)
    EXPECT_FALSE(parseNpy(std::span(bytes).first(end), "s.npy").isOk());
}

TEST(Compare, Rule) {
  HostTensor expected = tensorOf<float>(DType::F32, {3}, {100, NAN, INFINITY});
  auto compare = [&](std::vector<float> found, std::vector<int64_t> dims = {3}) {
    TensorView view{found.data(), dims.data(), int32_t(dims.size()), DType::F32};
    double largest;
    return compareTensors(view, expected, {}, largest);
  };
  EXPECT_TRUE(compare({100.09f, NAN, INFINITY}).isOk());
  EXPECT_THAT(compare({100.2f, NAN, INFINITY}).message(), HasSubstr("at [0] it is 100.19"));
  EXPECT_FALSE(compare({100, 0, INFINITY}).isOk());
  EXPECT_FALSE(compare({100, NAN, -INFINITY}).isOk());
  EXPECT_EQ(compare({100, NAN, INFINITY}, {3, 1}).message(), "is f32[3, 1], expected f32[3]");
}

} // namespace
} // namespace dspark

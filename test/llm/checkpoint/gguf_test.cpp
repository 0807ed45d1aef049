#include "frontends/checkpoint/Gguf.h"
#include <cstring>
#include <gtest/gtest.h>

namespace dspark::checkpoint {
namespace {

// Writes GGUF files by hand, right or wrong.
struct Writer {
  std::string bytes;
  template <typename T> Writer &put(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    return *this;
  }
  Writer &text(const std::string &value) {
    put(uint64_t(value.size()));
    bytes += value;
    return *this;
  }
  Writer &header(uint64_t tensors, uint64_t values, uint32_t version = 3) {
    bytes += "GGUF";
    return put(version).put(tensors).put(values);
  }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes.data(), bytes.size())); }
};

std::string failure(const Writer &writer) {
  const auto file = GgufFile::read(writer.span());
  return file.isOk() ? "fine" : file.status().message();
}

Writer good() {
  Writer w;
  w.header(1, 3)
      .text("general.alignment")
      .put(4u)
      .put(32u)
      .text("list")
      .put(9u)
      .put(8u)
      .put(uint64_t(2))
      .text("a")
      .text("bc");
  w.text("numbers").put(9u).put(6u).put(uint64_t(2)).put(1.5f).put(-2.0f);
  w.text("t").put(2u).put(uint64_t(32)).put(uint64_t(2)).put(8u).put(uint64_t(0)); // Q8_0 [2, 32]
  w.bytes.resize((w.bytes.size() + 31) / 32 * 32);
  w.bytes.resize(w.bytes.size() + 68, 'x');
  return w;
}

TEST(Gguf, readsValuesAndTensors) {
  const Writer writer = good();
  const auto file = GgufFile::read(writer.span());
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ((*file)->find("general.alignment")->integer(), 32);
  EXPECT_EQ((*(*file)->find("list")->strings())[1], "bc");
  EXPECT_EQ((*(*file)->find("numbers")->numbers())[1], -2.0);
  EXPECT_EQ((*file)->find("nothing"), nullptr);
  const GgufTensor *tensor = (*file)->tensor("t");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->type.name, "Q8_0");
  EXPECT_EQ(tensor->dims, (std::vector<int64_t>{2, 32}));
  EXPECT_EQ(tensor->bytes.size(), 68u);
}

TEST(Gguf, everyTruncationIsRefused) {
  const Writer whole = good();
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    Writer part;
    part.bytes = whole.bytes.substr(0, size);
    EXPECT_NE(failure(part), "fine") << size;
  }
}

TEST(Gguf, hostileNumbersAreNamed) {
  EXPECT_EQ(failure(Writer().put(1u)), "this is no GGUF file: it does not start with \"GGUF\"");
  EXPECT_EQ(failure(Writer().header(0, 0, 7)), "the file has GGUF version 7; versions 2 and 3 are read");
  EXPECT_NE(failure(Writer().header(0, UINT64_MAX)), "fine");
  EXPECT_NE(failure(Writer().header(UINT64_MAX, 0)), "fine");
  Writer array;
  array.header(0, 1).text("k").put(9u).put(10u).put(UINT64_MAX / 2);
  EXPECT_EQ(failure(array),
            "key \"k\": an array has 9223372036854775807 elements, the file only 0 more bytes");
  Writer kind;
  kind.header(0, 1).text("k").put(13u);
  EXPECT_EQ(failure(kind), "key \"k\": a value has type 13, the last known one is 12");
  Writer dims;
  dims.header(1, 0).text("t").put(2u).put(uint64_t(1) << 40).put(uint64_t(1) << 40).put(0u).put(uint64_t(0));
  EXPECT_EQ(failure(dims), "tensor \"t\": its dims hold 1099511627776, or more elements than 2^63");
  Writer zero;
  zero.header(1, 0).text("t").put(1u).put(uint64_t(0)).put(0u).put(uint64_t(0));
  EXPECT_NE(failure(zero), "fine");
  Writer alignment; // whisper.cpp 3864
  alignment.header(0, 1).text("general.alignment").put(8u).text("32");
  EXPECT_EQ(failure(alignment), "general.alignment must be a power of two up to 2^20");
  Writer row; // llama.cpp 18674
  row.header(1, 0).text("t").put(1u).put((uint64_t(1) << 42) + 1).put(0u).put(uint64_t(0));
  EXPECT_NE(failure(row), "fine");
  Writer block;
  block.header(1, 0).text("t").put(1u).put(uint64_t(33)).put(8u).put(uint64_t(0));
  EXPECT_EQ(failure(block), "tensor \"t\": its rows have 33 elements, blocks of Q8_0 have 32");
  Writer offset;
  offset.header(1, 0).text("t").put(1u).put(uint64_t(4)).put(0u).put(uint64_t(1) << 60);
  EXPECT_NE(failure(offset), "fine");
  Writer twice;
  twice.header(0, 2).text("k").put(0u).put(uint8_t(1)).text("k").put(0u).put(uint8_t(1));
  EXPECT_EQ(failure(twice), "key \"k\" occurs twice");
}

} // namespace
} // namespace dspark::checkpoint

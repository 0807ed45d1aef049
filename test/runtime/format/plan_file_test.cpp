#include "runtime/format/Hash.h"
#include "runtime/format/PlanCheck.h"
#include "runtime/format/PlanFile.h"
#include "test/runtime/PlanBuilder.h"
#include <fstream>
#include <gmock/gmock.h>
#include <sys/resource.h>

namespace dspark {
namespace {

using test::PlanBuilder;
using test::TemporaryFolder;
using testing::HasSubstr;

std::vector<char> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void writeFile(const std::string &path, const std::vector<char> &bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

// y = x + [1, 2, 3] under a symbolic batch.
void writeSmallPlan(const std::string &path, void (*change)(PlanBuilder &) = nullptr) {
  PlanBuilder b(path);
  int x = b.input("x", DType::F32, {b.symbol("batch"), b.number(3)});
  int c = b.constant<float>(DType::F32, {3}, {1, 2, 3});
  b.output(b.kernel("binary", {x, c}, "add"), "y");
  b.writer->setMeta("{\"model\":\"small\"}");
  b.writer->addCode(1, std::vector<std::byte>(100, std::byte(7)));
  if (change)
    change(b);
  b.finish();
}

TEST(PlanFile, RoundTrip) {
  TemporaryFolder folder;
  writeSmallPlan(folder.file("p.dsp"));
  auto plan = PlanFile::open(folder.file("p.dsp"));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  const PlanFile &file = **plan;
  EXPECT_EQ(file.meta(), "{\"model\":\"small\"}");
  EXPECT_EQ(file.plan().body()->steps()->Get(0)->op()->str(), "binary");
  auto blob = file.blob(*file.plan().values()->Get(1)->blob());
  ASSERT_EQ(blob.size(), 12u);
  EXPECT_EQ(reinterpret_cast<const float *>(blob.data())[2], 3.f);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(blob.data()) % 64, 0u);
  EXPECT_TRUE(file.verifyWeights().isOk());
  size_t filesInFolder = size_t(std::distance(std::filesystem::directory_iterator(folder.path), {}));
  EXPECT_EQ(filesInFolder, 1u) << "the temporary file is gone";
}

// y = x + [1, 2, 3] again, as a function that reads the same constant.
void addSmallFunction(PlanBuilder &b, const std::string &name, std::vector<std::string> files = {}) {
  flatbuffers::FlatBufferBuilder bytes;
  bytes.Finish(fb::Plan::Pack(bytes, &b.plan));
  fb::PlanT function;
  fb::GetPlan(bytes.GetBufferPointer())->UnPackTo(&function);
  function.name = name;
  function.files = std::move(files);
  b.writer->addFunction(function);
}

TEST(PlanFile, FurtherFunctionsShareTheWeights) {
  TemporaryFolder folder;
  writeSmallPlan(folder.file("p.dsp"), [](PlanBuilder &b) {
    addSmallFunction(b, "draft");
    addSmallFunction(b, "head");
    b.writer->setDrafters("{}");
  });
  auto plan = PlanFile::open(folder.file("p.dsp"));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  const fb::Plan *draft = (*plan)->function("draft");
  ASSERT_NE(draft, nullptr);
  EXPECT_EQ(draft->values()->Get(1)->blob()->offset(), (*plan)->plan().values()->Get(1)->blob()->offset());
  EXPECT_NE((*plan)->function("head"), nullptr);
  EXPECT_EQ((*plan)->function("main"), nullptr);
  EXPECT_EQ((*plan)->drafters(), "{}");
}

TEST(PlanFile, FunctionsHaveNamesOfTheirOwnAndNoFiles) {
  TemporaryFolder folder;
  auto refusal = [&](void (*change)(PlanBuilder &)) {
    writeSmallPlan(folder.file("p.dsp"), change);
    return PlanFile::open(folder.file("p.dsp")).status().message();
  };
  EXPECT_THAT(refusal([](PlanBuilder &b) { addSmallFunction(b, ""); }),
              HasSubstr("section FUNCTION 0: its name is ''"));
  EXPECT_THAT(refusal([](PlanBuilder &b) {
                addSmallFunction(b, "twice");
                addSmallFunction(b, "twice");
              }),
              HasSubstr("section FUNCTION 1: its name is 'twice', expected one of its own"));
  EXPECT_THAT(refusal([](PlanBuilder &b) { addSmallFunction(b, "draft", {"weights.bin"}); }),
              HasSubstr("it names weight files"));
  EXPECT_THAT(refusal([](PlanBuilder &b) {
                b.plan.values[1]->blob->offset = uint64_t(1) << 40;
                addSmallFunction(b, "draft");
                b.plan.values[1]->blob->offset = 0;
              }),
              HasSubstr("section FUNCTION 0"));
}

TEST(PlanFile, UnfinishedWriterLeavesNothing) {
  TemporaryFolder folder;
  {
    PlanBuilder b(folder.file("p.dsp"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  EXPECT_FALSE(PlanWriter::create(folder.file("missing/p.dsp")).isOk());
}

TEST(PlanFile, AnyChangedByteIsFound) {
  TemporaryFolder folder;
  writeSmallPlan(folder.file("p.dsp"));
  std::vector<char> good = readFile(folder.file("p.dsp"));
  size_t weights = size_t(kWeightsAlignment);
  // Aligned memory stands for the mapping, so that every byte can be tried quickly.
  auto *copy = static_cast<std::byte *>(std::aligned_alloc(4096, (good.size() + 4095) / 4096 * 4096));
  std::memcpy(copy, good.data(), good.size());
  for (size_t i = 0; i < good.size(); i += i < 1500 ? 1 : 4099) {
    copy[i] ^= std::byte(0x10);
    auto plan = PlanFile::fromBytes({copy, good.size()}, "changed.dsp");
    bool found = !plan.isOk() || !(*plan)->verifyWeights().isOk();
    EXPECT_TRUE(found) << "byte " << i;
    if (i < weights) {
      EXPECT_FALSE(plan.isOk()) << "byte " << i;
      EXPECT_THAT(plan.status().message(), HasSubstr("changed.dsp: "));
    }
    copy[i] ^= std::byte(0x10);
  }
  for (size_t length : {size_t(0), size_t(10), size_t(64), size_t(500), weights, good.size() - 1})
    EXPECT_FALSE(PlanFile::fromBytes({copy, length}, "short.dsp").isOk()) << length;
  free(copy);
}

TEST(PlanFile, OtherVersion) {
  TemporaryFolder folder;
  writeSmallPlan(folder.file("p.dsp"));
  std::vector<char> bytes = readFile(folder.file("p.dsp"));
  bytes[8] = 9; // major
  writeFile(folder.file("p.dsp"), bytes);
  auto plan = PlanFile::open(folder.file("p.dsp"));
  EXPECT_EQ(plan.status().code(), Code::Version);
  EXPECT_THAT(plan.status().message(), HasSubstr("format version 9." + std::to_string(kPlanMinor)));
  EXPECT_THAT(plan.status().message(),
              HasSubstr("expected " + std::to_string(kPlanMajor) + "." + std::to_string(kPlanMinor)));
  EXPECT_EQ(PlanFile::open(folder.file("none.dsp")).status().code(), Code::NotFound);
  EXPECT_EQ(PlanFile::open(folder.path).status().code(), Code::IoError);
}

struct BadPlan {
  const char *message;
  void (*change)(PlanBuilder &);
};
void PrintTo(const BadPlan &bad, std::ostream *out) { *out << bad.message; }

class PlanCheck : public testing::TestWithParam<BadPlan> {};

TEST_P(PlanCheck, Refused) {
  TemporaryFolder folder;
  writeSmallPlan(folder.file("p.dsp"), GetParam().change);
  auto plan = PlanFile::open(folder.file("p.dsp"));
  ASSERT_FALSE(plan.isOk());
  EXPECT_EQ(plan.status().code(), Code::CorruptFile);
  EXPECT_THAT(plan.status().message(), HasSubstr("section PLAN: "));
  EXPECT_THAT(plan.status().message(), HasSubstr(GetParam().message));
}

fb::StepT &firstStep(PlanBuilder &b) { return *b.plan.body->steps[0]; }

INSTANTIATE_TEST_SUITE_P(
    Rules, PlanCheck,
    testing::Values(
        BadPlan{"operand 0 is value 77, expected one below",
                [](PlanBuilder &b) { firstStep(b).inputs[0] = 77; }},
        BadPlan{"operand 0 is value 2, which is not defined there",
                [](PlanBuilder &b) { firstStep(b).inputs[0] = 2; }},
        BadPlan{"has more elements than any file holds",
                [](PlanBuilder &b) {
                  // Without elements, and too large for those who multiply some of its dims.
                  int64_t huge = int64_t(1) << 40;
                  b.constant<float>(DType::F32, {0, huge, huge}, {});
                }},
        BadPlan{"num_carried -9223372036854775807",
                [](PlanBuilder &b) {
                  fb::StepT &loop = b.step(fb::StepKind::Loop, "loop", {0, -1}, {b.temp()});
                  b.attr(loop, "num_carried", std::vector<int64_t>{INT64_MIN + 1});
                  b.enter(loop);
                  b.leave({});
                }},
        BadPlan{"which is already defined",
                [](PlanBuilder &b) { b.step(fb::StepKind::Kernel, "unary", {0}, {2}); }},
        BadPlan{"of kind Constant, expected Temp",
                [](PlanBuilder &b) { b.step(fb::StepKind::Kernel, "unary", {0}, {1}); }},
        BadPlan{"expected an earlier one",
                [](PlanBuilder &b) {
                  int next = int(b.plan.dim_exprs.size());
                  b.expression(DimOp::Add, 0, next, next);
                }},
        BadPlan{"is symbol 5, expected one below 1", [](PlanBuilder &b) { b.expression(DimOp::Symbol, 5); }},
        BadPlan{"expected to end within 12", [](PlanBuilder &b) { b.plan.values[1]->blob->offset = 64; }},
        BadPlan{"has 8 bytes, expected 12", [](PlanBuilder &b) { b.plan.values[1]->blob->length = 8; }},
        BadPlan{"has 8192 bytes, expected 12",
                [](PlanBuilder &b) { b.plan.values[1]->blob->expanded = 8192; }},
        BadPlan{"is stored as runs, expected strings",
                [](PlanBuilder &b) {
                  b.plan.values[1]->dtype = uint8_t(DType::String);
                  b.plan.values[1]->blob->expanded = 12;
                }},
        BadPlan{"lies in file 3, expected one below 0",
                [](PlanBuilder &b) { b.plan.values[1]->blob->file = 3; }},
        BadPlan{"element type 99", [](PlanBuilder &b) { b.plan.values[0]->dtype = 99; }},
        BadPlan{"has location 99", [](PlanBuilder &b) { firstStep(b).location = 99; }},
        BadPlan{"in place of operand 5", [](PlanBuilder &b) { firstStep(b).in_place = 5; }},
        BadPlan{"has 2 entries, expected one as it is no list",
                [](PlanBuilder &b) { PlanBuilder::attr(firstStep(b), "axis", std::vector<int64_t>{1, 2}); }},
        BadPlan{"has attribute 'kind' twice",
                [](PlanBuilder &b) { PlanBuilder::attr(firstStep(b), "kind", "mul"); }},
        BadPlan{"names no operator", [](PlanBuilder &b) { firstStep(b).op.clear(); }},
        BadPlan{"has 0 blocks, expected 2", [](PlanBuilder &b) { firstStep(b).kind = fb::StepKind::If; }},
        BadPlan{"expected a path inside the plan's folder",
                [](PlanBuilder &b) { b.plan.files.push_back("../secret"); }},
        BadPlan{"has the name 'cpu', expected a name of its own", [](PlanBuilder &b) { b.device("cpu"); }},
        BadPlan{"1 steps, 1 variants and choice 2", [](PlanBuilder &b) { b.region({0}, {0}, 2); }},
        BadPlan{"has step 1, expected Kernel steps", [](PlanBuilder &b) { b.region({1}, {0}, 0); }},
        BadPlan{"region 1 has step 0",
                [](PlanBuilder &b) {
                  b.region({0}, {0}, 0);
                  b.region({0}, {0}, 0);
                }},
        BadPlan{"is on device 1, expected a device of its own below 1",
                [](PlanBuilder &b) { b.region({0}, {0, 1}, 0); }},
        BadPlan{"has 2 choices, expected none or one of its variants for each of 0 sizes",
                [](PlanBuilder &b) { b.region({0}, {0}, 0).choices = {0, 0}; }},
        BadPlan{"sizes 0 are not one size of 0 or more for each of 1 symbols",
                [](PlanBuilder &b) {
                  b.plan.sizes.push_back(std::make_unique<fb::SizesT>());
                  b.plan.sizes[0]->symbols = {99};
                  b.plan.sizes[0]->sizes = {1};
                }},
        BadPlan{"has no variant on the CPU", [](PlanBuilder &b) { b.region({0}, {b.device("npu")}, 0); }},
        BadPlan{"input 0 has the name ''", [](PlanBuilder &b) { b.plan.values[0]->name.clear(); }},
        BadPlan{"nested deeper than 64", [](PlanBuilder &b) {
                  int condition = b.constant<uint8_t>(DType::Bool, {}, {1});
                  for (int i = 0; i < 65; ++i) {
                    fb::StepT &step = b.step(fb::StepKind::If, "if", {condition}, {});
                    b.enter(step);
                    b.leave({});
                    b.enter(step);
                  }
                }}));

// A list of 8-byte numbers four bytes from where it may lie, which FlatBuffers' verifier lets pass.
TEST(PlanFile, MisalignedListsAreRefused) {
  TemporaryFolder folder;
  PlanBuilder b(folder.file("p.dsp"));
  int x = b.input("x", DType::F32, {b.number(3)}), y = b.temp();
  b.attr(b.step(fb::StepKind::Kernel, "reverse", {x}, {y}), "axes", {0}, true);
  b.output(y, "y");
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &b.plan));
  std::vector<uint64_t> words(builder.GetSize() / 8 + 4); // aligned as a plan's section is, with room behind
  auto *bytes = reinterpret_cast<uint8_t *>(words.data());
  std::copy_n(builder.GetBufferPointer(), builder.GetSize(), bytes);
  const fb::Plan &plan = *fb::GetPlan(bytes);
  EXPECT_TRUE(checkPlan(plan, {}, {}).isOk());

  const fb::Attr &attr = *plan.body()->steps()->Get(0)->attrs()->Get(0);
  auto *field = reinterpret_cast<uint8_t *>(&const_cast<fb::Attr &>(attr)) +
                reinterpret_cast<const flatbuffers::Table &>(attr).GetOptionalFieldOffset(fb::Attr::VT_INTS);
  uint8_t *list = bytes + (builder.GetSize() + 7) / 8 * 8; // its length, then the entry
  flatbuffers::WriteScalar<uint32_t>(list, 1);
  flatbuffers::WriteScalar<uint32_t>(field, uint32_t(list - field));
  ASSERT_EQ(attr.ints()->size(), 1u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(attr.ints()->Data()) % 8, 4u);
  flatbuffers::Verifier verifier(bytes, words.size() * 8);
  EXPECT_TRUE(verifier.VerifyBuffer<fb::Plan>(nullptr));
  EXPECT_THAT(checkPlan(plan, {}, {}).message(), HasSubstr("attribute 'axes' is not aligned"));
}

TEST(PlanFile, ValuesOfABranchEndWithIt) {
  TemporaryFolder folder;
  writeSmallPlan(folder.file("p.dsp"), [](PlanBuilder &b) {
    int condition = b.constant<uint8_t>(DType::Bool, {}, {1});
    fb::StepT &step = b.step(fb::StepKind::If, "if", {condition}, {});
    b.enter(step);
    int inner = b.kernel("unary", {0}, "neg");
    b.leave({});
    b.enter(step);
    b.leave({});
    b.output(inner, "z");
  });
  EXPECT_THAT(PlanFile::open(folder.file("p.dsp")).status().message(), HasSubstr("not defined there"));
}

TEST(PlanFile, WeightsByReference) {
  TemporaryFolder folder;
  writeFile(folder.file("w.bin"), std::vector<char>(12, 1));
  auto change = [](PlanBuilder &b) {
    b.plan.files.push_back("w.bin");
    b.plan.file_bytes.push_back(12);
    std::vector<std::byte> bytes(12, std::byte(1));
    b.plan.file_hashes.push_back(hashBytes(bytes));
    b.plan.values[1]->blob->file = 0;
  };
  writeSmallPlan(folder.file("p.dsp"), change);
  auto plan = PlanFile::open(folder.file("p.dsp"));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ((*plan)->blob(*(*plan)->plan().values()->Get(1)->blob())[0], std::byte(1));
  EXPECT_TRUE((*plan)->verifyWeights().isOk());
  writeFile(folder.file("w.bin"), std::vector<char>(12, 2));
  EXPECT_THAT((*PlanFile::open(folder.file("p.dsp")))->verifyWeights().message(), HasSubstr("'w.bin'"));
  writeFile(folder.file("w.bin"), std::vector<char>(13, 1));
  EXPECT_THAT(PlanFile::open(folder.file("p.dsp")).status().message(), HasSubstr("13 bytes, expected 12"));
}

TEST(PlanFile, ManySectionsMoveBehindTheWeights) {
  TemporaryFolder folder;
  writeSmallPlan(folder.file("p.dsp"), [](PlanBuilder &b) {
    b.writer->addCode(2, std::vector<std::byte>(3 << 20, std::byte(1)));
    b.writer->setIr("module {}");
  });
  auto plan = PlanFile::open(folder.file("p.dsp"));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ((*plan)->ir(), "module {}");
  EXPECT_EQ((*plan)->sections().size(), 6u);
}

long pageFaults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// Reading 256 MiB of them would take 4096 faults even where the kernel maps 16 pages at each.
TEST(PlanFile, OpeningDoesNotTouchTheWeights) {
  TemporaryFolder folder;
  std::string path = folder.file("big.dsp");
  {
    PlanBuilder b(path);
    int x = b.input("x", DType::F32, {b.number(3)});
    std::vector<std::byte> chunk(64 << 20);
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(b.writer->addWeight(chunk).isOk());
    b.output(b.kernel("unary", {x}, "neg"), "y");
    b.finish();
  }
  long before = pageFaults();
  auto plan = PlanFile::open(path);
  long faults = pageFaults() - before;
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_LT(faults, 256);
}

} // namespace
} // namespace dspark

// Files that are opened, and files that are refused.
#include "frontends/onnx/ModelReader.h"
#include "frontends/onnx/Skeleton.h"
#include "test/frontends/onnx/ModelBuilder.h"
#include <gmock/gmock.h>
#include <random>

namespace dspark::onnx::test {
namespace {

using ::testing::HasSubstr;

::onnx::ModelProto modelWithWeight(size_t floats) {
  ::onnx::ModelProto model = emptyModel();
  std::vector<float> values(floats);
  for (size_t i = 0; i < floats; ++i)
    values[i] = float(i);
  *model.mutable_graph()->add_initializer() = tensor("w", kF32, {int64_t(floats)}, rawBytes(values));
  return model;
}

StatusOr<std::string> skeletonOf(const ::onnx::ModelProto &model) {
  std::string bytes = model.SerializeAsString();
  return makeSkeleton(std::as_bytes(std::span(bytes)));
}

std::string errorOf(const std::string &bytes) {
  TempFolder folder;
  auto model = readModel(folder.write("m.onnx", bytes));
  return model.isOk() ? "" : model.status().message();
}

TEST(ModelReader, LargeTensorsStayInTheFile) {
  TempFolder folder;
  auto model = readModel(folder.write("m.onnx", modelWithWeight(1000).SerializeAsString()));
  ASSERT_TRUE(model.isOk()) << model.status().message();
  const auto &proto = model->proto.graph().initializer(0);
  EXPECT_FALSE(proto.has_raw_data());
  auto weight = model->tensors->read(proto);
  ASSERT_TRUE(weight.isOk()) << weight.status().message();
  EXPECT_EQ(weight->file, model->file);
  EXPECT_TRUE(weight->owned.empty());
  auto *values = reinterpret_cast<const float *>(bytesOf(*weight).data());
  EXPECT_EQ(values[999], 999.0f);
}

TEST(ModelReader, SmallTensorsAreParsed) {
  TempFolder folder;
  auto model = readModel(folder.write("m.onnx", modelWithWeight(4).SerializeAsString()));
  ASSERT_TRUE(model.isOk()) << model.status().message();
  EXPECT_EQ(model->proto.graph().initializer(0).raw_data().size(), 16u);
}

TEST(ModelReader, PackedFloatDataStaysInTheFile) {
  ::onnx::ModelProto model = emptyModel();
  auto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(kF32);
  tensor->add_dims(500);
  for (int i = 0; i < 500; ++i)
    tensor->add_float_data(float(i));
  TempFolder folder;
  auto read = readModel(folder.write("m.onnx", model.SerializeAsString()));
  ASSERT_TRUE(read.isOk());
  auto weight = read->tensors->read(read->proto.graph().initializer(0));
  ASSERT_TRUE(weight.isOk()) << weight.status().message();
  EXPECT_TRUE(weight->file);
  EXPECT_EQ(reinterpret_cast<const float *>(bytesOf(*weight).data())[499], 499.0f);
}

TEST(ModelReader, TensorsInsideSubgraphsStayInTheFile) {
  ::onnx::ModelProto model = emptyModel();
  auto &inner = setGraph(addNode(*model.mutable_graph(), "If", {"c"}, {"y"}), "then_branch");
  auto &constant = addNode(inner, "Constant", {}, {"k"});
  *addAttribute(constant, "value", ::onnx::AttributeProto::TENSOR).mutable_t() =
      tensor("", kF32, {512}, std::string(2048, 'x'));
  auto skeleton = skeletonOf(model);
  ASSERT_TRUE(skeleton.isOk());
  EXPECT_LT(skeleton->size(), 200u);
}

TEST(ModelReader, DocStringsAndMetadataAreDropped) {
  ::onnx::ModelProto model = emptyModel();
  addNode(*model.mutable_graph(), "Relu", {"x"}, {"y"}).set_doc_string(std::string(1 << 20, 'd'));
  auto skeleton = skeletonOf(model);
  ASSERT_TRUE(skeleton.isOk());
  EXPECT_LT(skeleton->size(), 100u);
}

TEST(ModelReader, FilesThatAreNoModels) {
  EXPECT_THAT(errorOf(""), HasSubstr("empty"));
  EXPECT_THAT(errorOf("GGUF and then some text"), HasSubstr("not an ONNX file"));
  EXPECT_THAT(errorOf(std::string(4096, '\0')), HasSubstr("bad field tag"));
  ::onnx::ModelProto noGraph = emptyModel();
  noGraph.clear_graph();
  EXPECT_THAT(errorOf(noGraph.SerializeAsString()), HasSubstr("no graph"));
  TempFolder folder;
  EXPECT_FALSE(readModel(folder / "missing.onnx").isOk());
  EXPECT_FALSE(readModel(folder.path.string()).isOk());
}

TEST(ModelReader, EveryTruncationIsRefusedOrHarmless) {
  std::string whole = modelWithWeight(300).SerializeAsString();
  TempFolder folder;
  for (size_t length = 0; length < whole.size(); length += 7) {
    auto model = readModel(folder.write("m.onnx", whole.substr(0, length)));
    if (model.isOk()) // cut between two fields of the model itself
      EXPECT_TRUE(model->proto.graph().initializer().empty() || length > 1200);
  }
}

TEST(ModelReader, RandomBytesNeverCrash) {
  std::mt19937 random(1);
  std::string whole = modelWithWeight(300).SerializeAsString();
  TempFolder folder;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    for (int k = 0; k < 8; ++k)
      bytes[random() % (k % 2 ? bytes.size() : 64)] = char(random());
    auto model = readModel(folder.write("m.onnx", bytes));
    if (model.isOk())
      for (const auto &tensor : model->proto.graph().initializer())
        (void)model->tensors->read(tensor).isOk();
  }
}

TEST(ModelReader, NestingIsLimited) {
  // graph { node { attribute { g { node ...
  std::string inner;
  for (int level = 0; level < 100; ++level)
    for (uint8_t tag : {0x32, 0x2a, 0x0a}) {
      std::string length;
      for (size_t size = inner.size();; size >>= 7) {
        length += char((size & 127) | (size > 127 ? 128 : 0));
        if (size <= 127)
          break;
      }
      inner = char(tag) + length + inner;
    }
  ::onnx::ModelProto model = emptyModel();
  std::string bytes = model.SerializeAsString();
  std::string length{char((inner.size() & 127) | 128), char(inner.size() >> 7)};
  EXPECT_THAT(errorOf(bytes + '\x3a' + length + inner), HasSubstr("nested"));
}

TEST(ModelReader, VersionsAreChecked) {
  ::onnx::ModelProto model = emptyModel();
  model.set_ir_version(kNewestIr + 1);
  EXPECT_THAT(errorOf(model.SerializeAsString()), HasSubstr("IR version 15"));
  EXPECT_THAT(errorOf(emptyModel(kNewestOpset + 1).SerializeAsString()), HasSubstr("opset 29"));
  model = emptyModel();
  model.clear_opset_import();
  EXPECT_THAT(errorOf(model.SerializeAsString()), HasSubstr("opset_import"));
  model = emptyModel(13);
  *model.add_opset_import() = model.opset_import(0);
  EXPECT_EQ(errorOf(model.SerializeAsString()), "");
  model.mutable_opset_import(1)->set_version(14);
  model.mutable_opset_import(1)->set_domain("ai.onnx"); // the same domain by its other name
  EXPECT_THAT(errorOf(model.SerializeAsString()), HasSubstr("disagree"));
}

TEST(ModelReader, PayloadFieldsInTheFileAreIgnored) {
  ::onnx::ModelProto model = modelWithWeight(4);
  // Field 536870911, bytes: would point anywhere in the file if it survived.
  std::string forged = std::string("\xfa\xff\xff\xff\x0f\x03\x09\x00\x10", 9);
  model.mutable_graph()->mutable_initializer(0)->mutable_unknown_fields()->append(forged);
  TempFolder folder;
  auto read = readModel(folder.write("m.onnx", model.SerializeAsString()));
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_FALSE(payloadOf(read->proto.graph().initializer(0)));
}

} // namespace
} // namespace dspark::onnx::test

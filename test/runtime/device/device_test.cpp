#include "runtime/device/Device.h"
#include "test/runtime/TemporaryFolder.h"
#include <dlfcn.h>
#include <fstream>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

using testing::HasSubstr;

// A stub with that configuration.
class DeviceTest : public testing::Test {
protected:
  DeviceSpec spec(const std::string &json, const std::string &library = STUB) {
    std::string path = folder.file("config" + std::to_string(++files) + ".json");
    std::ofstream(path) << json;
    return {"npu", library, path};
  }
  std::string refusal(const DeviceSpec &spec, double deadline = kDeviceDeadline) {
    auto device = Device::open(spec, deadline);
    return device.isOk() ? "" : device.status().message();
  }
  TemporaryFolder folder;
  int files = 0;
};

TEST_F(DeviceTest, SpecNamesLibraryAndConfig) {
  auto spec = DeviceSpec::parse("npu=a/lib.so,b,c.json");
  ASSERT_TRUE(spec.isOk());
  EXPECT_EQ(spec->name, "npu");
  EXPECT_EQ(spec->library, "a/lib.so");
  EXPECT_EQ(spec->config, "b,c.json");
  for (const char *bad : {"", "npu", "=lib.so", "npu=", "cpu=lib.so"})
    EXPECT_FALSE(DeviceSpec::parse(bad).isOk()) << bad;
}

TEST_F(DeviceTest, MissingFilesAreNamed) {
  EXPECT_THAT(refusal({"npu", folder.file("none.so"), ""}), HasSubstr("none.so: no such file"));
  EXPECT_THAT(refusal({"npu", STUB, folder.file("none.json")}), HasSubstr("none.json: no such file"));
}

TEST_F(DeviceTest, OtherLibrariesAreRefused) {
  std::ofstream(folder.file("text.so")) << "no library";
  EXPECT_THAT(refusal({"npu", folder.file("text.so"), ""}), HasSubstr("cannot be loaded"));
  EXPECT_THAT(refusal({"npu", NATIVE_1, ""}), HasSubstr("it has no function dspark_device_query"));
  auto other = Device::open({"npu", OLD_DEVICE, ""});
  ASSERT_FALSE(other.isOk());
  EXPECT_EQ(other.status().code(), Code::Version);
  EXPECT_THAT(other.status().message(), HasSubstr("version 0 of the device interface"));
}

TEST_F(DeviceTest, WhatGoesWrongWhenLoadedIsASentence) {
  EXPECT_THAT(refusal(spec(R"({"on_open": "crash"})")), HasSubstr("crashed when it was loaded (Aborted)"));
  EXPECT_THAT(refusal(spec(R"({"on_open": "hang"})"), 0.2), HasSubstr("did not answer within"));
  EXPECT_THAT(refusal(spec(R"({"on_open": "fail"})")), HasSubstr("there is no such device"));
  EXPECT_THAT(refusal(spec(R"({"memory_bytes": 0, "claimed_memory_bytes": 4096})")),
              HasSubstr("claims 4096 bytes of memory left and refuses 4096"));
  EXPECT_THAT(refusal(spec(R"({"claimed_memory_bytes": 9000000000000000000})")),
              HasSubstr("expected 1 to 2^50"));
}

TEST_F(DeviceTest, BadConfigurationsAreNamed) {
  EXPECT_THAT(refusal(spec("{")), HasSubstr("is no JSON file"));
  EXPECT_THAT(refusal(spec("[1]")), HasSubstr("is no object"));
  EXPECT_THAT(refusal(spec(R"({"memory_bytes": "much"})")), HasSubstr("memory_bytes is \"much\""));
  EXPECT_THAT(refusal(spec(R"({"ops": [{"gflop": 1}]})")), HasSubstr("ops[0].gflop is no key"));
  EXPECT_THAT(refusal(spec(R"({"faults": [{"kind": "worse"}]})")), HasSubstr("faults[0].kind"));
}

// y = x + x on the device.
struct Sum {
  std::vector<int64_t> dims{4};
  std::vector<TensorView> views;
  std::vector<Attr> attrs{{"kind", {}, {}, "add"}};
  KernelCall call;
  KernelWork work;
  Sum() {
    for (int i = 0; i < 3; ++i)
      views.push_back({nullptr, dims.data(), 1, DType::F32});
    call.in = std::span<const TensorView>(views).first(2);
    call.out = std::span<const TensorView>(views).subspan(2);
    call.attrs = Attrs(attrs);
    work.flops = 4;
    work.bytes = 48;
  }
};

constexpr const char *kAdder = R"({"link_latency_us": 2, "link_in_gbytes_per_s": 1, "memory_bytes": 4194304,
  "ops": [{"op": "binary", "types": ["f32"], "gbytes_per_s": 1, "launch_us": 3}]FAULTS})";

std::string adder(const std::string &faults) {
  std::string text = kAdder;
  return text.replace(text.find("FAULTS"), 6, faults.empty() ? "" : ", \"faults\": " + faults);
}

TEST_F(DeviceTest, ComputesAndTellsItsTime) {
  auto opened = Device::open(spec(adder("")));
  ASSERT_TRUE(opened.isOk()) << opened.status().message();
  std::shared_ptr<Device> device = *opened;
  auto memory = device->allocate(256);
  ASSERT_TRUE(memory.isOk());
  Sum sum;
  DeviceStep step("binary", sum.call, sum.work, 0);
  auto estimate = device->estimate(step);
  ASSERT_TRUE(estimate.isOk());
  EXPECT_DOUBLE_EQ(*estimate, 3e-6 + 48e-9);
  for (dspark_device_tensor &input : step.inputs)
    input.memory = (*memory)->handle();
  step.outputs[0].memory = (*memory)->handle();
  step.outputs[0].offset = 64;
  auto ready = device->prepare(step);
  ASSERT_TRUE(ready.isOk()) << ready.status().message();
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  auto in = device->copyIn(**memory, 0, x.data(), 16);
  auto launched = device->launch(**ready);
  auto out = device->copyOut(**memory, 64, y.data(), 16);
  ASSERT_TRUE(in.isOk() && launched.isOk() && out.isOk());
  ASSERT_TRUE(device->wait(*out).isOk());
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6, 8}));
  EXPECT_DOUBLE_EQ(*device->wait(*in), 2e-6 + 16e-9);
  EXPECT_DOUBLE_EQ(*device->wait(*launched), 3e-6 + 48e-9);
}

TEST_F(DeviceTest, UnsupportedStepsHaveAReason) {
  auto device = Device::open(spec(adder("")));
  ASSERT_TRUE(device.isOk());
  Sum sum;
  auto other = (*device)->estimate(DeviceStep("unary", sum.call, sum.work, 0));
  ASSERT_FALSE(other.isOk());
  EXPECT_EQ(other.status().message(), "no row for unary of these types");
  for (TensorView &view : sum.views)
    view.type = DType::F64;
  EXPECT_FALSE((*device)->estimate(DeviceStep("binary", sum.call, sum.work, 0)).isOk());
}

TEST_F(DeviceTest, IsNeverAskedForMoreThanItHas) {
  auto device = Device::open(spec(adder("")));
  ASSERT_TRUE(device.isOk());
  auto most = (*device)->allocate(3 << 20);
  ASSERT_TRUE(most.isOk());
  auto more = (*device)->allocate((1 << 20) + 1);
  ASSERT_FALSE(more.isOk());
  EXPECT_EQ(more.status().code(), Code::OutOfMemory);
  EXPECT_THAT(more.status().message(), HasSubstr("1048577 bytes are needed, and 1048576 are left"));
}

// devices/stub/control.h
TEST_F(DeviceTest, TheStubDoesWhatABenchmarkTellsIt) {
  auto device = Device::open(spec(R"({"memory_bytes": 8192})"));
  ASSERT_TRUE(device.isOk()) << device.status().message();
  void *library = dlopen(STUB, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  auto setFaults = reinterpret_cast<int (*)(const char *)>(dlsym(library, "dspark_stub_set_faults"));
  ASSERT_NE(setFaults, nullptr);
  EXPECT_EQ(setFaults(R"([{"kind": "memory", "bytes": 4096}])"), 0);
  EXPECT_EQ((*device)->facts()->memory, 4096u);
  EXPECT_EQ(setFaults(R"([{"kind": "worse"}])"), -1);
  EXPECT_EQ((*device)->facts()->memory, 4096u) << "as before";
  EXPECT_EQ(setFaults("[]"), 0);
  EXPECT_EQ((*device)->facts()->memory, 8192u);
  dlclose(library);
}

// After a fault or a hang nothing runs until stop(), and then everything does.
TEST_F(DeviceTest, StopsAfterFaultsAndHangs) {
  for (auto [kind, code] : {std::pair("fault", Code::IoError), std::pair("hang", Code::Busy)}) {
    auto opened = Device::open(
        spec(adder("[{\"kind\": \"" + std::string(kind) + "\", \"from\": 1, \"until\": 2}]")), 2);
    ASSERT_TRUE(opened.isOk()) << opened.status().message();
    std::shared_ptr<Device> device = *opened;
    auto memory = device->allocate(256);
    Sum sum;
    DeviceStep step("binary", sum.call, sum.work, 0);
    step.inputs[0].memory = step.inputs[1].memory = step.outputs[0].memory = (*memory)->handle();
    auto ready = device->prepare(step);
    ASSERT_TRUE(ready.isOk());
    EXPECT_TRUE(device->wait(*device->launch(**ready)).isOk());
    EXPECT_EQ(device->wait(*device->launch(**ready)).status().code(), code) << kind;
    device->stop();
    EXPECT_TRUE(device->wait(*device->launch(**ready)).isOk()) << kind;
  }
}

} // namespace
} // namespace dspark::test

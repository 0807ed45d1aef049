#include "runtime/device/DeviceLibrary.h"
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace dspark {

StatusOr<DeviceSpec> DeviceSpec::parse(const std::string &text) {
  size_t equals = text.find('='), comma = text.find(',', equals);
  DeviceSpec spec;
  if (equals != text.npos) {
    spec.name = text.substr(0, equals);
    spec.library = text.substr(equals + 1, comma == text.npos ? text.npos : comma - equals - 1);
    spec.config = comma == text.npos ? "" : text.substr(comma + 1);
  }
  if (spec.name.empty() || spec.library.empty() || spec.name == "cpu")
    return invalidArgument("--device expects NAME=LIBRARY.so[,CONFIG] with a name other than cpu, found '" +
                           text + "'");
  return spec;
}

std::string problemOf(const dspark_device_facts &facts) {
  constexpr uint64_t kMost = uint64_t(1) << 50;
  auto isRate = [](double value) { return value > 0 && value < 1e15; };
  if (facts.memory == 0 || facts.memory > kMost || facts.memory_left > facts.memory)
    return "it claims " + std::to_string(facts.memory) + " bytes of memory with " +
           std::to_string(facts.memory_left) + " left, expected 1 to 2^50 and no more left than there is";
  if (!(facts.copy_latency >= 0 && facts.copy_latency < 10) || !isRate(facts.copy_in_second) ||
      !isRate(facts.copy_out_second))
    return "it claims copies that take " + std::to_string(facts.copy_latency) + " s plus bytes at " +
           std::to_string(facts.copy_in_second) + " and " + std::to_string(facts.copy_out_second) +
           " per second, expected positive numbers";
  return "";
}

namespace {

constexpr uint64_t kProbeBytes = 1 << 20;

// Closes what was opened.
struct Opened {
  const dspark_device_api &api;
  dspark_device *device = nullptr;
  dspark_device_memory memory = 0;
  ~Opened() {
    if (memory)
      api.release(device, memory);
    if (device)
      api.close(device);
  }
};

// Opens the device, and copies bytes there and back. What is wrong with it, or "".
std::string exercise(const dspark_device_api &api, const std::string &config, double deadline) {
  Opened opened{api};
  char message[512] = "";
  if (api.open(config.c_str(), &opened.device, message, sizeof message) != DSPARK_DEVICE_OK || !opened.device)
    return "cannot be opened: " + std::string(message, strnlen(message, sizeof message));
  dspark_device_facts facts{};
  if (api.facts(opened.device, &facts) != DSPARK_DEVICE_OK)
    return "does not tell its facts";
  if (std::string problem = problemOf(facts); !problem.empty())
    return problem;
  uint64_t bytes = std::min(kProbeBytes, facts.memory_left);
  if (bytes == 0)
    return "";
  if (api.allocate(opened.device, bytes, &opened.memory) != DSPARK_DEVICE_OK)
    return "it claims " + std::to_string(facts.memory_left) + " bytes of memory left and refuses " +
           std::to_string(bytes);
  std::vector<unsigned char> sent(bytes), received(bytes);
  for (size_t i = 0; i < bytes; ++i)
    sent[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  dspark_device_ticket ticket = 0;
  if (api.copy_in(opened.device, opened.memory, 0, sent.data(), bytes, &ticket) != DSPARK_DEVICE_OK ||
      api.copy_out(opened.device, opened.memory, 0, received.data(), bytes, &ticket) != DSPARK_DEVICE_OK ||
      api.wait(opened.device, ticket, deadline, nullptr) != DSPARK_DEVICE_OK)
    return "cannot copy " + std::to_string(bytes) + " bytes to its memory and back";
  return sent == received ? "" : "other bytes come back from its memory than were copied there";
}

} // namespace

StatusOr<std::shared_ptr<const DeviceLibrary>> DeviceLibrary::loadHere(const DeviceSpec &spec) {
  void *handle = dlopen(spec.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Status(Code::Unsupported, std::string("cannot be loaded: ") + dlerror());
  auto query = reinterpret_cast<dspark_device_query_function>(dlsym(handle, "dspark_device_query"));
  const dspark_device_api *table = query ? query(DSPARK_DEVICE_ABI) : nullptr;
  std::shared_ptr<const DeviceLibrary> library(new DeviceLibrary(handle, table));
  if (!query)
    return Status(Code::Unsupported, "is no device plug-in: it has no function dspark_device_query");
  if (!table || table->abi != DSPARK_DEVICE_ABI || table->struct_size < sizeof *table)
    return Status(Code::Version,
                  (table ? "has version " + std::to_string(table->abi) + " of the device interface with " +
                               std::to_string(table->struct_size) + " bytes"
                         : std::string("has another version of the device interface")) +
                      ", expected version " + std::to_string(DSPARK_DEVICE_ABI) + " with " +
                      std::to_string(sizeof *table));
  return library;
}

// The child writes its findings to a pipe and leaves without running anybody's destructors.
std::string DeviceLibrary::tryOut(const DeviceSpec &spec, double deadline) {
  int pipes[2];
  if (pipe(pipes) != 0)
    return std::string("cannot be tried out: ") + std::strerror(errno);
  pid_t child = fork();
  if (child < 0) {
    close(pipes[0]);
    close(pipes[1]);
    return std::string("cannot be tried out: ") + std::strerror(errno);
  }
  if (child == 0) {
    close(pipes[0]);
    auto library = loadHere(spec);
    std::string problem =
        library.isOk() ? exercise((*library)->api(), spec.config, deadline) : library.status().message();
    bool isWritten = write(pipes[1], problem.data(), problem.size()) == ssize_t(problem.size());
    _exit(isWritten ? 0 : 1);
  }
  close(pipes[1]);
  std::string problem;
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline);
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{pipes[0], POLLIN, 0};
    int found = poll(&ready, 1, int(std::max<int64_t>(0, left.count())));
    if (found < 0 && errno == EINTR)
      continue;
    char text[512];
    ssize_t count = found > 0 ? read(pipes[0], text, sizeof text) : -1;
    if (count <= 0) {
      if (count < 0)
        kill(child, SIGKILL);
      break;
    }
    problem.append(text, size_t(count));
  }
  close(pipes[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return "did not answer within " + std::to_string(int(deadline)) + " s when it was loaded";
  if (WIFSIGNALED(status))
    return std::string("crashed when it was loaded (") + strsignal(WTERMSIG(status)) + ")";
  return WEXITSTATUS(status) == 0 ? problem : "ended the process when it was loaded";
}

StatusOr<std::shared_ptr<const DeviceLibrary>> DeviceLibrary::load(const DeviceSpec &spec, double deadline) {
  std::string who = "device '" + spec.name + "': " + spec.library;
  std::error_code ignored;
  for (const std::string &path : {spec.library, spec.config})
    if (!path.empty() && !std::filesystem::exists(path, ignored))
      return Status(Code::NotFound, "device '" + spec.name + "': " + path + ": no such file");
  if (std::string problem = tryOut(spec, deadline); !problem.empty())
    return Status(problem.starts_with("has ") ? Code::Version : Code::Unsupported, who + ": " + problem);
  auto library = loadHere(spec);
  return library.isOk() ? std::move(library) : library.status().in(who);
}

DeviceLibrary::~DeviceLibrary() { dlclose(handle); }

} // namespace dspark

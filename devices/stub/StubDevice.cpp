#include "devices/stub/StubDevice.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <sys/prctl.h>

namespace dspark {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kRemembered = 65536; // tickets whose seconds are known (dspark/device.h)

std::string_view packedForm(const dspark_device_step &step) {
  for (size_t i = 0; i < step.attribute_count; ++i)
    if (const dspark_device_attribute &attribute = step.attributes[i];
        attribute.name == std::string_view("packed") && attribute.text_length > 0)
      return {attribute.text, attribute.text_length};
  return "";
}

bool supports(const StubRow &row, const dspark_device_step &step) {
  if (row.op != "*" && row.op != step.op)
    return false;
  if (!row.packed.empty() &&
      std::find(row.packed.begin(), row.packed.end(), packedForm(step)) == row.packed.end())
    return false;
  auto isListed = [&](const dspark_device_tensor &tensor) {
    return tensor.dtype == DSPARK_NONE || row.types.empty() ||
           std::find(row.types.begin(), row.types.end(), dtypeName(DType(tensor.dtype))) != row.types.end();
  };
  return std::all_of(step.inputs, step.inputs + step.input_count, isListed) &&
         std::all_of(step.outputs, step.outputs + step.output_count, isListed);
}

void runKernel(dspark_device_call &call) {
  for (int phase = 0; phase < call.work.phases; ++phase)
    call.kernel->run(call.call, call.work,
                     {0, call.work.tiles[phase], phase, 0, call.scratch.data(), call.shared.data()});
}

} // namespace

StubDevice::~StubDevice() {
  stop();
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (worker.joinable())
    worker.join();
}

// --- what it says of itself ---

const StubFault *StubDevice::faultNow(StubFault::Kind kind) const {
  for (const StubFault &fault : config.faults)
    if (fault.kind == kind && fault.isNow(launches))
      return &fault;
  return nullptr;
}

uint64_t StubDevice::memoryNow() const {
  const StubFault *fault = faultNow(StubFault::Kind::Memory);
  return fault ? std::min(fault->bytes, config.memory) : config.memory;
}

dspark_device_facts StubDevice::facts() {
  std::lock_guard lock(mutex);
  uint64_t memory = config.claimedMemory ? config.claimedMemory : std::max<uint64_t>(1, memoryNow());
  return {memory, memory - std::min(memory, allocated), config.linkLatency, config.inPerSecond,
          config.outPerSecond};
}

double StubDevice::estimate(const dspark_device_step &step, std::string &reason) const {
  for (const StubRow &row : config.rows)
    if (supports(row, step)) {
      double work = row.flopsPerSecond > 0 ? step.flops / row.flopsPerSecond : 0;
      double moved = row.bytesPerSecond > 0 ? step.bytes / row.bytesPerSecond : 0;
      return row.launch + std::max(work, moved);
    }
  reason = std::string("no row for ") + step.op + " of these types";
  return -1;
}

void StubDevice::setFaults(std::vector<StubFault> faults) {
  std::lock_guard lock(mutex);
  config.faults = std::move(faults);
  launches = 0;
}

double StubDevice::secondsTaken() const {
  std::lock_guard lock(mutex);
  return allSeconds;
}

// --- memory ---

dspark_device_status StubDevice::allocate(uint64_t bytes, dspark_device_memory &memory) {
  std::lock_guard lock(mutex);
  if (bytes > memoryNow() || allocated > memoryNow() - bytes)
    return DSPARK_DEVICE_OUT_OF_MEMORY;
  AlignedBytes block(bytes);
  if (!block.data())
    return DSPARK_DEVICE_OUT_OF_MEMORY;
  allocated += bytes;
  memory = ++lastMemory;
  blocks.emplace(memory, std::move(block));
  return DSPARK_DEVICE_OK;
}

void StubDevice::release(dspark_device_memory memory) {
  auto block = blocks.find(memory);
  if (block == blocks.end())
    return;
  {
    std::lock_guard lock(mutex);
    allocated -= block->second.size();
  }
  blocks.erase(block);
}

std::byte *StubDevice::at(dspark_device_memory memory, uint64_t offset, uint64_t bytes) {
  auto block = blocks.find(memory);
  bool isInside =
      block != blocks.end() && bytes <= block->second.size() && offset <= block->second.size() - bytes;
  return isInside ? block->second.data() + offset : nullptr;
}

// --- steps ---

dspark_device_status StubDevice::prepare(const dspark_device_step &step,
                                         std::unique_ptr<dspark_device_call> &made) {
  std::string reason;
  auto call = std::make_unique<dspark_device_call>();
  call->seconds = estimate(step, reason);
  if (call->seconds < 0)
    return DSPARK_DEVICE_UNSUPPORTED;
  auto addViews = [&](const dspark_device_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const dspark_device_tensor &tensor = tensors[i];
      TensorView &view = call->views.emplace_back();
      if (tensor.dtype == DSPARK_NONE)
        continue;
      call->dims.emplace_back(tensor.dims, tensor.dims + tensor.rank);
      view = {at(tensor.memory, tensor.offset, tensor.bytes), nullptr, tensor.rank, DType(tensor.dtype)};
      if (!view.data && tensor.bytes > 0)
        return false;
    }
    return true;
  };
  if (!addViews(step.inputs, step.input_count) || !addViews(step.outputs, step.output_count))
    return DSPARK_DEVICE_FAULT;
  for (size_t i = 0, next = 0; i < call->views.size(); ++i)
    if (call->views[i].present())
      call->views[i].dims = call->dims[next++].data();
  for (size_t i = 0; i < step.attribute_count; ++i) {
    const dspark_device_attribute &from = step.attributes[i];
    call->texts.emplace_back(from.name);
    Attr &attr = call->attrs.emplace_back();
    attr.name = call->texts.back();
    attr.ints = call->ints.emplace_back(from.ints, from.ints + from.int_count);
    attr.floats = call->floats.emplace_back(from.floats, from.floats + from.float_count);
    attr.str = call->texts.emplace_back(from.text_length > 0 ? from.text : "", from.text_length);
  }
  call->call.in = std::span<const TensorView>(call->views).first(step.input_count);
  call->call.out = std::span<const TensorView>(call->views).subspan(step.input_count);
  call->call.attrs = Attrs(call->attrs);
  call->kernel = selectKernel(step.op, call->call, std::min(config.isa, machineIsa()));
  if (!call->kernel)
    return DSPARK_DEVICE_UNSUPPORTED;
  call->kernel->prepare(call->call, call->work);
  call->scratch = AlignedBytes(call->work.scratchPerThread);
  call->shared = AlignedBytes(call->work.scratchShared);
  if (!call->scratch.data() || !call->shared.data())
    return DSPARK_DEVICE_OUT_OF_MEMORY;
  made = std::move(call);
  return DSPARK_DEVICE_OK;
}

// --- the queue ---

dspark_device_ticket StubDevice::enqueue(Command command) {
  std::lock_guard lock(mutex);
  if (!worker.joinable()) {
    seconds.resize(kRemembered);
    worker = std::thread([this] { work(); });
  }
  queue.push_back(command);
  changed.notify_all();
  return ++given;
}

dspark_device_ticket StubDevice::copy(std::byte *to, const std::byte *from, uint64_t bytes, bool isIn) {
  return enqueue({nullptr, to, from, bytes, isIn});
}

dspark_device_ticket StubDevice::launch(dspark_device_call *call) {
  return enqueue({call, nullptr, nullptr, 0, false});
}

void StubDevice::work() {
  prctl(PR_SET_TIMERSLACK, 1UL); // nanoseconds: else every command that takes time takes 50 us more
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return isEnding || (!queue.empty() && !isStopping); });
    if (isEnding)
      return;
    Command command = queue.front();
    queue.pop_front();
    isBusy = true;
    double taken = 0;
    dspark_device_status status = error;
    if (status == DSPARK_DEVICE_OK && command.call && faultNow(StubFault::Kind::Hang))
      changed.wait(lock, [&] { return isStopping || isEnding; });
    lock.unlock();
    if (status == DSPARK_DEVICE_OK)
      status = run(command, taken);
    lock.lock();
    error = status;
    launches += command.call != nullptr;
    seconds[++done % kRemembered] = taken;
    allSeconds += taken;
    isBusy = false;
    changed.notify_all();
  }
}

// Deterministic: splitmix64 of the seed and how many were drawn.
double StubDevice::noisy(double value) {
  uint64_t z = config.seed + ++random * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  double unit = double((z ^ (z >> 31)) >> 11) * 0x1p-53;
  return value * (1 + config.noise * (2 * unit - 1));
}

dspark_device_status StubDevice::run(const Command &command, double &taken) {
  auto start = Clock::now();
  double slow = 1;
  {
    std::lock_guard lock(mutex);
    if (command.call && faultNow(StubFault::Kind::Fault))
      return DSPARK_DEVICE_FAULT;
    if (command.call && allocated > memoryNow())
      return DSPARK_DEVICE_OUT_OF_MEMORY;
    if (const StubFault *fault = faultNow(command.call ? StubFault::Kind::Slow : StubFault::Kind::SlowLink))
      slow = fault->factor;
  }
  double rate = command.isIn ? config.inPerSecond : config.outPerSecond;
  taken = noisy(slow *
                (command.call ? command.call->seconds : config.linkLatency + double(command.bytes) / rate));
  if (command.call)
    runKernel(*command.call);
  else if (command.bytes > 0)
    std::memcpy(command.to, command.from, command.bytes);
  if (config.takesTime) {
    std::this_thread::sleep_until(start + std::chrono::duration<double>(taken));
    taken = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return DSPARK_DEVICE_OK;
}

dspark_device_status StubDevice::wait(dspark_device_ticket ticket, double deadline, double *taken) {
  std::unique_lock lock(mutex);
  if (ticket > given)
    return DSPARK_DEVICE_FAULT;
  bool isDone = done >= ticket || changed.wait_for(lock, std::chrono::duration<double>(deadline),
                                                   [&] { return done >= ticket; });
  if (!isDone)
    return DSPARK_DEVICE_TIMEOUT;
  if (taken && !seconds.empty())
    *taken = seconds[ticket % kRemembered];
  return error;
}

void StubDevice::stop() {
  std::unique_lock lock(mutex);
  isStopping = true;
  changed.notify_all();
  changed.wait(lock, [&] { return !isBusy; });
  queue.clear();
  done = given;
  error = DSPARK_DEVICE_OK;
  isStopping = false;
  changed.notify_all();
}

} // namespace dspark

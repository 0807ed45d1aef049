// The part of tracing that is about devices. Values stay in a device's memory while only its steps use them.
// What another device needs starts to cross as soon as it exists, and is waited for where it is used, so that
// copies and launches run beside the CPU's steps. A device does its commands in order; so a wait for one is a
// wait for all before it.
#include "runtime/executor/Contents.h"
#include "runtime/executor/Tracer.h"
#include "runtime/format/ArenaPlan.h"
#include <algorithm>

namespace dspark {
// The device that runs a step; 0 is the CPU, as for all steps in branches and loops.
int Tracer::deviceOf(const StepInfo &step, const InferContext &inferred) const {
  if (needs.empty() || depth > 0 || state.frames.size() > 1 || inferred.dimsFromKernel)
    return 0;
  size_t index = size_t(&step - context.program.body().steps.data());
  int device = context.placement[index];
  bool hasText = std::any_of(inferred.in.begin(), inferred.in.end(),
                             [](const TensorInfo &info) { return info.type == DType::String; });
  return context.devices.device(device) && !hasText ? device : 0;
}

int Tracer::regionOf(const StepInfo &step) const {
  if (depth > 0 || state.frames.size() > 1)
    return -1;
  return context.program.regionOf(size_t(&step - context.program.body().steps.data()));
}

// --- copies ---

int Tracer::addCommand(DeviceCommand::Kind kind, int device) {
  DeviceCommand command;
  command.kind = kind;
  command.device = device;
  segment->commands.push_back(std::move(command));
  Record record;
  record.command = int(segment->commands.size()) - 1;
  record.firstView = uint32_t(segment->views.size());
  segment->records.push_back(std::move(record));
  return int(segment->commands.size()) - 1;
}

int Tracer::newDeviceBuffer(int device, int64_t bytes) {
  int now = int(segment->records.size());
  std::vector<TracedBuffer> &buffers = deviceBuffers[size_t(device)];
  buffers.push_back({bytes, -1, now, now, 0});
  return int(buffers.size()) - 1;
}

const Tracer::RemoteCopy *Tracer::remoteOn(int value, int device) const {
  auto found = remotes.find(value);
  if (found == remotes.end())
    return nullptr;
  for (const RemoteCopy &copy : found->second)
    if (copy.device == device)
      return &copy;
  return nullptr;
}

// `to` is a view of `from`.
void Tracer::shareRemotes(int from, int to) {
  auto found = remotes.find(from);
  if (found == remotes.end() || !find(to))
    return;
  std::vector<RemoteCopy> copies = found->second;
  for (const RemoteCopy &copy : copies)
    ++deviceBuffers[size_t(copy.device)][size_t(copy.buffer)].values;
  remotes[to] = std::move(copies);
}

void Tracer::releaseRemotes(int value) {
  auto found = remotes.find(value);
  if (found == remotes.end())
    return;
  for (const RemoteCopy &copy : found->second) {
    TracedBuffer &buffer = deviceBuffers[size_t(copy.device)][size_t(copy.buffer)];
    --buffer.values;
    buffer.last = int(segment->records.size()) - 1;
  }
  remotes.erase(found);
}

Status Tracer::copyIn(int value, int device) {
  if (remoteOn(value, device))
    return Status::ok();
  needHost(value);
  TracedItem item = writtenOut(value);
  int buffer = newDeviceBuffer(device, bytesOf(item.info));
  int command = addCommand(DeviceCommand::Kind::CopyIn, device);
  addView(item.info, item.storage);
  segment->records.back().inputs = 1;
  segment->commands.back().bytes = uint64_t(bytesOf(item.info));
  segment->commands.back().value = value;
  copied[command] = buffer;
  filledBy[{device, buffer}] = command;
  attach(item, 1);
  lent.push_back({command, std::move(item)});
  TracedBuffer &made = deviceBuffers[size_t(device)][size_t(buffer)];
  made.values = 1;
  remotes[value].push_back({device, buffer});
  return Status::ok();
}

void Tracer::copyOut(int value) {
  TracedValue &traced = state.values.at(value);
  RemoteCopy from = remotes.at(value)[0];
  traced.storage = newBuffer(traced.info);
  int command = addCommand(DeviceCommand::Kind::CopyOut, from.device);
  addView(traced.info, traced.storage);
  segment->records.back().outputs = 1;
  segment->commands.back().bytes = uint64_t(bytesOf(traced.info));
  segment->commands.back().value = value;
  segment->commands.back().region = segment->commands[size_t(filledBy.at({from.device, from.buffer}))].region;
  copied[command] = from.buffer;
  attach(traced, 1); // the value's own
  attach(traced, 1); // until the copy is waited for
  lent.push_back({command, traced});
  arriving[traced.storage.index] = command;
}

void Tracer::await(int device, int command) {
  addCommand(DeviceCommand::Kind::Wait, device);
  segment->commands.back().awaited = command;
  auto isDone = [&](int other) {
    return other <= command && segment->commands[size_t(other)].device == device;
  };
  std::erase_if(arriving, [&](auto &entry) { return isDone(entry.second); });
  std::erase_if(lent, [&](Lent &entry) {
    if (!isDone(entry.command))
      return false;
    attach(entry.item, -1);
    return true;
  });
}

void Tracer::awaitBuffer(int buffer) {
  if (auto found = arriving.find(buffer); found != arriving.end())
    await(segment->commands[size_t(found->second)].device, found->second);
}

// The host is about to read the value.
void Tracer::needHost(int value) {
  const TracedValue *traced = value < 0 || needs.empty() ? nullptr : find(value);
  if (!traced || traced->isList)
    return;
  if (traced->storage.kind == Storage::Kind::Remote)
    copyOut(value);
  if (traced->storage.kind == Storage::Kind::Buffer)
    awaitBuffer(traced->storage.index);
}

// Everything is on the host, and no device has anything to do.
void Tracer::comeHome() {
  if (needs.empty())
    return;
  std::vector<int> away;
  for (const auto &[value, traced] : state.values)
    if (traced.storage.kind == Storage::Kind::Remote)
      away.push_back(value);
  std::sort(away.begin(), away.end()); // the order of a hash table is nobody's promise
  for (int value : away)
    copyOut(value);
  std::vector<int> last(deviceBuffers.size(), -1);
  for (size_t i = 0; i < segment->commands.size(); ++i)
    if (segment->commands[i].kind == DeviceCommand::Kind::Wait)
      last[size_t(segment->commands[i].device)] =
          std::max(last[size_t(segment->commands[i].device)], segment->commands[i].awaited);
  for (size_t device = 1; device < last.size(); ++device)
    for (int i = int(segment->commands.size()); i-- > last[device] + 1;)
      if (const DeviceCommand &command = segment->commands[size_t(i)];
          command.device == int(device) && command.kind != DeviceCommand::Kind::Wait) {
        await(int(device), i);
        break;
      }
  for (const auto &[value, copies] : std::exchange(remotes, {}))
    for (const RemoteCopy &copy : copies) {
      TracedBuffer &buffer = deviceBuffers[size_t(copy.device)][size_t(copy.buffer)];
      --buffer.values;
      buffer.last = int(segment->records.size()) - 1;
    }
}

// A value that has just been made on the host or on one device starts on its way to where it is needed.
Status Tracer::sendAhead(int value) {
  if (needs.empty() || value < 0 || !find(value) || find(value)->isList)
    return Status::ok();
  uint32_t others = needs[size_t(value)];
  bool isRemote = find(value)->storage.kind == Storage::Kind::Remote;
  if (isRemote && (others & ~(uint32_t(1) << remotes.at(value)[0].device)) != 0)
    copyOut(value);
  for (size_t device = 1; device < deviceBuffers.size(); ++device)
    if ((others >> device & 1) && !isRemote && context.devices.device(int(device)) && depth == 0)
      DSPARK_RETURN_IF_ERROR(copyIn(value, int(device)));
  return Status::ok();
}

Status Tracer::sendInputs() {
  if (!needs.empty())
    for (int value : context.program.inputs())
      DSPARK_RETURN_IF_ERROR(sendAhead(value));
  return Status::ok();
}

// --- launches ---

Status Tracer::launchOn(int device, const StepInfo &step, InferContext &inferred) {
  std::vector<DeviceOperand> places;
  std::vector<TracedItem> inputs, results;
  for (int value : step.inputs) {
    DeviceOperand &place = places.emplace_back();
    TracedItem &input = inputs.emplace_back(itemOf(value));
    if (value < 0)
      continue;
    if (context.program.values()[size_t(value)].kind == fb::ValueKind::Constant) {
      place.weight = value;
      continue;
    }
    DSPARK_RETURN_IF_ERROR(copyIn(value, device));
    place.buffer = remoteOn(value, device)->buffer;
    if (DeviceCommand &copy = segment->commands[size_t(filledBy.at({device, place.buffer}))]; copy.region < 0)
      copy.region = regionOf(step);
    input.storage = {Storage::Kind::Remote, -1, nullptr};
  }
  int command = addCommand(DeviceCommand::Kind::Launch, device);
  segment->commands.back().region = regionOf(step);
  segment->records.pop_back();
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    TracedItem &result = results.emplace_back();
    DeviceOperand &place = places.emplace_back();
    if (step.outputs[i] < 0)
      continue;
    place.buffer = newDeviceBuffer(device, bytesOf(inferred.out[i]));
    filledBy[{device, place.buffer}] = command;
    result.info = std::move(inferred.out[i]);
    result.storage = {Storage::Kind::Remote, -1, nullptr};
  }
  addRecord(step, step.opName, inputs, results);
  segment->records.back().command = command;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    int value = step.outputs[i], buffer = places[step.inputs.size() + i].buffer;
    if (value < 0)
      continue;
    define(value, std::move(results[i]));
    if (find(value)) {
      remotes[value].push_back({device, buffer});
      deviceBuffers[size_t(device)][size_t(buffer)].values = 1;
    }
  }
  launches[command] = std::move(places);
  for (int value : step.outputs)
    DSPARK_RETURN_IF_ERROR(sendAhead(value));
  for (int value : step.inputs)
    use(value);
  return Status::ok();
}

// --- memory ---

Status Tracer::placeOnDevices() {
  segment->blocks.resize(deviceBuffers.size());
  for (size_t device = 1; device < deviceBuffers.size(); ++device) {
    std::vector<ArenaBuffer> alive;
    for (const TracedBuffer &buffer : deviceBuffers[device])
      alive.push_back({buffer.bytes, buffer.first, buffer.last, -1});
    if (alive.empty())
      continue;
    ArenaPlan plan = planArena(alive);
    for (size_t i = 0; i < alive.size(); ++i)
      deviceBuffers[device][i].offset = alive[i].offset;
    auto block = context.devices.device(int(device))->allocate(uint64_t(std::max<int64_t>(plan.bytes, 64)));
    if (!block.isOk())
      return context.devices.failed(int(device), block.status());
    segment->blocks[device] = std::move(*block);
  }
  for (const auto &[index, buffer] : copied) {
    DeviceCommand &command = segment->commands[size_t(index)];
    command.offset = deviceBuffers[size_t(command.device)][size_t(buffer)].offset;
    auto facts = context.devices.device(command.device)->facts();
    if (!facts.isOk())
      return context.devices.failed(command.device, facts.status());
    bool isIn = command.kind == DeviceCommand::Kind::CopyIn;
    command.seconds =
        facts->copy_latency + double(command.bytes) / (isIn ? facts->copy_in_second : facts->copy_out_second);
  }
  return Status::ok();
}

// After the CPU's kernel was prepared, which knows how much work it is.
Status Tracer::finishLaunch(Record &record) {
  DeviceCommand &command = segment->commands[size_t(record.command)];
  const std::vector<DeviceOperand> &places = launches.at(record.command);
  uint64_t constants = 0;
  for (size_t i = 0; i < record.inputs && i < 64; ++i)
    if (places[i].weight >= 0)
      constants |= uint64_t(1) << i;
  DeviceStep step(record.op, record.call, record.work, constants);
  for (size_t i = 0; i < places.size(); ++i) {
    dspark_device_tensor &tensor = i < record.inputs ? step.inputs[i] : step.outputs[i - record.inputs];
    if (int value = places[i].weight; value >= 0) {
      auto bytes = context.program.values()[size_t(value)].bytes;
      DSPARK_ASSIGN_OR_RETURN(const DeviceMemory *memory,
                              context.devices.weight(command.device, value, bytes));
      tensor.memory = memory->handle();
      tensor.bytes = bytes.size();
    } else if (int buffer = places[i].buffer; buffer >= 0) {
      tensor.memory = segment->blocks[size_t(command.device)]->handle();
      tensor.offset = uint64_t(deviceBuffers[size_t(command.device)][size_t(buffer)].offset);
    }
  }
  auto ready = context.devices.device(command.device)->prepare(step);
  if (!ready.isOk())
    return context.devices.failed(command.device, ready.status().in(record.step->where()));
  command.ready = std::move(*ready);
  return Status::ok();
}

} // namespace dspark

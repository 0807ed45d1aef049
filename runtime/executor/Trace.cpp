#include "runtime/executor/Trace.h"
#include "kernels/common/call_contract.h"
#include "runtime/executor/Contents.h"
#include "runtime/executor/LoopRunner.h"
#include "runtime/executor/Stopwatch.h"
#include "runtime/executor/Tracer.h"
#include <algorithm>
#include <optional>

namespace dspark {
namespace {

// Continuations kept per point; the one used longest ago makes room. Enough for a condition's two ways, a
// loop over buckets of lengths, a handful of detections.
constexpr size_t kMaxContinuations = 32;

} // namespace

StatusOr<std::unique_ptr<Trace>> Trace::create(Context &context, TraceState state, int depth,
                                               std::vector<const void *> slots) {
  std::unique_ptr<Trace> trace(new Trace(context, depth));
  trace->slots = std::move(slots);
  trace->arguments = state.slots;
  DSPARK_ASSIGN_OR_RETURN(trace->root, Tracer::trace(context, std::move(state), depth, trace->slots));
  trace->last = trace->root.get();
  return trace;
}

Trace::~Trace() = default;

const std::vector<PlacedTensor> *Trace::staticResults() const {
  return root->end == SegmentEnd::Return ? &root->results : nullptr;
}

Status Trace::run() {
  for (Segment *segment = root.get();;) {
    if (context.profile || context.observer)
      DSPARK_RETURN_IF_ERROR(executeMeasured(*segment));
    else if (context.regionTimes)
      DSPARK_RETURN_IF_ERROR(executeTimed(*segment));
    else
      DSPARK_RETURN_IF_ERROR(execute(*segment));
    // Kernels on strings tell what they could not do instead of failing.
    DSPARK_RETURN_IF_ERROR(Status(context.strings.problem()));
    if (segment->end == SegmentEnd::Return) {
      last = segment;
      return Status::ok();
    }
    segment->key.clear();
    DSPARK_RETURN_IF_ERROR(observe(*segment));
    DSPARK_ASSIGN_OR_RETURN(segment, follow(*segment));
  }
}

void Trace::patch(Segment &segment) {
  for (Segment::Patch patch : segment.patches)
    segment.views[patch.view].data = const_cast<void *>(slots[size_t(patch.slot)]);
}

Status Trace::execute(Segment &segment) {
  patch(segment);
  for (const Record &record : segment.records)
    if (record.command >= 0)
      DSPARK_RETURN_IF_ERROR(runCommand(segment, record));
    else
      runRecord(record);
  return Status::ok();
}

// What devices did is asked of them afterwards.
Status Trace::executeMeasured(Segment &segment) {
  patch(segment);
  for (const Record &record : segment.records) {
    if (record.command >= 0) {
      DSPARK_RETURN_IF_ERROR(runCommand(segment, record));
      continue;
    }
    if (context.observer)
      context.observer->before(*record.step, *record.kernel, record.call);
    auto start = Profile::Clock::now();
    runRecord(record);
    if (context.profile)
      context.profile->add(record.step, record.kernel, start, Profile::Clock::now(), record.work.bytes,
                           record.work.flops);
    if (context.observer)
      context.observer->after(*record.step, *record.kernel, record.call);
  }
  for (const Record &record : segment.records)
    if (record.step && record.command >= 0 && context.profile) {
      const DeviceCommand &command = segment.commands[size_t(record.command)];
      DSPARK_ASSIGN_OR_RETURN(double seconds, context.devices.device(command.device)->wait(command.ticket));
      auto now = Profile::Clock::now();
      auto taken =
          std::chrono::duration_cast<Profile::Clock::duration>(std::chrono::duration<double>(seconds));
      context.profile->add(record.step, record.kernel, now - taken, now, record.work.bytes,
                           record.work.flops);
    }
  return Status::ok();
}

// The clock is read where the region changes.
Status Trace::executeTimed(Segment &segment) {
  patch(segment);
  std::vector<double> &times = *context.regionTimes;
  bool isVirtual = context.timeModel != nullptr;
  int region = -1;
  auto start = Profile::Clock::now();
  auto turnTo = [&](int next) {
    if (next == region || isVirtual)
      return;
    auto now = Profile::Clock::now();
    if (region >= 0)
      times[size_t(region)] += std::chrono::duration<double>(now - start).count();
    region = next;
    start = now;
  };
  for (const Record &record : segment.records) {
    turnTo(record.command >= 0 ? -1 : record.region);
    if (record.command >= 0)
      DSPARK_RETURN_IF_ERROR(runCommand(segment, record));
    else
      runRecord(record);
    if (isVirtual && record.command < 0 && record.region >= 0)
      times[size_t(record.region)] += virtualSeconds(record);
  }
  turnTo(-1);
  return addDeviceTimes(segment);
}

// Launches count with what they took, copies with what they took longer than the link's facts say, which is
// part of what the choice of a device is weighed by anyway.
Status Trace::addDeviceTimes(Segment &segment) {
  Stopwatch watch(context.adaptSeconds);
  for (const DeviceCommand &command : segment.commands) {
    if (command.kind == DeviceCommand::Kind::Wait || command.region < 0)
      continue;
    DSPARK_ASSIGN_OR_RETURN(double seconds, context.devices.device(command.device)->wait(command.ticket));
    bool isLaunch = command.kind == DeviceCommand::Kind::Launch;
    (*context.regionTimes)[size_t(command.region)] +=
        isLaunch ? seconds : std::max(0.0, seconds - command.seconds);
  }
  return Status::ok();
}

Status Trace::runCommand(Segment &segment, const Record &record) {
  DeviceCommand &command = segment.commands[size_t(record.command)];
  Device &device = *context.devices.device(command.device);
  const DeviceMemory *block = segment.blocks[size_t(command.device)].get();
  auto given = [&]() -> StatusOr<dspark_device_ticket> {
    switch (command.kind) {
    case DeviceCommand::Kind::CopyIn:
      return device.copyIn(*block, uint64_t(command.offset), segment.views[record.firstView].data,
                           command.bytes);
    case DeviceCommand::Kind::CopyOut:
      return device.copyOut(*block, uint64_t(command.offset), segment.views[record.firstView].data,
                            command.bytes);
    case DeviceCommand::Kind::Launch:
      return device.launch(*command.ready);
    case DeviceCommand::Kind::Wait:
      break;
    }
    dspark_device_ticket ticket = segment.commands[size_t(command.awaited)].ticket;
    StatusOr<double> seconds = device.wait(ticket);
    return seconds.isOk() ? StatusOr(ticket) : seconds.status();
  }();
  if (!given.isOk())
    return context.devices.failed(command.device,
                                  record.step ? given.status().in(record.step->where()) : given.status());
  command.ticket = *given;
  return Status::ok();
}

bool Trace::isSerial(const Record &record) const {
  return record.isSmall || context.isSerial ||
         (record.region >= 0 && !context.serialRegions.empty() &&
          context.serialRegions[size_t(record.region)]);
}

double Trace::virtualSeconds(const Record &record) const {
  bool isParallel = !isSerial(record);
  return record.predicted[isParallel] * context.slowdown[isParallel && context.pool.threads() > 1];
}

void Trace::runRecord(const Record &record) {
  struct Run {
    const Record &record;
    Context &context;
    int phase;
  };
  Run run{record, context, 0};
  auto tiles = [](void *opaque, uint32_t begin, uint32_t end, int thread) {
    const Run &run = *static_cast<const Run *>(opaque);
    std::byte *scratch = run.context.threadScratch.data();
    KernelPart part{begin,
                    end,
                    run.phase,
                    thread,
                    scratch ? scratch + uint64_t(thread) * run.context.scratchStride : nullptr,
                    run.context.sharedScratch.data()};
    expectCall(*run.record.kernel, run.record.call, run.record.work, part);
    run.record.kernel->run(run.record.call, run.record.work, part);
  };
  std::optional<StringRun::Scope> scope;
  if (record.hasStrings)
    scope.emplace(context.strings);
  for (; run.phase < record.work.phases; ++run.phase) {
    uint32_t count = record.work.tiles[run.phase];
    if (!isSerial(record))
      context.pool.run(count, tiles, &run);
    else if (count > 0)
      tiles(&run, 0, count, 0);
  }
  if (record.hasStrings && !context.strings.problem().isOk())
    context.strings.locate(record.step->where());
}

Status Trace::observe(Segment &segment) {
  switch (segment.end) {
  case SegmentEnd::Return:
    return Status::ok();
  case SegmentEnd::Contents:
    appendContents(segment.observed.info.type, segment.observed.pointer(slots.data()),
                   elementCount(segment.observed.info.dims), segment.key);
    return Status::ok();
  case SegmentEnd::Dims: {
    // The upper bounds are the dims that the result's view was made with.
    const Record &record = segment.records.back();
    size_t next = 0;
    for (const TensorView &view : record.call.out)
      for (int i = 0; i < view.rank; ++i, ++next) {
        int64_t found = segment.kernelDims[next];
        if (found < 0 || found > view.dims[i])
          return Status(Code::Internal, record.step->where() + ": kernel " + record.kernel->name +
                                            " made a dim of " + std::to_string(found) +
                                            ", expected at most " + std::to_string(view.dims[i]));
        segment.key.push_back(found);
      }
    return Status::ok();
  }
  case SegmentEnd::Loop:
    DSPARK_RETURN_IF_ERROR(segment.loop->run(slots.data()));
    slots.resize(size_t(segment.after.slots));
    for (const LiveValue &output : segment.loop->outputs()) {
      appendShape(output, segment.key);
      forTensors(output, [&](const LiveValue &tensor) { slots.push_back(tensor.data); });
    }
    return Status::ok();
  }
  return Status::ok();
}

StatusOr<Segment *> Trace::follow(Segment &segment) {
  auto &known = segment.continuations;
  ++context.clock;
  for (Continuation &continuation : known)
    if (continuation.key == segment.key) {
      continuation.lastUse = context.clock;
      return continuation.segment.get();
    }
  DSPARK_ASSIGN_OR_RETURN(auto next, Tracer::resume(context, segment, depth, slots));
  if (known.size() >= kMaxContinuations)
    known.erase(
        std::min_element(known.begin(), known.end(), [](auto &a, auto &b) { return a.lastUse < b.lastUse; }));
  known.push_back({segment.key, std::move(next), context.clock});
  return known.back().segment.get();
}

} // namespace dspark

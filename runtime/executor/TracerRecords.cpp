// What a trace becomes: records with views of their operands, an arena for what they make, a prepared kernel
// each.
#include "runtime/executor/Contents.h"
#include "runtime/executor/Tracer.h"
#include "runtime/executor/Values.h"
#include "runtime/format/ArenaPlan.h"
#include <algorithm>
#include <utility>

namespace dspark {
namespace {

// Steps below this many seconds run on the calling thread: waking or even just telling the others costs
// microseconds.
constexpr double kSmallSeconds = 5e-6;
constexpr double kFlopsPerSecond = 2e10, kBytesPerSecond = 1e10; // of one core, to within a small factor
constexpr uint32_t kMaxTiles = 1u << 30;

// The row of that name if it can do the call, else `otherwise`.
const Kernel *preferredKernel(std::string_view name, std::string_view op, const KernelCall &call, Isa cap,
                              const Kernel *otherwise) {
  for (const Kernel &row : allKernels())
    if (name == row.name && op == row.op && mayRun(row, cap) && (!row.accepts || row.accepts(call)))
      return &row;
  return otherwise;
}

std::string typesOf(std::span<const TensorView> views) {
  std::string out;
  for (const TensorView &view : views) {
    TensorInfo info;
    if (view.present())
      info = TensorInfo::make(view.type, std::vector<Dim>(view.dims, view.dims + view.rank));
    out += (out.empty() ? "" : ", ") + info.str();
  }
  return out;
}

} // namespace

void Tracer::addView(const TensorInfo &info, const Storage &storage) {
  for (Dim dim : info.dims)
    segment->dims.push_back(dim.value());
  // The dims have no place yet: finishRecords points the view to them.
  segment->views.push_back({nullptr, nullptr, int32_t(info.dims.size()), info.type});
  viewStorage.push_back(storage);
  segment->records.back().hasStrings |= info.type == DType::String;
}

// Where a result may lie: with an operand that dies here and that the operator may overwrite, or with a
// state, which it must; Kind::Known if there is no such operand.
Storage Tracer::inPlaceStorage(const StepInfo &step, size_t result, int64_t bytes) const {
  for (size_t k = 0; k < step.inputs.size(); ++k)
    if (isState(step.inputs[k]) && step.updated(k) == result)
      return find(step.inputs[k])->storage;
  if (result > 0)
    return {};
  for (size_t k = 0; k < step.inputs.size() && k < 32; ++k) {
    const TracedValue *candidate = step.inputs[k] >= 0 ? find(step.inputs[k]) : nullptr;
    if (!(step.op->inPlace >> k & 1) || !candidate || candidate->storage.kind != Storage::Kind::Buffer ||
        bytesOf(candidate->info) != bytes || state.buffers[size_t(candidate->storage.index)].values != 1)
      continue;
    int uses = 0;
    bool everyUseMay = true;
    for (size_t j = 0; j < step.inputs.size(); ++j)
      if (step.inputs[j] == step.inputs[k]) {
        ++uses;
        everyUseMay &= j < 32 && (step.op->inPlace >> j & 1);
      }
    if (uses == candidate->uses && everyUseMay)
      return candidate->storage;
  }
  return {};
}

Storage Tracer::newBuffer(const TensorInfo &info) {
  int now = int(segment->records.size());
  state.buffers.push_back({bytesOf(info), -1, now, now, 0});
  return {Storage::Kind::Buffer, int(state.buffers.size()) - 1, nullptr};
}

// A call of `op` with the step's attributes; views of its operands and results have to follow.
void Tracer::startRecord(const StepInfo &step, std::string_view op, size_t inputs, size_t results) {
  Record &record = segment->records.emplace_back();
  record.step = &step;
  record.op = op;
  record.firstView = uint32_t(segment->views.size());
  record.inputs = uint32_t(inputs);
  record.outputs = uint32_t(results);
}

// The same with them.
void Tracer::addRecord(const StepInfo &step, std::string_view op, std::span<const TracedItem> inputs,
                       std::span<const TracedItem> results) {
  startRecord(step, op, inputs.size(), results.size());
  for (std::span<const TracedItem> side : {inputs, results})
    for (const TracedItem &item : side)
      addView(item.info, item.storage);
}

Status Tracer::addKernel(const StepInfo &step, InferContext &inferred) {
  for (int value : step.inputs)
    needHost(value);
  std::vector<Storage> places(step.outputs.size());
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0)
      continue;
    if (!inferred.dimsFromKernel)
      places[i] = inPlaceStorage(step, i, bytesOf(inferred.out[i]));
    if (places[i].kind == Storage::Kind::Known)
      places[i] = newBuffer(inferred.out[i]);
  }
  startRecord(step, step.opName, step.inputs.size(), step.outputs.size());
  segment->records.back().region = regionOf(step);
  for (int value : step.inputs) {
    if (auto it = state.values.find(value); it != state.values.end())
      writeOut(it->second);
    addView(infoOf(value), storageOf(value));
  }
  for (size_t i = 0; i < step.outputs.size(); ++i)
    addView(step.outputs[i] < 0 ? TensorInfo() : inferred.out[i], places[i]); // an absent result has no type
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (step.outputs[i] >= 0)
      define(step.outputs[i], std::move(inferred.out[i]), places[i]);
  if (!inferred.dimsFromKernel)
    for (int value : step.outputs)
      DSPARK_RETURN_IF_ERROR(sendAhead(value));
  for (int value : step.inputs)
    use(value);
  return Status::ok();
}

// --- memory and kernels ---

Status Tracer::place() {
  std::vector<ArenaBuffer> alive;
  std::vector<size_t> indices;
  int end = int(segment->records.size());
  for (size_t i = 0; i < state.buffers.size(); ++i) {
    TracedBuffer &buffer = state.buffers[i];
    if (buffer.values == 0 && buffer.last < 0)
      continue;
    alive.push_back({buffer.bytes, buffer.first, buffer.values > 0 ? end : buffer.last, buffer.offset});
    indices.push_back(i);
  }
  ArenaPlan plan = planArena(alive);
  segment->arenaBytes = plan.bytes;
  segment->lowerBound = plan.lowerBound;
  DSPARK_RETURN_IF_ERROR(context.arena(depth).ensure(uint64_t(plan.bytes)));
  for (size_t i = 0; i < alive.size(); ++i)
    state.buffers[indices[i]].offset = alive[i].offset;
  return Status::ok();
}

const void *Tracer::pointerOf(const Storage &storage) const {
  return storage.kind == Storage::Kind::Buffer
             ? context.arena(depth).at(state.buffers[size_t(storage.index)].offset)
             : storage.data;
}

Status Tracer::finishRecords(const std::vector<const void *> &slots) {
  segment->records.shrink_to_fit(); // sessions keep many segments
  for (auto &[tensor, storage] : pending) {
    tensor->slot = storage.kind == Storage::Kind::Slot ? storage.index : -1;
    tensor->data = pointerOf(storage);
  }
  const int64_t *dims = segment->dims.data();
  for (uint32_t i = 0; i < segment->views.size(); ++i) {
    segment->views[i].dims = std::exchange(dims, dims + segment->views[i].rank);
    const void *data = pointerOf(viewStorage[i]);
    if (viewStorage[i].kind == Storage::Kind::Slot) {
      data = slots[size_t(viewStorage[i].index)];
      segment->patches.push_back({i, viewStorage[i].index});
    }
    segment->views[i].data = const_cast<void *>(data);
  }
  for (Record &record : segment->records) {
    if (record.step)
      DSPARK_RETURN_IF_ERROR(finishRecord(record));
    if (record.step && record.command >= 0)
      DSPARK_RETURN_IF_ERROR(finishLaunch(record));
  }
  return Status::ok();
}

Status Tracer::finishRecord(Record &record) {
  const StepInfo &step = *record.step;
  std::span<const TensorView> views(segment->views);
  KernelCall &call = record.call;
  call.in = views.subspan(record.firstView, record.inputs);
  call.out = views.subspan(record.firstView + record.inputs, record.outputs);
  call.attrs = Attrs(step.attrs);
  if (step.kind == fb::StepKind::Kernel && !step.symbol.empty() && context.nativeCode) {
    DSPARK_ASSIGN_OR_RETURN(call.code, context.program.code(step.symbol, context.cap));
  }
  if (segment->end == SegmentEnd::Dims && &record == &segment->records.back()) {
    size_t total = 0;
    for (const TensorView &view : call.out)
      total += size_t(view.rank);
    segment->kernelDims.assign(total, 0);
    int64_t *next = segment->kernelDims.data();
    for (const TensorView &view : call.out) {
      segment->kernelDimPointers.push_back(next);
      next += view.rank;
    }
    call.outDims = segment->kernelDimPointers.data();
  }
  record.kernel = selectKernel(record.op, call, context.cap);
  if (!step.kernel.empty())
    record.kernel = preferredKernel(step.kernel, record.op, call, context.cap, record.kernel);
  if (!record.kernel)
    return {Code::Unsupported, step.where() + ": no kernel for operands (" + typesOf(call.in) +
                                   ") and results (" + typesOf(call.out) + ") up to ISA level " +
                                   std::string(isaName(context.cap))};
  KernelWork &work = record.work;
  record.kernel->prepare(call, work);
  if (work.phases < 1 || work.phases > kMaxPhases)
    return {Code::Internal, step.where() + ": kernel " + record.kernel->name + " wants " +
                                std::to_string(work.phases) + " phases"};
  bool hasTiles = false;
  for (int phase = 0; phase < work.phases; ++phase) {
    if (work.tiles[phase] > kMaxTiles)
      return {Code::Unsupported, step.where() + ": kernel " + record.kernel->name + " wants " +
                                     std::to_string(work.tiles[phase]) + " tiles, expected at most " +
                                     std::to_string(kMaxTiles)};
    hasTiles |= work.tiles[phase] > 1;
  }
  if (work.bytes == 0)
    for (const TensorView &view : views.subspan(record.firstView, record.inputs + record.outputs))
      work.bytes += view.present() ? double(dtypeBytes(view.type, view.elements())) : 0;
  for (bool isParallel : {false, true})
    if (context.timeModel)
      record.predicted[isParallel] = context.timeModel->predict(
          costFeatures(*record.kernel, call, work, 0), work.bytes, isParallel ? context.pool.threads() : 1);
  double seconds = std::max(work.flops / kFlopsPerSecond, work.bytes / kBytesPerSecond);
  record.isSmall = !hasTiles || seconds < kSmallSeconds;
  Status room = context.ensureScratch(work.scratchPerThread, work.scratchShared);
  return room.isOk() ? room : room.in(step.where());
}

} // namespace dspark

// The C API over Program and Session.
#include "dspark/dspark.h"
#include "runtime/executor/Session.h"
#include "runtime/executor/Strided.h"
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>

using namespace dspark;

namespace {

thread_local std::string lastError;

dspark_status report(const Status &status) {
  if (!status.isOk())
    lastError = status.message();
  return dspark_status(status.code());
}

// No exception may leave the library; running out of memory for small things is the only one expected.
template <typename Fn> dspark_status guarded(Fn fn) {
  try {
    return report(fn());
  } catch (const std::bad_alloc &) {
    return report({Code::OutOfMemory, "out of memory"});
  } catch (const std::exception &error) {
    return report({Code::Internal, error.what()});
  }
}

Status nullArgument(const char *name) { return invalidArgument(std::string(name) + " is NULL"); }

static_assert(sizeof(dspark_string) == sizeof(StringElement) &&
              offsetof(dspark_string, size) == offsetof(StringElement, size));

// The nodes of type trees stay where they are once made.
using TypeNodes = std::deque<std::vector<dspark_type>>;

dspark_type describe(const fb::ValueType &tree, TypeNodes &nodes) {
  dspark_type type = {dspark_kind(tree.kind()),
                      dspark_dtype(tree.dtype()),
                      tree.rank(),
                      tree.dims() ? tree.dims()->data() : nullptr,
                      0,
                      nullptr};
  if (!tree.items())
    return type;
  std::vector<dspark_type> items;
  for (const fb::ValueType *item : *tree.items())
    items.push_back(describe(*item, nodes));
  type.item_count = items.size();
  type.items = nodes.emplace_back(std::move(items)).data();
  return type;
}

// Names and dims of one input or output, in the form that C sees.
struct InfoStorage {
  std::string name;
  DType type;
  std::vector<int64_t> dims;
  std::vector<std::string> texts;
  std::vector<const char *> textPointers;
  TypeNodes nodes;
  dspark_type tree;
};

InfoStorage describe(const Program &program, std::string_view name, DType type, std::span<const int32_t> dims,
                     const fb::ValueType *tree) {
  InfoStorage info{std::string(name), type, {}, {}, {}, {}, {}};
  std::vector<Dim> values;
  program.evaluate(std::vector<Dim>(program.symbolCount()), values);
  for (int expression : dims) {
    Dim dim = expression < 0 ? Dim() : values[size_t(expression)];
    info.dims.push_back(dim.isConst() ? dim.value() : -1);
    info.texts.push_back(dim.isConst() ? dim.str() : program.dimText(expression));
  }
  for (const std::string &text : info.texts)
    info.textPointers.push_back(text.c_str());
  info.tree = tree ? describe(*tree, info.nodes)
                   : dspark_type{DSPARK_TENSOR, dspark_dtype(type), int32_t(dims.size()), info.dims.data(), 0,
                                 nullptr};
  return info;
}

BorrowedTensor borrowed(const dspark_tensor &tensor) {
  bool isType = tensor.dtype >= 0 && int(tensor.dtype) < kDTypeCount;
  return {tensor.data, isType ? DType(tensor.dtype) : DType::Undefined, tensor.rank, tensor.dims,
          tensor.strides};
}

} // namespace

struct dspark_plan {
  std::shared_ptr<const Program> program;
  std::vector<InfoStorage> inputs, outputs;
};

struct dspark_session {
  std::unique_ptr<Session> session;
  Profile profile;
  bool isMeasured = false;
  bool hasRun = false;
  std::vector<BorrowedTensor> inputs; // reused by every run
  mutable std::deque<std::vector<dspark_value>>
      outputItems; // of the last run's lists, as they were asked for
  std::vector<const Profile::Line *> lines;
};

namespace {

dspark_status tensorInfo(const std::vector<InfoStorage> &list, size_t index, dspark_tensor_info *info,
                         const char *what) {
  return guarded([&]() -> Status {
    if (!info)
      return nullArgument("info");
    if (index >= list.size())
      return invalidArgument(std::string(what) + " " + std::to_string(index) +
                             " does not exist, the plan has " + std::to_string(list.size()));
    const InfoStorage &found = list[index];
    *info = {found.name.c_str(), dspark_dtype(found.type), int32_t(found.dims.size()), found.dims.data(),
             found.textPointers.data()};
    return Status::ok();
  });
}

Status makeSession(const dspark_plan &plan, const dspark_session_options *given,
                   std::unique_ptr<dspark_session> &made) {
  dspark_session_options options;
  dspark_session_options_init(&options);
  if (given) {
    if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof options)
      return invalidArgument("struct_size is " + std::to_string(given->struct_size) + ", expected " +
                             std::to_string(sizeof options) + " (dspark_session_options_init sets it)");
    std::memcpy(&options, given, given->struct_size);
  }
  SessionOptions chosen;
  chosen.threads = options.threads;
  chosen.memoryLimit = options.memory_limit;
  chosen.nativeCode = options.refuse_native_code == 0;
  chosen.adapt = options.adapt != 0;
  chosen.learned = options.learned ? options.learned : "";
  if (options.device_count > kMaxPlanDevices || (options.device_count > 0 && !options.devices))
    return invalidArgument("device_count is " + std::to_string(options.device_count) +
                           ", expected devices, at most " + std::to_string(kMaxPlanDevices));
  for (size_t i = 0; i < options.device_count; ++i) {
    DSPARK_ASSIGN_OR_RETURN(DeviceSpec spec, DeviceSpec::parse(options.devices[i] ? options.devices[i] : ""));
    chosen.devices.push_back(std::move(spec));
  }
  if (options.isa && !isaFromName(options.isa, chosen.isa))
    return invalidArgument("isa is '" + std::string(options.isa) + "', expected baseline, avx2 or avx512");
  DSPARK_ASSIGN_OR_RETURN(auto session, Session::create(plan.program, chosen));
  made = std::make_unique<dspark_session>();
  made->session = std::move(session);
  made->isMeasured = options.profile != 0;
  if (made->isMeasured)
    made->session->setProfile(&made->profile);
  return Status::ok();
}

dspark_status typeOf(const std::vector<InfoStorage> &list, size_t index, dspark_type *type,
                     const char *what) {
  return guarded([&]() -> Status {
    if (!type)
      return nullArgument("type");
    if (index >= list.size())
      return invalidArgument(std::string(what) + " " + std::to_string(index) +
                             " does not exist, the plan has " + std::to_string(list.size()));
    *type = list[index].tree;
    return Status::ok();
  });
}

// `nodes` hold the items, and stay where they are.
Status borrowed(const dspark_value &value, int depth, std::deque<std::vector<BorrowedValue>> &nodes,
                BorrowedValue &result) {
  result.isList = value.kind != DSPARK_TENSOR;
  if (!result.isList) {
    result.tensor = borrowed(value.tensor);
    return Status::ok();
  }
  if (depth > kMaxListDepth || value.item_count > kMaxListTensors || (value.item_count > 0 && !value.items))
    return invalidArgument("a value has " + std::to_string(value.item_count) + " items at depth " +
                           std::to_string(depth) + ", expected at most " + std::to_string(kMaxListTensors) +
                           " items, " + std::to_string(kMaxListDepth) + " lists deep");
  std::vector<BorrowedValue> &items = nodes.emplace_back(value.item_count);
  for (size_t i = 0; i < value.item_count; ++i)
    DSPARK_RETURN_IF_ERROR(borrowed(value.items[i], depth + 1, nodes, items[i]));
  result.items = items.data();
  result.count = items.size();
  return Status::ok();
}

// The kinds are those of the declared type; a list whose type is not known is a sequence.
dspark_value handedOut(const OutputValue &value, const dspark_type *type,
                       std::deque<std::vector<dspark_value>> &nodes) {
  dspark_value result = {};
  if (!value.isList) {
    result.tensor = {value.tensor.data, dspark_dtype(value.tensor.type), value.tensor.rank, value.tensor.dims,
                     nullptr};
    return result;
  }
  result.kind = type && type->kind != DSPARK_TENSOR ? type->kind : DSPARK_SEQUENCE;
  std::vector<dspark_value> items;
  for (size_t i = 0; i < value.items.size(); ++i) {
    size_t place = result.kind == DSPARK_MAP ? i : 0;
    items.push_back(
        handedOut(value.items[i], type && place < type->item_count ? type->items + place : nullptr, nodes));
  }
  result.item_count = items.size();
  result.items = nodes.emplace_back(std::move(items)).data();
  return result;
}

// Hands out the session's tensor, or writes it into the caller's memory.
Status deliver(const Session &session, size_t index, dspark_tensor &output) {
  if (session.outputValue(index).isList)
    return invalidArgument("output '" + std::string(session.program().outputs()[index].name) +
                           "' is no tensor; dspark_session_output_value gives it");
  const TensorView &view = session.output(index);
  if (!output.data) {
    output = {view.data, dspark_dtype(view.type), view.rank, view.dims, nullptr};
    return Status::ok();
  }
  TensorInfo found = TensorInfo::make(view.type, std::vector<Dim>(view.dims, view.dims + view.rank));
  bool fits = output.dtype == dspark_dtype(view.type) && output.rank == view.rank &&
              (view.rank == 0 || (output.dims && std::equal(view.dims, view.dims + view.rank, output.dims)));
  if (!fits) {
    TensorInfo given;
    if (output.rank == 0 || (output.rank > 0 && output.rank <= kMaxRank && output.dims))
      given =
          TensorInfo::make(borrowed(output).type, std::vector<Dim>(output.dims, output.dims + output.rank));
    return invalidArgument("output '" + std::string(session.program().outputs()[index].name) + "' is " +
                           found.str() + ", the tensor given for it is " + given.str());
  }
  if (dtypeBits(view.type) % 8 != 0 && !isDense(borrowed(output)))
    return {Code::Unsupported, "output '" + std::string(session.program().outputs()[index].name) + "' is " +
                                   found.str() + ", expected dense memory for it"};
  copyDenseToStrided(view.data, borrowed(output));
  return Status::ok();
}

} // namespace

const char *dspark_version(void) { return DSPARK_VERSION_TEXT; }
const char *dspark_last_error(void) { return lastError.c_str(); }

dspark_status dspark_plan_open(const char *path, dspark_plan **plan) {
  return guarded([&]() -> Status {
    if (!plan)
      return nullArgument("plan");
    *plan = nullptr;
    if (!path)
      return nullArgument("path");
    DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(path));
    DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
    auto made = std::make_unique<dspark_plan>();
    for (int value : program->inputs()) {
      const ValueInfo &info = program->values()[size_t(value)];
      made->inputs.push_back(describe(*program, info.name, info.type, info.dims, info.typeTree));
    }
    for (const OutputInfo &info : program->outputs())
      made->outputs.push_back(describe(*program, info.name, info.type, info.dims, info.typeTree));
    made->program = std::move(program);
    *plan = made.release();
    return Status::ok();
  });
}

void dspark_plan_close(dspark_plan *plan) { delete plan; }

dspark_status dspark_plan_verify(const dspark_plan *plan) {
  return guarded([&] { return plan ? plan->program->file().verifyWeights() : nullArgument("plan"); });
}

size_t dspark_plan_input_count(const dspark_plan *plan) { return plan ? plan->inputs.size() : 0; }
size_t dspark_plan_output_count(const dspark_plan *plan) { return plan ? plan->outputs.size() : 0; }

dspark_status dspark_plan_input(const dspark_plan *plan, size_t index, dspark_tensor_info *info) {
  return plan ? tensorInfo(plan->inputs, index, info, "input") : report(nullArgument("plan"));
}
dspark_status dspark_plan_output(const dspark_plan *plan, size_t index, dspark_tensor_info *info) {
  return plan ? tensorInfo(plan->outputs, index, info, "output") : report(nullArgument("plan"));
}

dspark_status dspark_plan_input_type(const dspark_plan *plan, size_t index, dspark_type *type) {
  return plan ? typeOf(plan->inputs, index, type, "input") : report(nullArgument("plan"));
}
dspark_status dspark_plan_output_type(const dspark_plan *plan, size_t index, dspark_type *type) {
  return plan ? typeOf(plan->outputs, index, type, "output") : report(nullArgument("plan"));
}

void dspark_session_options_init(dspark_session_options *options) {
  *options = {};
  options->struct_size = sizeof *options;
}

dspark_status dspark_session_create(const dspark_plan *plan, const dspark_session_options *options,
                                    dspark_session **session) {
  return guarded([&]() -> Status {
    if (!session)
      return nullArgument("session");
    *session = nullptr;
    if (!plan)
      return nullArgument("plan");
    std::unique_ptr<dspark_session> made;
    DSPARK_RETURN_IF_ERROR(makeSession(*plan, options, made));
    *session = made.release();
    return Status::ok();
  });
}

void dspark_session_destroy(dspark_session *session) { delete session; }

dspark_status dspark_session_run(dspark_session *session, const dspark_tensor *inputs, size_t input_count,
                                 dspark_tensor *outputs, size_t output_count) {
  return guarded([&]() -> Status {
    if (!session || (!inputs && input_count > 0))
      return nullArgument(session ? "inputs" : "session");
    if (outputs && output_count != session->session->outputCount())
      return invalidArgument("there are " + std::to_string(output_count) + " outputs, expected " +
                             std::to_string(session->session->outputCount()));
    session->inputs.clear();
    for (size_t i = 0; i < input_count; ++i)
      session->inputs.push_back(borrowed(inputs[i]));
    session->hasRun = false;
    DSPARK_RETURN_IF_ERROR(session->session->run(session->inputs));
    session->outputItems.clear();
    session->hasRun = true;
    for (size_t i = 0; outputs && i < output_count; ++i)
      DSPARK_RETURN_IF_ERROR(deliver(*session->session, i, outputs[i]));
    return Status::ok();
  });
}

dspark_status dspark_session_output(const dspark_session *session, size_t index, dspark_tensor *output) {
  return guarded([&]() -> Status {
    if (!session || !output)
      return nullArgument(session ? "output" : "session");
    if (!session->hasRun || index >= session->session->outputCount())
      return invalidArgument(session->hasRun ? "output " + std::to_string(index) + " does not exist"
                                             : std::string("there has been no successful run"));
    output->data = nullptr;
    return deliver(*session->session, index, *output);
  });
}

dspark_status dspark_session_run_values(dspark_session *session, const dspark_value *inputs,
                                        size_t input_count) {
  return guarded([&]() -> Status {
    if (!session || (!inputs && input_count > 0))
      return nullArgument(session ? "inputs" : "session");
    std::deque<std::vector<BorrowedValue>> nodes;
    std::vector<BorrowedValue> values(input_count);
    for (size_t i = 0; i < input_count; ++i)
      DSPARK_RETURN_IF_ERROR(borrowed(inputs[i], 0, nodes, values[i]));
    session->hasRun = false;
    DSPARK_RETURN_IF_ERROR(session->session->run(values));
    session->outputItems.clear();
    session->hasRun = true;
    return Status::ok();
  });
}

dspark_status dspark_session_output_value(const dspark_session *session, size_t index, dspark_value *value) {
  return guarded([&]() -> Status {
    if (!session || !value)
      return nullArgument(session ? "value" : "session");
    if (!session->hasRun || index >= session->session->outputCount())
      return invalidArgument(session->hasRun ? "output " + std::to_string(index) + " does not exist"
                                             : std::string("there has been no successful run"));
    const fb::ValueType *tree = session->session->program().outputs()[index].typeTree;
    TypeNodes typeNodes;
    dspark_type type = tree ? describe(*tree, typeNodes) : dspark_type{};
    *value = handedOut(session->session->outputValue(index), tree ? &type : nullptr, session->outputItems);
    return Status::ok();
  });
}

dspark_status dspark_session_save_learned(const dspark_session *session, const char *path) {
  return guarded([&]() -> Status {
    if (!session || !path)
      return nullArgument(session ? "path" : "session");
    return session->session->saveLearned(path);
  });
}

size_t dspark_session_profile_count(dspark_session *session) {
  if (!session)
    return 0;
  session->lines.clear();
  for (const auto &[key, line] : session->profile.lines)
    session->lines.push_back(&line);
  return session->lines.size();
}

dspark_status dspark_session_profile(dspark_session *session, size_t index, dspark_profile_line *line) {
  return guarded([&]() -> Status {
    if (!session || !line)
      return nullArgument(session ? "line" : "session");
    if (index >= dspark_session_profile_count(session))
      return invalidArgument("profile line " + std::to_string(index) + " does not exist");
    const Profile::Line &found = *session->lines[index];
    // Names in a plan end with a zero byte, as all FlatBuffers strings do.
    *line = {found.step->location.empty() ? "" : found.step->location.data(),
             found.step->opName.data(),
             found.kernel->name,
             found.calls,
             found.seconds,
             found.bytes,
             found.flops};
    return Status::ok();
  });
}

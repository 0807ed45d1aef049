// dspark-dump: shows what is in a plan file. See docs/dspark-dump.md.
#include "runtime/executor/PlacementProblem.h"
#include "runtime/executor/Session.h"
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

using namespace dspark;
using nlohmann::json;

namespace {

constexpr const char *kFooter = R"(exit codes:
  0 fine, 1 usage or file trouble, 2 an operator that this runtime lacks
examples:
  dspark-dump model.dsp
  dspark-dump model.dsp --dim batch=8 --json | jq '.steps[] | select(.op == "matmul")')";

std::string sectionName(uint32_t kind) {
  static constexpr const char *kNames[] = {"",   "META",      "PLAN",     "WEIGHTS",  "CODE",    "COST",
                                           "IR", "TOKENIZER", "TEMPLATE", "FUNCTION", "DRAFTERS"};
  return kind < std::size(kNames) && kind > 0 ? kNames[kind] : "kind " + std::to_string(kind);
}

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string dimsText(const Program &program, std::span<const int32_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + program.dimText(dims[i]);
  return text + "]";
}

// "sequence(f32[?, 3])"
std::string treeText(const fb::ValueType &type) {
  static constexpr const char *kKinds[] = {"", "sequence", "optional", "map"};
  std::string text;
  if (type.kind() == fb::TypeKind::Tensor) {
    text = std::string(dtypeName(DType(type.dtype()))) + (type.rank() < 0 ? "[*" : "[");
    for (unsigned i = 0; type.dims() && i < type.dims()->size(); ++i)
      text += (i ? ", " : "") + (type.dims()->Get(i) < 0 ? "?" : std::to_string(type.dims()->Get(i)));
    return text + "]";
  }
  for (const fb::ValueType *item : *type.items())
    text += (text.empty() ? "" : ", ") + treeText(*item);
  return std::string(kKinds[size_t(type.kind())]) + "(" + text + ")";
}

std::string typeText(const Program &program, DType type, std::span<const int32_t> dims,
                     const fb::ValueType *tree = nullptr) {
  if (tree)
    return treeText(*tree);
  return std::string(dtypeName(type)) + dimsText(program, dims);
}

std::string valueText(const Program &program, int value) {
  if (value < 0)
    return "-";
  std::string_view name = program.values()[size_t(value)].name;
  return name.empty() ? "%" + std::to_string(value) : std::string(name);
}

json attrJson(const Attr &attr) {
  json value;
  if (!attr.ints.empty())
    value = std::vector<int64_t>(attr.ints.begin(), attr.ints.end());
  else if (!attr.floats.empty())
    value = std::vector<double>(attr.floats.begin(), attr.floats.end());
  else
    return std::string(attr.str);
  return value.size() == 1 ? value[0] : value;
}

// --- steps, and what they would run as on this machine ---

class Dump {
public:
  Dump(const Program &program, const BoundPlan &bound) : program(program), chosen(chosenPlacement(program)) {
    for (const BoundStep &step : bound.steps)
      boundSteps[step.step] = &step;
  }

  json header() const;
  json values() const;
  json placement() const;
  json block(const BlockInfo &block) const;
  json step(const StepInfo &step) const;
  json interface() const;

private:
  json valueList(std::span<const int32_t> values) const {
    json list = json::array();
    for (int value : values)
      list.push_back(valueText(program, value));
    return list;
  }
  const Program &program;
  const Placement chosen;
  std::map<const StepInfo *, const BoundStep *> boundSteps;
};

json Dump::header() const {
  json sections = json::array();
  uint64_t end = 0;
  for (const SectionEntry &entry : program.file().sections()) {
    json section = {{"name", sectionName(entry.kind)},
                    {"offset", entry.offset},
                    {"length", entry.length},
                    {"hash", hex(entry.hash)}};
    if (entry.kind == uint32_t(SectionKind::Code))
      section["isa"] =
          entry.tag < kIsaCount ? std::string(isaName(Isa(entry.tag))) : std::to_string(entry.tag);
    end = std::max(end, entry.offset + entry.length);
    sections.push_back(std::move(section));
  }
  return {{"file", program.file().path()},
          {"bytes", end},
          {"format", std::to_string(kPlanMajor) + "." + std::to_string(kPlanMinor)},
          {"meta", json::parse(program.file().meta(), nullptr, false)},
          {"sections", sections}};
}

json Dump::interface() const {
  json inputs = json::array(), outputs = json::array();
  for (int value : program.inputs()) {
    const ValueInfo &info = program.values()[size_t(value)];
    inputs.push_back({{"name", info.name}, {"type", typeText(program, info.type, info.dims, info.typeTree)}});
  }
  for (const OutputInfo &info : program.outputs())
    outputs.push_back({{"name", info.name},
                       {"type", info.type == DType::Undefined && !info.typeTree
                                    ? "?"
                                    : typeText(program, info.type, info.dims, info.typeTree)},
                       {"value", valueText(program, info.value)}});
  return {{"inputs", inputs}, {"outputs", outputs}, {"symbols", program.symbols()}};
}

// The devices that regions may run on, the regions, and what crosses with the compiler's choice.
json Dump::placement() const {
  const fb::Plan &plan = program.file().plan();
  json devices = json::array(), regions = json::array(), crossings = json::array();
  for (unsigned d = 0; plan.devices() && d < plan.devices()->size(); ++d) {
    const fb::Device &device = *plan.devices()->Get(d);
    devices.push_back({{"name", device.name()->str()},
                       {"kind", device.kind() ? device.kind()->str() : ""},
                       {"memory_bytes", device.memory()}});
  }
  for (const RegionInfo &region : program.regions()) {
    json variants = json::array();
    for (const RegionInfo::Variant &variant : region.variants)
      variants.push_back({{"device", program.devices()[size_t(variant.device)]},
                          {"predicted_s", variant.seconds},
                          {"weight_bytes", variant.bytes}});
    json choices = json::array();
    for (int variant : region.choices)
      choices.push_back(program.devices()[size_t(region.variants[size_t(variant)].device)]);
    regions.push_back({{"steps", region.steps},
                       {"variants", variants},
                       {"chosen", program.devices()[size_t(region.variants[size_t(region.chosen)].device)]},
                       {"choices", choices},
                       {"pinned", region.isPinned}});
  }
  json sizes = json::array();
  for (const SizesInfo &entry : program.sizes()) {
    json &dims = sizes.emplace_back(json::object());
    for (auto [symbol, size] : entry)
      dims[program.symbols()[size_t(symbol)]] = size;
  }
  for (const Crossing &crossing : crossingsOf(program, chosen))
    crossings.push_back({{"value", valueText(program, crossing.value)},
                         {"from", program.devices()[size_t(crossing.from)]},
                         {"to", program.devices()[size_t(crossing.to)]},
                         {"after_step", crossing.step},
                         {"first_use", crossing.firstUse}});
  return {{"devices", devices}, {"regions", regions}, {"sizes", sizes}, {"transfers", crossings}};
}

json Dump::values() const {
  json list = json::array();
  const auto &plan = program.file().plan();
  for (size_t i = 0; i < program.values().size(); ++i) {
    const ValueInfo &info = program.values()[i];
    if (info.kind != fb::ValueKind::Constant)
      continue;
    const fb::Blob &blob = *plan.values()->Get(unsigned(i))->blob();
    json value = {{"value", valueText(program, int(i))},
                  {"type", typeText(program, info.type, info.dims)},
                  {"file", blob.file() < 0 ? "WEIGHTS" : plan.files()->Get(unsigned(blob.file()))->str()},
                  {"offset", blob.offset()},
                  {"bytes", blob.length()}};
    if (!info.layout.empty())
      value["layout"] = info.layout;
    if (blob.expanded() > 0)
      value["expanded"] = blob.expanded();
    list.push_back(std::move(value));
  }
  return list;
}

json Dump::step(const StepInfo &step) const {
  static constexpr const char *kKinds[] = {"kernel", "dims", "if", "loop", "list"};
  json entry = {
      {"step", step.index},    {"kind", kKinds[size_t(step.kind)]}, {"op", step.opName},
      {"node", step.location}, {"inputs", valueList(step.inputs)},  {"outputs", valueList(step.outputs)}};
  if (int index = bodyIndex(program, step); index >= 0 && !chosen.empty() && chosen[size_t(index)] > 0)
    entry["device"] = program.devices()[chosen[size_t(index)]];
  if (!step.kernel.empty())
    entry["preferred_kernel"] = step.kernel;
  for (const Attr &attr : step.attrs)
    entry["attrs"][std::string(attr.name)] = attrJson(attr);
  if (!step.symbol.empty())
    entry["symbol"] = step.symbol;
  for (int expression : step.dims)
    entry["dims"].push_back(program.dimText(expression));
  if (auto it = boundSteps.find(&step); it != boundSteps.end()) {
    const BoundStep &found = *it->second;
    entry["kernel"] = found.kernel->name;
    entry["isa"] = isaName(found.kernel->isa);
    entry["tiles"] = found.tiles;
    entry["flops"] = found.flops;
    entry["bytes"] = found.bytes;
    for (size_t k = 0; k < found.results.size(); ++k)
      if (found.results[k].present())
        entry["buffers"].push_back(
            {{"value", valueText(program, step.outputs[k])},
             {"type", found.results[k].str()},
             {"offset", found.offsets[k]},
             {"bytes", dtypeBytes(found.results[k].type, found.results[k].elements().value())}});
  }
  for (const BlockInfo &inner : step.blocks)
    entry["blocks"].push_back(block(inner));
  return entry;
}

json Dump::block(const BlockInfo &block) const {
  json steps = json::array();
  for (const StepInfo &inner : block.steps)
    steps.push_back(step(inner));
  return {{"args", valueList(block.args)}, {"steps", steps}, {"results", valueList(block.results)}};
}

// --- text, from the same JSON ---

std::string joined(const json &list) {
  std::string text;
  for (const json &item : list)
    text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
  return text;
}

void printStep(const json &step, int indent) {
  std::string line = std::to_string(step["step"].get<int>());
  line = std::string(size_t(std::max(0, 6 - int(line.size()))), ' ') + line + "  " +
         std::string(size_t(indent), ' ');
  std::string kind = step["kind"];
  std::cout << line << joined(step["outputs"]) << " = "
            << (kind == "kernel" || kind == "list" ? step["op"].get<std::string>() : kind) << "("
            << joined(step["inputs"]) << ")";
  if (step.contains("dims"))
    std::cout << " [" << joined(step["dims"]) << "]";
  if (step.contains("attrs"))
    for (const auto &[name, value] : step["attrs"].items()) {
      std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      constexpr size_t kLongest = 60; // fused programs are long
      std::cout << " " << name << "=" << (text.size() > kLongest ? text.substr(0, kLongest) + "..." : text);
    }
  if (step.contains("device"))
    std::cout << " on " << step["device"].get<std::string>();
  if (step.contains("kernel"))
    std::cout << "  | " << step["kernel"].get<std::string>();
  if (step.contains("symbol"))
    std::cout << " code " << step["symbol"].get<std::string>();
  if (step.contains("buffers"))
    for (const json &buffer : step["buffers"])
      std::cout << " " << buffer["type"].get<std::string>() << "@" << buffer["offset"].get<int64_t>();
  if (!step["node"].get<std::string>().empty())
    std::cout << "  # " << step["node"].get<std::string>();
  std::cout << "\n";
  if (!step.contains("blocks"))
    return;
  for (const json &inner : step["blocks"]) {
    std::cout << "        " << std::string(size_t(indent), ' ') << "block (" << joined(inner["args"])
              << ")\n";
    for (const json &innerStep : inner["steps"])
      printStep(innerStep, indent + 2);
    std::cout << "        " << std::string(size_t(indent), ' ') << "gives " << joined(inner["results"])
              << "\n";
  }
}

// "cpu for rows=1, npu for rows=64".
std::string choicesText(const json &sizes, const json &choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    text += (i ? ", " : "") + choices[i].get<std::string>() + " for";
    for (const auto &[name, size] : sizes[i].items())
      text += " " + name + "=" + size.dump();
  }
  return text;
}

void printPlacement(const json &dump) {
  for (const json &device : dump["devices"])
    std::cout << "device   " << device["name"].get<std::string>() << " (" << device["kind"].get<std::string>()
              << "), " << device["memory_bytes"] << " bytes\n";
  for (size_t r = 0; r < dump["regions"].size(); ++r) {
    const json &region = dump["regions"][r];
    std::cout << "region   " << r << " on " << region["chosen"].get<std::string>()
              << (region["pinned"].get<bool>() ? ", pinned" : "") << ": steps " << joined(region["steps"])
              << ";";
    for (const json &variant : region["variants"])
      std::cout << " " << variant["device"].get<std::string>() << " "
                << variant["predicted_s"].get<double>() * 1e6 << " us";
    std::cout << "\n";
    if (!region["choices"].empty())
      std::cout << "choices  " << choicesText(dump["sizes"], region["choices"]) << "\n";
  }
  for (const json &crossing : dump["transfers"])
    std::cout << "transfer " << crossing["value"].get<std::string>() << " from "
              << crossing["from"].get<std::string>() << " to " << crossing["to"].get<std::string>()
              << " after step " << crossing["after_step"] << ", used by step " << crossing["first_use"]
              << "\n";
}

void printText(const json &dump) {
  std::cout << "plan     " << dump["file"].get<std::string>() << ", " << dump["bytes"] << " bytes, format "
            << dump["format"].get<std::string>() << "\n";
  for (const json &section : dump["sections"]) {
    std::string name = section["name"];
    if (section.contains("isa"))
      name += " " + section["isa"].get<std::string>();
    std::printf("section  %-14s offset %10llu  length %12llu  hash %s\n", name.c_str(),
                static_cast<unsigned long long>(section["offset"].get<uint64_t>()),
                static_cast<unsigned long long>(section["length"].get<uint64_t>()),
                section["hash"].get<std::string>().c_str());
  }
  std::fflush(stdout);
  std::cout << "meta     " << dump["meta"].dump() << "\n";
  for (const char *kind : {"inputs", "outputs"})
    for (const json &tensor : dump[kind])
      std::cout << (kind[0] == 'i' ? "input    " : "output   ") << tensor["name"].get<std::string>() << "  "
                << tensor["type"].get<std::string>() << "\n";
  for (const json &value : dump["constants"])
    std::cout << "constant " << value["value"].get<std::string>() << "  " << value["type"].get<std::string>()
              << (value.contains("layout") ? " packed as " + value["layout"].get<std::string>() : "") << ", "
              << value["bytes"] << " bytes at " << value["file"].get<std::string>() << "+" << value["offset"]
              << "\n";
  printPlacement(dump);
  std::cout << "steps    " << dump["step_count"] << ", kernels and buffers";
  if (dump.contains("bound_error"))
    std::cout << " unknown: " << dump["bound_error"].get<std::string>();
  else
    std::cout << " for " << joined(dump["bound_inputs"]) << " on this machine ("
              << dump["isa"].get<std::string>() << ")";
  std::cout << "\n";
  for (const json &step : dump["body"]["steps"])
    printStep(step, 0);
  if (dump.contains("arena"))
    std::cout << "arena    " << dump["arena"]["bytes"] << " bytes, at least "
              << dump["arena"]["lower_bound_bytes"] << " are alive at once\n";
  if (dump.contains("bound_until"))
    std::cout << "data     decides what runs from step " << dump["bound_until"] << " on\n";
}

// --- binding ---

struct DumpOptions {
  std::string plan;
  std::vector<std::string> dims;
  bool isJson = false;
};

Status parseDims(const DumpOptions &options, const Program &program, std::vector<Dim> &symbols) {
  symbols.assign(program.symbolCount(), Dim(1));
  for (const std::string &text : options.dims) {
    size_t equals = text.rfind('=');
    int64_t value = -1;
    std::string name = text.substr(0, equals);
    bool isGood = equals != std::string::npos && equals > 0;
    if (isGood) {
      auto [rest, error] = std::from_chars(text.data() + equals + 1, text.data() + text.size(), value);
      isGood = error == std::errc() && rest == text.data() + text.size() && value >= 0;
    }
    if (!isGood)
      return invalidArgument("--dim expects NAME=N with N >= 0, found '" + text + "'");
    auto it = std::find(program.symbols().begin(), program.symbols().end(), name);
    if (it == program.symbols().end())
      return invalidArgument("--dim " + name + ": the plan has no dim of that name");
    symbols[size_t(it - program.symbols().begin())] = Dim(value);
  }
  return Status::ok();
}

// Binds the plan for inputs of the given dims, without data.
StatusOr<BoundPlan> bindPlan(Session &session, std::span<const Dim> symbols, json &dump) {
  const Program &program = session.program();
  std::vector<Dim> expressions;
  program.evaluate(symbols, expressions);
  std::vector<std::vector<int64_t>> dims;
  alignas(64) static std::byte nothing[64];
  std::vector<BorrowedValue> inputs; // lists are empty ones
  dump["bound_inputs"] = json::array();
  for (int value : program.inputs()) {
    const ValueInfo &info = program.values()[size_t(value)];
    dims.emplace_back();
    std::vector<Dim> shape;
    for (int expression : info.dims) {
      Dim dim = expressions[size_t(expression)];
      if (!dim.isConst() || dim.value() < 0)
        return invalidArgument("input '" + std::string(info.name) + "': dim " + program.dimText(expression) +
                               " is " + dim.str());
      dims.back().push_back(dim.value());
      shape.push_back(dim);
    }
    dump["bound_inputs"].push_back(std::string(info.name) + " " +
                                   (info.typeTree ? "empty" : TensorInfo::make(info.type, shape).str()));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const ValueInfo &info = program.values()[size_t(program.inputs()[i])];
    inputs.push_back({{nothing, info.type, int32_t(dims[i].size()), dims[i].data(), nullptr},
                      info.typeTree != nullptr,
                      nullptr,
                      0});
  }
  return session.bind(std::span<const BorrowedValue>(inputs));
}

Status run(const DumpOptions &options) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(options.plan));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  std::vector<Dim> symbols;
  DSPARK_RETURN_IF_ERROR(parseDims(options, *program, symbols));
  SessionOptions sessionOptions;
  sessionOptions.threads = 1;
  DSPARK_ASSIGN_OR_RETURN(auto session, Session::create(program, sessionOptions));
  json dump;
  auto bound = bindPlan(*session, symbols, dump);
  BoundPlan plan = bound.isOk() ? *bound : BoundPlan();
  Dump parts(*program, plan);
  dump.update(parts.header());
  dump.update(parts.interface());
  dump["constants"] = parts.values();
  dump.update(parts.placement());
  dump["step_count"] = program->stepCount();
  dump["isa"] = isaName(activeIsa());
  dump["body"] = parts.block(program->body());
  if (bound.isOk())
    dump["arena"] = {{"bytes", plan.arenaBytes}, {"lower_bound_bytes", plan.lowerBound}};
  else
    dump["bound_error"] = bound.status().message();
  if (plan.endsAt)
    dump["bound_until"] = plan.endsAt->index;
  if (options.isJson)
    std::cout << dump.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
  else
    printText(dump);
  return Status::ok();
}

// One row of the kernels a line: operator, name, instruction-set level.
void printKernels() {
  for (const Kernel &kernel : allKernels())
    std::cout << kernel.op << '\t' << kernel.name << '\t' << isaName(kernel.isa) << '\n';
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Shows a plan: sections, inputs and outputs, constants, steps with their kernels and buffers.",
               "dspark-dump");
  app.footer(kFooter);
  DumpOptions options;
  app.add_option("PLAN", options.plan, "the plan file")->required();
  app.add_option("--dim", options.dims,
                 "size of a symbolic dim that kernels and buffers are shown for, NAME=N (default 1)");
  app.add_flag_callback(
      "--list-kernels",
      [] {
        printKernels();
        throw CLI::Success();
      },
      "print the kernels of this runtime, tab-separated, and stop");
  app.add_flag("--json", options.isJson, "print one JSON object instead of text");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  Status status;
  try {
    status = run(options);
  } catch (const std::exception &error) {
    status = {Code::Internal, options.plan + ": " + error.what()};
  }
  if (status.isOk())
    return 0;
  std::cerr << "dspark-dump: " << status.message() << "\n";
  return status.code() == Code::Unsupported ? 2 : status.code() == Code::OutOfMemory ? 4 : 1;
}

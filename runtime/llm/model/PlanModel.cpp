#include "runtime/llm/model/PlanModel.h"
#include "runtime/llm/model/TableWidth.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {

constexpr int64_t kMostPages = int64_t(1) << 31, kLargestPage = 4096;
constexpr std::string_view kBatchInputs[] = {"tokens",           "positions",   "query_offsets",
                                             "sequence_lengths", "block_table", "logit_rows"};
// A step is prepared once for each shape that it has. So that few are met, tables are widened (TableWidth.h)
// and empty sequences make their number 8 at least and a power of two: kernels pass over what is not used.
constexpr int64_t kLeastSequences = 8;

// What the plan's META says of the model.
StatusOr<int64_t> modelNumber(const Program &program, const char *key) {
  auto meta = nlohmann::json::parse(program.file().meta(), nullptr, /*allow_exceptions=*/false);
  auto model = meta.is_object() ? meta.find("language_model") : meta.end();
  if (!meta.is_object() || model == meta.end() || !model->is_object() || !model->contains(key) ||
      !(*model)[key].is_number_integer())
    return invalidArgument(program.file().path() +
                           ": the plan is no language model: META has no language_model." + key);
  return (*model)[key].get<int64_t>();
}

std::string text(int64_t number) { return std::to_string(number); }

} // namespace

StatusOr<std::unique_ptr<PlanModel>> PlanModel::create(std::shared_ptr<const Program> program,
                                                       const PlanModelOptions &options) {
  if (options.pageSize < 1 || options.pageSize > kLargestPage)
    return invalidArgument("page size is " + text(options.pageSize) + ", expected 1 to " +
                           text(kLargestPage));
  if (options.cacheTokens < 0 || options.cacheTokens / options.pageSize >= kMostPages)
    return invalidArgument("cache of " + text(options.cacheTokens) + " tokens, expected 0 to " +
                           text(kMostPages * options.pageSize));
  if (options.maxRows < 1 || options.maxRows > 1 << 20)
    return invalidArgument("rows of a step are " + text(options.maxRows) + ", expected 1 to " +
                           text(1 << 20));
  std::unique_ptr<PlanModel> model(new PlanModel);
  DSPARK_RETURN_IF_ERROR(model->readFacts(*program, options));
  DSPARK_RETURN_IF_ERROR(model->readInputs(
      *program, [&](const ValueInfo &input) { return model->addCache(*program, input, options); }));
  DSPARK_ASSIGN_OR_RETURN(model->runner, Session::create(std::move(program), options.session));
  return model;
}

StatusOr<std::unique_ptr<PlanModel>> PlanModel::openFunction(std::string_view function,
                                                             const SessionOptions &session) const {
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(this->program().sharedFile(), function));
  std::unique_ptr<PlanModel> model(new PlanModel);
  model->modelFacts = modelFacts;
  DSPARK_RETURN_IF_ERROR(model->readInputs(*program, [&](const ValueInfo &input) {
    const auto cache = std::ranges::find(caches, input.name, &Cache::name);
    if (cache == caches.end() || cache->type != input.type)
      return corruptFile(program->file().path() + ": function '" + std::string(function) + "' has a cache '" +
                         std::string(input.name) + "' that the model does not have");
    model->caches.push_back(*cache);
    return Status::ok();
  }));
  DSPARK_ASSIGN_OR_RETURN(model->runner, Session::create(std::move(program), session));
  return model;
}

BorrowedTensor PlanModel::cacheNamed(std::string_view name) const {
  const auto cache = std::ranges::find(caches, name, &Cache::name);
  if (cache == caches.end())
    return {};
  return {cache->bytes.get(), cache->type, int32_t(cache->dims.size()), cache->dims.data(), nullptr};
}

Status PlanModel::readFacts(const Program &program, const PlanModelOptions &options) {
  DSPARK_ASSIGN_OR_RETURN(modelFacts.contextLength, modelNumber(program, "context_length"));
  DSPARK_ASSIGN_OR_RETURN(int64_t vocabulary, modelNumber(program, "vocabulary"));
  if (vocabulary < 1 || vocabulary > INT32_MAX || modelFacts.contextLength < 1)
    return corruptFile(program.file().path() + ": META gives a vocabulary of " + text(vocabulary) +
                       " and a context of " + text(modelFacts.contextLength) + " tokens");
  modelFacts.vocabulary = int32_t(vocabulary);
  if (StatusOr<int64_t> window = modelNumber(program, "window"); window.isOk())
    modelFacts.window = std::max<int64_t>(*window, 0);
  modelFacts.pageSize = options.pageSize;
  modelFacts.maxRows = options.maxRows;
  int64_t tokens = options.cacheTokens > 0 ? options.cacheTokens : modelFacts.contextLength;
  modelFacts.pages = (tokens + options.pageSize - 1) / options.pageSize;
  return Status::ok();
}

// The batch first, then caches: `add` takes them in.
Status PlanModel::readInputs(const Program &program, const std::function<Status(const ValueInfo &)> &add) {
  std::span<const int> values = program.inputs();
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueInfo &input = program.values()[size_t(values[i])];
    bool isBatch = i < std::size(kBatchInputs);
    if (isBatch != !input.isState || (isBatch && (input.name != kBatchInputs[i] || input.type != DType::I32)))
      return invalidArgument(program.file().path() + ": the plan is no language model: input " +
                             text(int64_t(i)) + " is '" + std::string(input.name) + "'");
    if (!isBatch)
      DSPARK_RETURN_IF_ERROR(add(input));
  }
  if (caches.empty() || program.outputs().size() != 1)
    return invalidArgument(program.file().path() + ": the plan is no language model: it has " +
                           text(int64_t(caches.size())) + " caches and " +
                           text(int64_t(program.outputs().size())) + " outputs");
  return Status::ok();
}

// [pages, heads, page size], and for rows their size behind it.
Status PlanModel::addCache(const Program &program, const ValueInfo &input, const PlanModelOptions &options) {
  std::vector<Dim> values;
  program.evaluate(std::vector<Dim>(program.symbolCount()), values);
  auto fixed = [&](size_t d) {
    Dim dim = values[size_t(input.dims[d])];
    return dim.isConst() && dim.value() > 0 ? dim.value() : int64_t(-1);
  };
  size_t rank = input.dims.size();
  bool fits =
      (rank == 3 || rank == 4) && fixed(1) > 0 && (rank == 3 || fixed(3) > 0) && dtypeBits(input.type) >= 8;
  Cache cache{std::string(input.name),
              input.type,
              {modelFacts.pages, fits ? fixed(1) : 0, options.pageSize},
              0,
              nullptr};
  if (fits && rank == 4)
    cache.dims.push_back(fixed(3));
  cache.pageBytes = dtypeBits(input.type) / 8;
  int64_t all = 0;
  for (size_t d = 1; d < cache.dims.size() && fits; ++d)
    fits = !__builtin_mul_overflow(cache.pageBytes, cache.dims[d], &cache.pageBytes);
  if (!fits || __builtin_mul_overflow(cache.pageBytes, modelFacts.pages, &all))
    return corruptFile(program.file().path() + ": cache '" + std::string(input.name) +
                       "' has no dims [pages, heads, page_size] or [pages, heads, page_size, size]");
  cache.bytes.reset(static_cast<std::byte *>(std::calloc(size_t(modelFacts.pages), size_t(cache.pageBytes))),
                    std::free);
  if (!cache.bytes)
    return {Code::OutOfMemory, "a cache of " + text(modelFacts.pages) + " pages of " + text(cache.pageBytes) +
                                   " bytes does not fit; ask for fewer tokens"};
  modelFacts.pageBytes += cache.pageBytes;
  caches.push_back(std::move(cache));
  return Status::ok();
}

Status PlanModel::check(const ForwardBatch &batch) const {
  int64_t rows = int64_t(batch.tokens.size()), sequences = int64_t(batch.sequenceLengths.size());
  if (rows > modelFacts.maxRows)
    return invalidArgument("the step has " + text(rows) + " rows, expected at most " +
                           text(modelFacts.maxRows));
  if (int64_t(batch.queryOffsets.size()) != sequences + 1 || batch.queryOffsets[0] != 0 ||
      batch.queryOffsets[size_t(sequences)] != rows || batch.tablePages < 0 ||
      int64_t(batch.blockTable.size()) != sequences * batch.tablePages)
    return invalidArgument("offsets and tables do not fit " + text(sequences) + " sequences of " +
                           text(rows) + " rows");
  for (int32_t token : batch.tokens)
    if (token < 0 || token >= modelFacts.vocabulary)
      return invalidArgument("token " + text(token) + " is outside the vocabulary of " +
                             text(modelFacts.vocabulary));
  for (int64_t s = 0; s < sequences; ++s) {
    int64_t begin = batch.queryOffsets[size_t(s)], end = batch.queryOffsets[size_t(s + 1)];
    int64_t length = batch.sequenceLengths[size_t(s)];
    if (end < begin || length < end - begin || length > batch.tablePages * modelFacts.pageSize ||
        length > modelFacts.contextLength)
      return invalidArgument(
          "sequence " + text(s) + " has " + text(end - begin) + " rows and " + text(length) +
          " tokens, expected at most " +
          text(std::min(batch.tablePages * modelFacts.pageSize, modelFacts.contextLength)));
    int64_t seen =
        modelFacts.window > 0 ? std::max<int64_t>(length - (end - begin) + 1 - modelFacts.window, 0) : 0;
    for (int64_t j = seen / modelFacts.pageSize; j * modelFacts.pageSize < length; ++j)
      if (int32_t page = batch.blockTable[size_t(s * batch.tablePages + j)];
          page < 0 || page >= modelFacts.pages)
        return invalidArgument("sequence " + text(s) + " names page " + text(page) + " of " +
                               text(modelFacts.pages));
  }
  for (size_t i = 0; i < batch.logitRows.size(); ++i)
    if (batch.logitRows[i] < 0 || batch.logitRows[i] >= rows)
      return invalidArgument("logits of row " + text(batch.logitRows[i]) + " are wanted of " + text(rows) +
                             " rows");
  return Status::ok();
}

// Every row's place in its sequence; offsets, lengths and table padded.
void PlanModel::layOut(const ForwardBatch &batch) {
  size_t sequences = batch.sequenceLengths.size();
  positions.resize(batch.tokens.size());
  int64_t longest = 0;
  for (size_t s = 0; s < sequences; ++s) {
    int32_t end = batch.queryOffsets[s + 1], length = batch.sequenceLengths[s];
    for (int32_t row = batch.queryOffsets[s]; row < end; ++row)
      positions[size_t(row)] = length - (end - row);
    longest = std::max<int64_t>(longest, length);
  }
  size_t padded = std::max(size_t(kLeastSequences), std::bit_ceil(sequences));
  offsets.assign(padded + 1, int32_t(batch.tokens.size()));
  std::ranges::copy(batch.queryOffsets, offsets.begin());
  lengths.assign(padded, 0);
  std::ranges::copy(batch.sequenceLengths, lengths.begin());
  int64_t used = (longest + modelFacts.pageSize - 1) / modelFacts.pageSize;
  tablePages = tableWidth(used);
  table.assign(padded * size_t(tablePages), 0);
  for (size_t s = 0; s < sequences; ++s)
    std::copy_n(batch.blockTable.begin() + std::ptrdiff_t(int64_t(s) * batch.tablePages),
                std::min(used, batch.tablePages), table.begin() + std::ptrdiff_t(int64_t(s) * tablePages));
}

StatusOr<std::span<const float>> PlanModel::forward(const ForwardBatch &batch) {
  DSPARK_RETURN_IF_ERROR(check(batch));
  layOut(batch);
  int64_t rows = int64_t(batch.tokens.size()), wanted = int64_t(batch.logitRows.size());
  int64_t tableDims[2] = {int64_t(lengths.size()), tablePages}, bounds = tableDims[0] + 1;
  auto lend = [&](std::span<const int32_t> data, const int64_t *dims, int rank) {
    inputs.push_back({const_cast<int32_t *>(data.data()), DType::I32, rank, dims, nullptr}); // only read
  };
  inputs.clear();
  lend(batch.tokens, &rows, 1);
  lend(positions, &rows, 1);
  lend(offsets, &bounds, 1);
  lend(lengths, tableDims, 1);
  lend(table, tableDims, 2);
  lend(batch.logitRows, &wanted, 1);
  for (const Cache &cache : caches)
    inputs.push_back(BorrowedTensor{cache.bytes.get(), cache.type, int32_t(cache.dims.size()),
                                    cache.dims.data(), nullptr});
  DSPARK_RETURN_IF_ERROR(runner->run(inputs));
  const TensorView &logits = runner->output(0);
  if (logits.type != DType::F32 || logits.elements() != wanted * modelFacts.vocabulary)
    return Status(Code::CorruptFile, "the plan gives logits of " + text(logits.elements()) +
                                         " elements, expected " + text(wanted) + " rows of " +
                                         text(modelFacts.vocabulary));
  return std::span<const float>(logits.as<float>(), size_t(logits.elements()));
}

Status PlanModel::copyPage(int32_t from, int32_t to) {
  for (int32_t page : {from, to})
    if (page < 0 || page >= modelFacts.pages)
      return invalidArgument("page " + text(page) + " is outside the cache of " + text(modelFacts.pages));
  for (const Cache &cache : caches)
    std::memcpy(cache.bytes.get() + to * cache.pageBytes, cache.bytes.get() + from * cache.pageBytes,
                size_t(cache.pageBytes));
  return Status::ok();
}

} // namespace dspark::llm

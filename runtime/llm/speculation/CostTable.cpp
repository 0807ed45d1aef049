#include "runtime/llm/speculation/CostTable.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {

constexpr double kLeastRise = 1.01;   // of a line: below it is noise
constexpr double kLargestRatio = 2;   // of an observed step to the expected one
constexpr double kSpeedRate = 0.1;    // of the whole table: follows within ten steps
constexpr double kMostKnown = 20;     // steps that a point is averaged over
constexpr int32_t kMostPoints = 4096; // of a table that is read from a file

/// Pool adjacent violators: the never falling sequence nearest to `values` by least squares, each of which
/// counts `weights`, which are positive.
std::vector<double> neverFalling(const std::vector<double> &values, const std::vector<double> &weights) {
  struct Pool {
    double mean, weight;
    size_t count;
  };
  std::vector<Pool> pools;
  for (size_t i = 0; i < values.size(); ++i) {
    pools.push_back({values[i], weights[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool &before = pools.back();
      before.mean = (before.mean * before.weight + last.mean * last.weight) / (before.weight + last.weight);
      before.weight += last.weight;
      before.count += last.count;
    }
  }
  std::vector<double> result;
  for (const Pool &pool : pools)
    result.insert(result.end(), pool.count, pool.mean);
  return result;
}

/// Every width up to a tile of 8 rows, every second up to two of them, then half as many again.
int64_t nextWidth(int64_t drafts) {
  return drafts < 8 ? drafts + 1 : drafts < 16 ? drafts + 2 : drafts + drafts / 2;
}

std::string named(const CostPoint &point) {
  return "cost of " + std::to_string(point.drafts) + " drafts at " + std::to_string(point.sequences) +
         " sequences";
}

Status check(const CostPoint &point) {
  if (point.sequences < 1 || point.drafts < 0)
    return invalidArgument(named(point) + ": expected a sequence at least and no negative count");
  if (!std::isfinite(point.seconds) || point.seconds <= 0)
    return invalidArgument(named(point) + " is " + std::to_string(point.seconds) + " s: it was not measured");
  return Status::ok();
}

} // namespace

std::vector<CostPoint> CostTable::pointsToMeasure(int32_t sequences, int32_t drafts) {
  std::vector<CostPoint> points;
  for (int32_t s = 1; s <= sequences; s = s < sequences ? std::min(2 * s, sequences) : s + 1) {
    const int64_t most = int64_t(s) * drafts;
    for (int64_t d = 0; d <= most; d = d < most ? std::min(nextWidth(d), most) : d + 1)
      points.push_back({s, int32_t(d), 0});
  }
  return points;
}

StatusOr<CostTable> CostTable::create(std::vector<CostPoint> points, Kind kind) {
  if (points.empty())
    return invalidArgument("a cost table without points");
  for (const CostPoint &point : points)
    DSPARK_RETURN_IF_ERROR(check(point));
  std::sort(points.begin(), points.end(), [](const CostPoint &a, const CostPoint &b) {
    return std::pair(a.sequences, a.drafts) < std::pair(b.sequences, b.drafts);
  });
  CostTable table;
  for (const CostPoint &point : points) {
    if (table.lines.empty() || table.lineSequences.back() != point.sequences) {
      table.lineSequences.push_back(point.sequences);
      table.lines.push_back({});
    }
    Line &line = table.lines.back();
    if (!line.drafts.empty() && line.drafts.back() == point.drafts)
      return invalidArgument(named(point) + " is given twice");
    line.drafts.push_back(point.drafts);
    line.measured.push_back(point.seconds);
    line.known.push_back(kMostKnown);
  }
  for (size_t i = 0; i < table.lines.size(); ++i) {
    Line &line = table.lines[i];
    line.seconds = neverFalling(line.measured, line.known);
    if (kind == Kind::Model && line.seconds.back() < kLeastRise * line.seconds.front())
      return invalidArgument("the cost table is flat at " + std::to_string(table.lineSequences[i]) +
                             " sequences (" + std::to_string(line.seconds.front()) + " to " +
                             std::to_string(line.seconds.back()) + " s): measure more drafts");
  }
  return table;
}

// A line for every doubling of sequences between the measured ones.
void CostTable::addLines() {
  const CostTable given = *this;
  for (int32_t s = 2 * lineSequences.front(); s < lineSequences.back(); s *= 2) {
    const auto at = std::lower_bound(lineSequences.begin(), lineSequences.end(), s);
    if (*at == s)
      continue;
    Line line;
    const Line &wider = lines[size_t(at - lineSequences.begin())];
    for (int32_t drafts : wider.drafts) {
      line.drafts.push_back(drafts);
      line.measured.push_back(given.seconds(s, drafts) / given.speed);
      line.known.push_back(1);
    }
    line.seconds = neverFalling(line.measured, line.known);
    lines.insert(lines.begin() + (at - lineSequences.begin()), std::move(line));
    lineSequences.insert(at, s);
  }
}

// Points for the widths between those that a line has.
void CostTable::addWidths(Line &line) {
  const Line given = line;
  line = {};
  size_t next = 0;
  const auto keepUpTo = [&](int64_t drafts) {
    for (; next < given.drafts.size() && given.drafts[next] <= drafts; ++next) {
      line.drafts.push_back(given.drafts[next]);
      line.measured.push_back(given.measured[next]);
      line.known.push_back(given.known[next]);
    }
  };
  for (int64_t drafts = given.drafts.front(); drafts < given.drafts.back(); drafts = nextWidth(drafts)) {
    keepUpTo(drafts);
    if (line.drafts.back() == drafts)
      continue;
    line.drafts.push_back(int32_t(drafts));
    line.measured.push_back(onLine(given, double(drafts)));
    line.known.push_back(1);
  }
  keepUpTo(given.drafts.back());
  line.seconds = neverFalling(line.measured, line.known);
}

void CostTable::refine() {
  addLines();
  for (Line &line : lines)
    addWidths(line);
}

CostTable::Neighbours CostTable::neighbours(const std::vector<int32_t> &at, int32_t query) {
  const size_t right = size_t(std::lower_bound(at.begin(), at.end(), query) - at.begin());
  if (right == at.size())
    return {right - 1, right - 1, 0};
  if (right == 0 || at[right] == query)
    return {right, right, 0};
  return {right - 1, right, double(query - at[right - 1]) / double(at[right] - at[right - 1])};
}

double CostTable::onLine(const Line &line, double drafts) {
  const Neighbours near = neighbours(line.drafts, int32_t(drafts));
  const double within =
      line.seconds[near.left] + near.toRight * (line.seconds[near.right] - line.seconds[near.left]);
  const size_t last = line.drafts.size() - 1;
  if (last == 0 || drafts <= line.drafts[last])
    return within;
  const auto slope = [&](size_t from) {
    return (line.seconds[last] - line.seconds[from]) / double(line.drafts[last] - line.drafts[from]);
  };
  return within + (drafts - line.drafts[last]) * std::max(slope(last - 1), slope(0));
}

double CostTable::seconds(int32_t sequences, int32_t drafts) const {
  const Neighbours near = neighbours(lineSequences, sequences);
  const double left = onLine(lines[near.left], drafts), right = onLine(lines[near.right], drafts);
  double result = left + near.toRight * (right - left);
  const size_t last = lines.size() - 1;
  if (last > 0 && sequences > lineSequences[last]) { // more sequences than were measured
    const double slope =
        (right - onLine(lines[last - 1], drafts)) / double(lineSequences[last] - lineSequences[last - 1]);
    result += std::max(slope, 0.0) * double(sequences - lineSequences[last]);
  }
  return result * speed;
}

// A guess gives way to the first steps, a point that is known well to none in particular.
void CostTable::correct(Line &line, size_t point, double ratio, double weight) {
  if (weight <= 0)
    return;
  line.known[point] = std::min(line.known[point] + weight, kMostKnown);
  line.measured[point] *= std::pow(ratio, weight / line.known[point]);
}

void CostTable::observe(int32_t sequences, int32_t drafts, double measured) {
  if (!std::isfinite(measured) || measured <= 0)
    return;
  const double ratio = std::clamp(measured / seconds(sequences, drafts), 1 / kLargestRatio, kLargestRatio);
  const Neighbours line = neighbours(lineSequences, sequences);
  double known = 0; // steps that the expected time was known from: what a guess gets wrong is not the speed
  for (const auto &[index, lineWeight] :
       {std::pair(line.left, 1 - line.toRight), std::pair(line.right, line.toRight)}) {
    Line &touched = lines[index];
    const Neighbours point = neighbours(touched.drafts, drafts);
    known += lineWeight * ((1 - point.toRight) * touched.known[point.left] +
                           point.toRight * touched.known[point.right]);
    correct(touched, point.left, ratio, lineWeight * (1 - point.toRight));
    correct(touched, point.right, ratio, lineWeight * point.toRight);
    touched.seconds = neverFalling(touched.measured, touched.known);
  }
  speed *= std::pow(ratio, kSpeedRate * known / kMostKnown);
}

std::string CostTable::toJson() const {
  nlohmann::json points = nlohmann::json::array();
  for (size_t l = 0; l < lines.size(); ++l)
    for (size_t i = 0; i < lines[l].drafts.size(); ++i)
      points.push_back(
          {lineSequences[l], lines[l].drafts[i], lines[l].measured[i] * speed, lines[l].known[i]});
  return nlohmann::json{{"sequences_drafts_seconds", points}}.dump();
}

StatusOr<CostTable> CostTable::fromJson(std::string_view text, Kind kind) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("sequences_drafts_seconds"))
    return corruptFile("a cost table is an object with \"sequences_drafts_seconds\"");
  const nlohmann::json &rows = json["sequences_drafts_seconds"];
  if (!rows.is_array() || rows.size() > size_t(kMostPoints))
    return corruptFile("a cost table has up to " + std::to_string(kMostPoints) + " points");
  std::vector<CostPoint> points;
  std::map<std::pair<int32_t, int32_t>, double> known;
  for (const nlohmann::json &row : rows) {
    const bool isPoint = row.is_array() && (row.size() == 3 || row.size() == 4);
    if (!isPoint || !row[0].is_number_integer() || !row[1].is_number_integer() || !row[2].is_number() ||
        !row.back().is_number())
      return corruptFile("a point of a cost table is [sequences, drafts, seconds, known], found " +
                         row.dump());
    const auto count = [](const nlohmann::json &number) {
      return int32_t(std::clamp<int64_t>(number.get<int64_t>(), -1, 1 << 24));
    };
    points.push_back({count(row[0]), count(row[1]), row[2].get<double>()});
    if (row.size() == 4)
      known[{points.back().sequences, points.back().drafts}] =
          std::clamp(row[3].get<double>(), 1.0, kMostKnown);
  }
  DSPARK_ASSIGN_OR_RETURN(CostTable table, create(std::move(points), kind));
  for (size_t l = 0; l < table.lines.size(); ++l)
    for (size_t i = 0; i < table.lines[l].drafts.size(); ++i)
      if (auto at = known.find({table.lineSequences[l], table.lines[l].drafts[i]}); at != known.end())
        table.lines[l].known[i] = at->second;
  for (Line &line : table.lines)
    line.seconds = neverFalling(line.measured, line.known);
  return table;
}

} // namespace dspark::llm

// The picture of --explain=FILE.html: a lane per device, time downwards, neighbours of one scope and device
// as one block, and what crosses between lanes. Every block leads to the table of its steps.
#include "tools/dspark-compile/Explain.h"
#include <algorithm>
#include <map>

namespace dspark {
namespace {

constexpr size_t kMostBlocks = 160;
constexpr int kLaneWidth = 300, kLaneGap = 90, kMargin = 30, kHead = 40, kLeast = 34, kMost = 90,
              kBetween = 14;

struct Block {
  std::string scope, device;
  std::vector<size_t> steps; // in PlanDecisions::steps
  double seconds = 0;
  int lane = 0, top = 0, height = 0;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return out;
}

std::string text(const char *pattern, auto... values) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, pattern, values...);
  return buffer;
}

std::string shortened(const std::string &name, size_t most) {
  if (name.size() <= most)
    return name;
  size_t end = most - 3; // not inside a character
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
    --end;
  return name.substr(0, end) + "...";
}

// "/encoder/layer.0/attention/MatMul" at depth 2: "encoder/layer.0".
std::string scopeOf(const std::string &nodes, int depth) {
  std::string name = nodes.substr(0, nodes.find(','));
  size_t begin = name.starts_with('/') ? 1 : 0, end = begin;
  for (int i = 0; i < depth; ++i) {
    size_t slash = name.find('/', end + (i > 0));
    if (slash == name.npos)
      break;
    end = slash;
  }
  return end > begin ? name.substr(begin, end - begin) : "";
}

std::vector<Block> blocksAt(const PlanDecisions &decisions, int depth) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < decisions.steps.size(); ++i) {
    const StepDecision &step = decisions.steps[i];
    std::string scope = depth > 2 ? step.nodes : scopeOf(step.nodes, depth);
    if (blocks.empty() || blocks.back().device != step.device || blocks.back().scope != scope)
      blocks.push_back({scope, step.device, {}});
    blocks.back().steps.push_back(i);
    blocks.back().seconds += step.measured > 0 ? step.measured : step.predicted;
  }
  return blocks;
}

// As fine as can be looked at: single steps, scopes, outer scopes, devices, and in the end equal shares.
std::vector<Block> blocksOf(const PlanDecisions &decisions) {
  std::vector<Block> blocks;
  for (int depth = 3; depth >= 0; --depth) {
    blocks = blocksAt(decisions, depth);
    if (blocks.size() <= kMostBlocks / (depth == 3 ? 4 : 1))
      return blocks;
  }
  size_t share = (blocks.size() + kMostBlocks - 1) / kMostBlocks;
  std::vector<Block> fewer;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % share == 0 || fewer.back().device != blocks[i].device)
      fewer.push_back({blocks[i].scope, blocks[i].device, {}});
    fewer.back().steps.insert(fewer.back().steps.end(), blocks[i].steps.begin(), blocks[i].steps.end());
    fewer.back().seconds += blocks[i].seconds;
  }
  return fewer;
}

std::string titleOf(const PlanDecisions &decisions, const Block &block) {
  const StepDecision &first = decisions.steps[block.steps[0]];
  std::string title = block.scope.empty() ? first.nodes.substr(0, first.nodes.find(',')) : block.scope;
  return title.empty() ? first.op : title;
}

constexpr const char *kStyle = R"(<style>
:root{--ink:#1c2430;--soft:#667085;--page:#fbfbfc;--card:#fff;--line:#d9dde4;--lane:#f2f4f7;--cross:#d9480f}
:root{--d0:#3b6fd4;--d1:#12805c;--d2:#8e44ad;--d3:#b7791f;--d4:#c0392b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--page:#14171c;--card:#1c2027;--line:#343a45;--lane:#191d23;--cross:#ff9d5c;
--d0:#7aa5ff;--d1:#4fc99a;--d2:#c79be8;--d3:#e5b567;--d4:#f28b82}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{margin:.2rem 0;color:var(--soft)}
.figures{display:flex;flex-wrap:wrap;gap:1rem;margin:1rem 0}.figures div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.6rem 1rem}
.figures b{display:block;font-size:1.25rem}.picture{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}
svg text{fill:var(--ink);font:13px system-ui,sans-serif}svg .soft{fill:var(--soft);font-size:11px}svg .lane{fill:var(--lane)}
svg .edge{fill:none;stroke:var(--soft);stroke-opacity:.45}svg .cross{fill:none;stroke:var(--cross);stroke-width:2}
svg a:hover rect,svg a:focus rect{stroke-width:3}
details{background:var(--card);border:1px solid var(--line);border-radius:8px;margin:.4rem 0;padding:.3rem .8rem;overflow-x:auto}
details:has(:target){border-color:var(--cross)}summary{cursor:pointer}table{border-collapse:collapse;font-size:13px;width:100%}
th{text-align:left;color:var(--soft);font-weight:600}td,th{padding:.2rem .6rem .2rem 0;border-top:1px solid var(--line);vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
</style>)";

class Page {
public:
  explicit Page(const PlanDecisions &decisions) : decisions(decisions), blocks(blocksOf(decisions)) {
    lanes = {"cpu"};
    for (const DecidedDevice &device : decisions.devices)
      lanes.push_back(device.name);
    double longest = 0;
    for (const Block &block : blocks)
      longest = std::max(longest, block.seconds);
    int top = kHead;
    for (size_t b = 0; b < blocks.size(); ++b) {
      Block &block = blocks[b];
      block.lane = int(std::find(lanes.begin(), lanes.end(), block.device) - lanes.begin());
      block.height = kLeast + int((kMost - kLeast) * (longest > 0 ? block.seconds / longest : 0));
      block.top = top;
      top += block.height + kBetween;
      for (size_t step : block.steps)
        blockOf[step] = b;
    }
    height = top + kMargin;
  }

  std::string render(const std::string &model) {
    out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width\"><title>" +
          escaped(model) + "</title>" + kStyle + "</head><body>\n<h1>" + escaped(model) + "</h1>\n<p>" +
          escaped(decisions.shapes) + text("; %d threads; profile ", decisions.threads) +
          escaped(decisions.profile) + "</p>\n";
    figures();
    picture();
    tables();
    return out + "</body></html>\n";
  }

private:
  void figures() {
    out += text(
        "<div class=\"figures\"><div><b>%.3g ms</b>predicted</div><div><b>%.3g ms</b>with the CPU alone</div>"
        "<div><b>%zu</b>steps in %zu block%s</div>",
        decisions.seconds * 1e3, decisions.cpuSeconds * 1e3, decisions.steps.size(), blocks.size(),
        blocks.size() == 1 ? "" : "s");
    for (const DecidedDevice &device : decisions.devices)
      out += text("<div><b>%.3g of %.3g MB</b>on ", (device.weights + device.tensors) * 1e-6,
                  device.memory * 1e-6) +
             escaped(device.name) + "</div>";
    out += text("<div><b>%zu</b>transfers</div></div>\n", decisions.transfers.size());
  }

  int left(int lane) const { return kMargin + lane * (kLaneWidth + kLaneGap); }

  void picture() {
    int width = left(int(lanes.size())) - kLaneGap + kMargin;
    out += text("<div class=\"picture\"><svg role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                "xmlns=\"http://www.w3.org/2000/svg\"><title>Steps by device, first to last</title>\n",
                width, height, width, height);
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      out += text("<rect class=\"lane\" x=\"%d\" y=\"6\" width=\"%d\" height=\"%d\" rx=\"10\"/><text "
                  "x=\"%d\" y=\"27\" "
                  "font-weight=\"600\">",
                  left(int(lane)) - 10, kLaneWidth + 20, height - 12, left(int(lane))) +
             escaped(lanes[lane]) + "</text>\n";
    edges();
    for (size_t b = 0; b < blocks.size(); ++b)
      drawBlock(b);
    out += "</svg></div>\n";
  }

  // From block to block once, however many values go that way; inside a lane only what jumps.
  void edges() {
    std::map<std::pair<size_t, size_t>, int> counts;
    for (size_t step = 0; step < decisions.steps.size(); ++step)
      for (int from : decisions.steps[step].inputs)
        if (blockOf[size_t(from)] != blockOf[step])
          ++counts[{blockOf[size_t(from)], blockOf[step]}];
    for (const auto &[ends, count] : counts) {
      const Block &from = blocks[ends.first], &to = blocks[ends.second];
      int x = left(from.lane), fromY = from.top + from.height, toY = to.top;
      if (from.lane != to.lane) {
        bool isRight = to.lane > from.lane;
        int x1 = isRight ? x + kLaneWidth : x, x2 = isRight ? left(to.lane) : left(to.lane) + kLaneWidth;
        int y1 = from.top + from.height / 2, y2 = to.top + to.height / 2, middle = (x1 + x2) / 2;
        out += text(
            "<path class=\"cross\" d=\"M%d %dC%d %d %d %d %d %d\"><title>values that cross: %d</title></path>\n",
            x1, y1, middle, y1, middle, y2, x2, y2, count);
      } else if (ends.second == ends.first + 1) {
        out += text("<path class=\"edge\" d=\"M%d %dV%d\"/>\n", x + kLaneWidth / 2, fromY, toY);
      } else {
        int out1 = x + kLaneWidth + std::min(36, 8 + int(ends.second - ends.first) * 3);
        int y1 = from.top + from.height / 2, y2 = to.top + to.height / 2;
        out += text("<path class=\"edge\" d=\"M%d %dC%d %d %d %d %d %d\"/>\n", x + kLaneWidth, y1, out1, y1,
                    out1, y2, x + kLaneWidth, y2);
      }
    }
  }

  void drawBlock(size_t b) {
    const Block &block = blocks[b];
    int x = left(block.lane), color = block.lane % 5;
    std::string title = titleOf(decisions, block);
    out += text("<a href=\"#b%zu\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" "
                "style=\"fill:var(--card);stroke:var(--d%d)\"/><rect x=\"%d\" y=\"%d\" width=\"5\" "
                "height=\"%d\" rx=\"2\" "
                "style=\"fill:var(--d%d)\"/>",
                b, x, block.top, kLaneWidth, block.height, color, x, block.top, block.height, color);
    out +=
        text("<text x=\"%d\" y=\"%d\">", x + 14, block.top + 15) + escaped(shortened(title, 38)) + "</text>";
    out += text("<text class=\"soft\" x=\"%d\" y=\"%d\">", x + 14, block.top + 29) + escaped(summary(block)) +
           "</text>";
    out += "<title>" + escaped(title) + "</title></a>\n";
  }

  std::string summary(const Block &block) const {
    std::map<std::string, int> ops;
    for (size_t step : block.steps)
      ++ops[decisions.steps[step].op];
    auto most =
        std::max_element(ops.begin(), ops.end(), [](auto &a, auto &b) { return a.second < b.second; });
    std::string all = block.steps.size() == 1 ? most->first + ", " + decisions.steps[block.steps[0]].precision
                                              : text("%zu steps, mostly ", block.steps.size()) + most->first;
    return shortened(all, 34) + text(", %.3g ms", block.seconds * 1e3);
  }

  void tables() {
    out += "<h2>Steps</h2>\n";
    for (size_t b = 0; b < blocks.size(); ++b) {
      out += "<details><summary>" + escaped(titleOf(decisions, blocks[b])) + " on " +
             escaped(blocks[b].device) + ": " + escaped(summary(blocks[b])) +
             text("</summary><table id=\"b%zu\">", b) +
             "<tr><th>region<th>nodes<th>result<th>precision<th>kernel<th>predicted ms<th>measured "
             "ms<th>error<th>best rejected alternative</tr>\n";
      for (size_t index : blocks[b].steps) {
        const StepDecision &step = decisions.steps[index];
        out += "<tr><td>" + (step.region < 0 ? std::string("-") : std::to_string(step.region)) + "<td>" +
               escaped(step.nodes) + "<td>" + escaped(step.type) + "<td>" + escaped(step.precision) + "<td>" +
               escaped(step.kernel) + text("<td class=\"n\">%.4f<td class=\"n\">", step.predicted * 1e3) +
               (step.measured > 0 ? text("%.4f", step.measured * 1e3) : "-") +
               text("<td class=\"n\">%.2g<td>", step.error) + escaped(step.rejected) + "</tr>\n";
      }
      out += "</table></details>\n";
    }
    if (decisions.transfers.empty())
      return;
    out += "<h2>What crosses</h2>\n<table><tr><th>value<th>from<th>to<th>bytes<th>predicted ms</tr>\n";
    for (const DecidedTransfer &transfer : decisions.transfers)
      out += "<tr><td>" + escaped(transfer.value) + "<td>" + escaped(transfer.from) + "<td>" +
             escaped(transfer.to) +
             text("<td class=\"n\">%.0f<td class=\"n\">%.4f</tr>\n", transfer.bytes, transfer.seconds * 1e3);
    out += "</table>\n";
  }

  const PlanDecisions &decisions;
  std::vector<Block> blocks;
  std::vector<std::string> lanes;
  std::map<size_t, size_t> blockOf; // by step
  int height = 0;
  std::string out;
};

} // namespace

std::string explainPage(const PlanDecisions &decisions, const std::string &model) {
  return Page(decisions).render(model);
}

} // namespace dspark

#include "frontends/onnx/GraphOrder.h"
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace dspark::onnx {

using ::onnx::NodeProto;

std::string nodeName(const NodeProto &node, int index) {
  return node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name();
}

namespace {

using Names = std::unordered_set<std::string_view>;

void collectReads(const NodeProto &node, Names &reads);

/// Adds the names that a graph takes from outside.
void collectFree(const ::onnx::GraphProto &graph, Names &reads) {
  Names all;
  for (const NodeProto &inner : graph.node())
    collectReads(inner, all);
  for (const auto &output : graph.output())
    all.insert(output.name());
  for (const auto &input : graph.input())
    all.erase(input.name());
  for (const auto &initializer : graph.initializer())
    all.erase(initializer.name());
  for (const NodeProto &inner : graph.node())
    for (const std::string &made : inner.output())
      all.erase(made);
  reads.merge(all);
}

void collectReads(const NodeProto &node, Names &reads) {
  for (const std::string &name : node.input())
    reads.insert(name);
  for (const auto &attribute : node.attribute()) {
    if (attribute.has_g())
      collectFree(attribute.g(), reads);
    for (const auto &graph : attribute.graphs())
      collectFree(graph, reads);
  }
}

/// Walks backwards from a node that cannot run to one that it waits for, until one comes again.
std::string describeCycle(const google::protobuf::RepeatedPtrField<NodeProto> &nodes,
                          const std::vector<std::vector<int>> &waitsFor, const std::vector<int> &missing) {
  int at = 0;
  while (missing[at] == 0)
    ++at;
  std::vector<int> path;
  std::vector<bool> seen(nodes.size());
  while (!seen[at]) {
    seen[at] = true;
    path.push_back(at);
    for (int before : waitsFor[at])
      if (missing[before] > 0) {
        at = before;
        break;
      }
  }
  auto start = std::find(path.begin(), path.end(), at);
  std::string text = "nodes wait for each other:";
  for (auto it = start; it != path.end() && it - start < 8; ++it)
    text += " '" + nodeName(nodes[*it], *it) + "' <-";
  return text + " '" + nodeName(nodes[at], at) + "'";
}

} // namespace

StatusOr<std::vector<int>> nodeOrder(const google::protobuf::RepeatedPtrField<NodeProto> &nodes) {
  std::unordered_map<std::string_view, int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &name : nodes[i].output())
      if (auto [entry, isNew] = producer.emplace(name, i); !isNew && !name.empty())
        return corruptFile("value '" + name + "' is made by two nodes, '" +
                           nodeName(nodes[entry->second], entry->second) + "' and '" + nodeName(nodes[i], i) +
                           "'");
  producer.erase(std::string_view());

  std::vector<std::vector<int>> waitsFor(nodes.size()), users(nodes.size());
  std::vector<int> missing(nodes.size());
  for (int i = 0; i < nodes.size(); ++i) {
    Names reads;
    collectReads(nodes[i], reads);
    for (std::string_view name : reads)
      if (auto found = producer.find(name); found != producer.end()) {
        waitsFor[i].push_back(found->second);
        users[found->second].push_back(i);
        ++missing[i];
      }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0)
      ready.push(i);
  std::vector<int> order;
  while (!ready.empty()) {
    int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (int user : users[next])
      if (--missing[user] == 0)
        ready.push(user);
  }
  if (int(order.size()) < nodes.size())
    return corruptFile(describeCycle(nodes, waitsFor, missing));
  return order;
}

} // namespace dspark::onnx

#include "runtime/llm/tokenizer/Merges.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <bit>
#include <queue>
#include <unordered_map>

namespace dspark::llm {
namespace {

size_t mix(uint64_t key) {
  key *= 0x9E3779B97F4A7C15;
  return size_t(key ^ key >> 32);
}

// A part of the piece that is one symbol by now; parts form a list from left to right.
struct Part {
  uint32_t begin, end;
  int32_t symbol;
  int32_t previous, next;
};

struct Pair {
  double order;
  int32_t left, right;
  uint32_t end; // of the right part when the pair was found: tells whether it is still as it was
  int32_t symbol;
  uint32_t begin;
  bool operator<(const Pair &other) const { // std::priority_queue puts the largest on top
    return order != other.order ? order > other.order : begin > other.begin;
  }
};

} // namespace

void Merges::PairTable::reserve(size_t pairs) { slots.assign(std::bit_ceil(pairs * 2 + 1), Slot()); }

bool Merges::PairTable::insert(int32_t left, int32_t right, Joined joined) {
  const uint64_t key = uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  size_t slot = mix(key) & (slots.size() - 1);
  for (; slots[slot].key != ~uint64_t(0); slot = (slot + 1) & (slots.size() - 1))
    if (slots[slot].key == key)
      return false;
  slots[slot] = {key, joined};
  return true;
}

const Merges::Joined *Merges::PairTable::find(int32_t left, int32_t right) const {
  const uint64_t key = uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  for (size_t slot = mix(key) & (slots.size() - 1); slots[slot].key != ~uint64_t(0);
       slot = (slot + 1) & (slots.size() - 1))
    if (slots[slot].key == key)
      return &slots[slot].joined;
  return nullptr;
}

StatusOr<Merges> Merges::build(const TokenizerSpec &spec, const Vocabulary &vocabulary) {
  Merges merges;
  merges.vocabulary = &vocabulary;
  merges.unknown = spec.unknown;
  merges.byScore = spec.model == ModelKind::ScoredMerges;
  merges.byteLevel = spec.byteLevel;
  merges.wholePieces = spec.ignoreMerges;
  merges.fuseUnknown = spec.fuseUnknown;
  if (merges.byScore)
    return merges;
  std::unordered_map<std::string, int32_t> others;
  const auto number = [&](const std::string &text) {
    if (const int32_t id = vocabulary.find(text); id >= 0)
      return id;
    return others.try_emplace(text, vocabulary.size() + int32_t(others.size())).first->second;
  };
  merges.pairs.reserve(spec.merges.size());
  int32_t rank = 0;
  for (const MergeSpec &merge : spec.merges) {
    const int32_t left = number(merge.left), right = number(merge.right);
    merges.pairs.insert(left, right,
                        {rank++, number(merge.left + merge.right)}); // the first of two equal ones counts
  }
  return merges;
}

bool Merges::isWritable(int32_t id) const {
  const TokenKind kind = vocabulary->kind(id);
  return kind == TokenKind::Normal || kind == TokenKind::UserDefined || kind == TokenKind::Unused;
}

int32_t Merges::symbolOf(std::string_view text) const {
  const int32_t id = vocabulary->find(text);
  return id >= 0 && isWritable(id) ? id : -1;
}

Merges::Candidate Merges::join(int32_t left, int32_t right, std::string_view both) const {
  if (byScore) {
    const int32_t id = symbolOf(both);
    return id < 0 ? Candidate{0, -1} : Candidate{-vocabulary->score(id), id};
  }
  const Joined *joined = left < 0 || right < 0 ? nullptr : pairs.find(left, right);
  return joined ? Candidate{double(joined->rank), joined->symbol} : Candidate{0, -1};
}

void Merges::encode(std::string_view piece, std::vector<int32_t> &ids) const {
  if (wholePieces)
    if (const int32_t id = symbolOf(piece); id >= 0) {
      ids.push_back(id);
      return;
    }
  std::vector<Part> parts;
  parts.reserve(piece.size());
  for (size_t i = 0; i < piece.size();) {
    const uint32_t length = byteLevel ? 1 : decodeUtf8(piece, i).bytes;
    const auto index = int32_t(parts.size());
    parts.push_back(
        {uint32_t(i), uint32_t(i) + length, symbolOf(piece.substr(i, length)), index - 1, index + 1});
    i += length;
  }
  if (parts.empty())
    return;
  parts.back().next = -1;

  std::priority_queue<Pair> queue;
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0)
      return;
    const Part &l = parts[size_t(left)], &r = parts[size_t(right)];
    const Candidate candidate = join(l.symbol, r.symbol, piece.substr(l.begin, r.end - l.begin));
    if (candidate.symbol >= 0)
      queue.push({candidate.order, left, right, r.end, candidate.symbol, l.begin});
  };
  for (int32_t i = 0; i + 1 < int32_t(parts.size()); ++i)
    consider(i, i + 1);
  while (!queue.empty()) {
    const Pair best = queue.top();
    queue.pop();
    Part &left = parts[size_t(best.left)], &right = parts[size_t(best.right)];
    // A part that was absorbed is empty; one that grew ends elsewhere.
    if (left.next != best.right || right.begin == right.end || right.end != best.end ||
        left.begin == left.end)
      continue;
    left.end = right.end;
    left.symbol = best.symbol;
    left.next = right.next;
    right.begin = right.end;
    if (left.next >= 0)
      parts[size_t(left.next)].previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }
  const size_t first = ids.size();
  for (int32_t i = 0; i >= 0; i = parts[size_t(i)].next)
    append(piece.substr(parts[size_t(i)].begin, parts[size_t(i)].end - parts[size_t(i)].begin),
           parts[size_t(i)].symbol, first, ids);
}

void Merges::append(std::string_view text, int32_t symbol, size_t first, std::vector<int32_t> &ids) const {
  if (symbol >= 0 && symbol < vocabulary->size()) {
    ids.push_back(symbol);
    return;
  }
  bool bytes = true;
  for (char c : text)
    bytes = bytes && vocabulary->byteToken(uint8_t(c)) >= 0;
  if (bytes) {
    for (char c : text)
      ids.push_back(vocabulary->byteToken(uint8_t(c)));
  } else if (byteLevel) { // a merge may end in a text that is no token: its bytes are
    for (char c : text)
      if (const int32_t id = symbolOf(std::string_view(&c, 1)); id >= 0)
        ids.push_back(id);
      else if (unknown >= 0)
        ids.push_back(unknown);
  } else if (unknown >= 0 && !(fuseUnknown && ids.size() > first && ids.back() == unknown)) {
    ids.push_back(unknown);
  }
}

} // namespace dspark::llm

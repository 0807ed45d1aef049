#include "kernels/matmul/einsum.h"

namespace dspark {
namespace {

// Raw labels: 0..51 for letters, kEllipsis + i for the i-th dim of an ellipsis counted from its end.
constexpr int kEllipsis = 52, kRawLabels = kEllipsis + kMaxEinsumRank;

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
int letterLabel(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }

struct Term {
  int raw[kMaxEinsumRank];
  int rank = 0;
  int ellipsis = 0; // dims the ellipsis stands for
};

// One comma-separated term without spaces; rank < 0 means as many dims as the ellipsis of the operands has.
const char *parseTerm(std::string_view text, int rank, int ellipsis, Term &term) {
  int letters = 0;
  bool hasEllipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.') {
      if (hasEllipsis || text.substr(i, 3) != "...")
        return "equation: expected at most one ... per term";
      hasEllipsis = true;
      i += 2;
    } else if (!isLetter(text[i])) {
      return "equation: expected letters, commas, ... and one ->";
    } else {
      ++letters;
    }
  }
  term.ellipsis = !hasEllipsis ? 0 : rank < 0 ? ellipsis : rank - letters;
  if (term.ellipsis < 0 || (rank >= 0 && letters + term.ellipsis != rank) ||
      letters + term.ellipsis > kMaxEinsumRank)
    return "equation: a term's subscripts differ in number from its operand's rank";
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      term.raw[term.rank++] = letterLabel(text[i]);
      continue;
    }
    for (int e = term.ellipsis - 1; e >= 0; --e)
      term.raw[term.rank++] = kEllipsis + e;
    i += 2;
  }
  return nullptr;
}

// Without "->" the result is the ellipsis, then the letters that occur once, in order.
void implicitResult(const int *uses, int ellipsis, Term &result) {
  for (int e = ellipsis - 1; e >= 0; --e)
    result.raw[result.rank++] = kEllipsis + e;
  for (int raw = 0; raw < kEllipsis; ++raw)
    if (uses[raw] == 1 && result.rank < kMaxEinsumRank)
      result.raw[result.rank++] = raw;
}

} // namespace

const char *Einsum::parse(std::string_view equation, std::span<const int> ranks) {
  char compact[256];
  size_t length = 0;
  for (char c : equation) {
    if (c == ' ')
      continue;
    if (length == sizeof(compact))
      return "equation: expected at most 256 characters";
    compact[length++] = c;
  }
  std::string_view text(compact, length), left = text, right;
  size_t arrow = text.find("->");
  bool isExplicit = arrow != std::string_view::npos;
  if (isExplicit) {
    left = text.substr(0, arrow);
    right = text.substr(arrow + 2);
  }

  Term terms[kMaxEinsumOperands], target;
  int uses[kRawLabels] = {}, ellipsis = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    size_t comma = left.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == ranks.size()))
      return "equation: expected one term per operand";
    if (const char *error = parseTerm(left.substr(0, comma), ranks[i], 0, terms[i]))
      return error;
    for (int d = 0; d < terms[i].rank; ++d)
      ++uses[terms[i].raw[d]];
    ellipsis = terms[i].ellipsis > ellipsis ? terms[i].ellipsis : ellipsis;
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
  }
  if (isExplicit) {
    if (const char *error = parseTerm(right, -1, ellipsis, target))
      return error;
  } else {
    implicitResult(uses, ellipsis, target);
  }

  int label[kRawLabels];
  for (int &l : label)
    l = -1;
  labels = 0;
  for (int d = 0; d < target.rank; ++d) {
    if (uses[target.raw[d]] == 0 || label[target.raw[d]] >= 0)
      return "equation: expected result subscripts that differ and occur in an operand";
    result[d] = uint8_t(label[target.raw[d]] = labels++);
  }
  resultRank = target.rank;
  for (size_t i = 0; i < ranks.size(); ++i)
    for (int d = 0; d < terms[i].rank; ++d) {
      int &l = label[terms[i].raw[d]];
      if (l < 0)
        l = labels++;
      operand[i][d] = uint8_t(l);
    }
  return nullptr;
}

} // namespace dspark

// The paged key-value cache as its kernels read it: shapes once, the batch's layout at each run.
//
// A cache is [pages, key heads, page size, width]: a page holds one stretch of a sequence's tokens, each
// head's rows one behind the other. Tokens of a batch are ragged: those of sequence s are rows
// query_offsets[s] to query_offsets[s + 1] of the operands, and the last ones of its sequence_lengths[s]
// tokens in the cache. Token j of sequence s lies in page block_table[s][j / page size].
//
// The layout is data and may be anything: offsets and lengths are clamped to what exists, a page number
// beyond the cache becomes the nearest one. A row that belongs to no sequence is no one's.
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/common/operand.h"
#include <algorithm>

namespace dspark {

struct BatchLayout {
  TensorView offsets, lengths, table;
  int64_t tokens, sequences, tablePages, pages, pageSize;

  /// Operands `first` to `first` + 2 of the call are offsets, lengths and table.
  BatchLayout(const KernelCall &call, size_t first, const TensorView &cache, int64_t tokens)
      : offsets(call.in[first]), lengths(call.in[first + 1]), table(call.in[first + 2]), tokens(tokens),
        sequences(lengths.dim(0)), tablePages(table.dim(1)), pages(cache.dim(0)), pageSize(cache.dim(2)) {}

  struct Sequence {
    int64_t index, begin, end; // its rows of the batch
    int64_t length;            // its tokens in the cache, these included
    /// The place among them of a row.
    int64_t position(int64_t row) const { return length - (end - row); }
  };
  /// Calls f(sequence) in order; offsets that go back count as the ones before them.
  template <typename F> void forSequences(F f) const {
    int64_t capacity = pages > 0 ? tablePages * pageSize : 0;
    int64_t begin = std::clamp<int64_t>(intAt(offsets, 0), 0, tokens);
    for (int64_t s = 0; s < sequences; ++s) {
      int64_t end = std::clamp<int64_t>(intAt(offsets, s + 1), begin, tokens);
      f(Sequence{s, begin, end, std::clamp<int64_t>(intAt(lengths, s), 0, capacity)});
      begin = end;
    }
  }
  /// The sequence of a row, or one of index -1 that ends before the next row which has one.
  Sequence owner(int64_t row) const {
    Sequence found{-1, row, tokens, 0};
    forSequences([&](const Sequence &s) {
      if (s.begin <= row && row < s.end)
        found = s;
      else if (found.index < 0 && s.begin > row && s.begin < s.end)
        found.end = std::min(found.end, s.begin);
    });
    return found;
  }
  int64_t page(int64_t sequence, int64_t place) const {
    return std::clamp<int64_t>(intAt(table, sequence * tablePages + place / pageSize), 0, pages - 1);
  }
};

} // namespace dspark

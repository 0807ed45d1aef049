// Calls of attention and their results in double.
#pragma once
#include "test/kernels/kernel_case.h"
#include <cmath>

namespace dspark::test {

struct Shape {
  int64_t batch = 2, qHeads = 4, kvHeads = 2, queries = 7, fresh = 9, past = 0, size = 11, width = 13;
  bool causal = false, mask = false;
  int64_t left = -1, right = -1;
  double softcap = 0;
  int64_t total() const { return past + fresh; }
};

// Y in double, from 4-D operands.
inline std::vector<double> expected(const Shape &s, std::vector<Tensor> &in) {
  auto at = [&](size_t i, int64_t b, int64_t h, int64_t heads, int64_t row, int64_t rows, int64_t width,
                int64_t c) { return double(in[i].as<float>()[((b * heads + h) * rows + row) * width + c]); };
  auto cached = [&](size_t pastIndex, size_t freshIndex, int64_t b, int64_t h, int64_t j, int64_t width,
                    int64_t c) {
    return j < s.past ? at(pastIndex, b, h, s.kvHeads, j, s.past, width, c)
                      : at(freshIndex, b, h, s.kvHeads, j - s.past, s.fresh, width, c);
  };
  std::vector<double> y;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.qHeads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        int64_t kv = h / (s.qHeads / s.kvHeads), position = s.past + i;
        std::vector<double> p(size_t(s.total()), 0);
        double sum = 0;
        for (int64_t j = 0; j < s.total(); ++j) {
          double score = 0;
          for (int64_t d = 0; d < s.size; ++d)
            score += at(0, b, h, s.qHeads, i, s.queries, s.size, d) * cached(4, 1, b, kv, j, s.size, d);
          score /= std::sqrt(double(s.size));
          if (s.softcap > 0)
            score = s.softcap * std::tanh(score / s.softcap);
          if (s.mask)
            score += in[3].as<float>()[i * s.total() + j];
          bool hidden = (s.causal && j > position) || (s.left >= 0 && j < position - s.left) ||
                        (s.right >= 0 && j > position + s.right);
          sum += p[size_t(j)] = hidden ? 0 : std::exp(score);
        }
        for (int64_t c = 0; c < s.width; ++c) {
          double total = 0;
          for (int64_t j = 0; j < s.total(); ++j)
            total += sum > 0 ? p[size_t(j)] / sum * cached(5, 2, b, kv, j, s.width, c) : 0;
          y.push_back(total);
        }
      }
  return y;
}

inline std::vector<Tensor> operands(const Shape &s, std::mt19937 &rng) {
  std::vector<Tensor> in = {uniform({s.batch, s.qHeads, s.queries, s.size}, rng),
                            uniform({s.batch, s.kvHeads, s.fresh, s.size}, rng),
                            uniform({s.batch, s.kvHeads, s.fresh, s.width}, rng)};
  if (s.mask || s.past)
    in.push_back(s.mask ? uniform({s.queries, s.total()}, rng) : Tensor{});
  if (s.past) {
    in.push_back(uniform({s.batch, s.kvHeads, s.past, s.size}, rng));
    in.push_back(uniform({s.batch, s.kvHeads, s.past, s.width}, rng));
  }
  return in;
}

inline AttrList attributes(const Shape &s) {
  AttrList attrs;
  attrs.set("is_causal", int64_t(s.causal)).set("left_window_size", s.left).set("right_window_size", s.right);
  attrs.setFloat("softcap", s.softcap);
  return attrs;
}

// Tokens [begin, end) of [1,H,S,D].
inline Tensor tokens(Tensor &t, int64_t begin, int64_t end) {
  int64_t heads = t.dims[1], rows = t.dims[2], width = t.dims[3];
  Tensor part = zeros(t.type, {1, heads, end - begin, width});
  for (int64_t h = 0; h < heads; ++h)
    std::memcpy(part.as<float>() + h * (end - begin) * width, t.as<float>() + (h * rows + begin) * width,
                size_t((end - begin) * width) * 4);
  return part;
}

} // namespace dspark::test

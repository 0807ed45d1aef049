// What a mask does, told from its values for a few lengths: which tokens it lets a token see, and what it
// adds to the scores of those.
#include "compiler/Recovery/DecoderPattern.h"
#include "kernels/common/numeric.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace dspark::recovery {
namespace {

constexpr double kHidden = -1e4;  // added to a score, it leaves nothing of a weight
constexpr double kSteepest = 100; // slope; a greater difference of neighbours is a token that is hidden
constexpr double kRounding = 1e-5;
constexpr int64_t kMostValues = int64_t(1) << 25;

// A mask's values [heads or 1, fresh, total] for one sequence.
class MaskValues {
public:
  MaskValues(const HostBytes &mask, int64_t past, int64_t heads, int64_t fresh)
      : isFlag(mask.type == DType::Bool), past(past), fresh(fresh),
        numbers(size_t(heads * fresh * (past + fresh))) {
    loadAsF64(mask.type, mask.bytes.data(), 0, int64_t(numbers.size()), numbers.data());
  }

  /// What a head's scores fall by from one token to the one before, by the last row's oldest token that is
  /// not hidden.
  double slope(int64_t head) const {
    if (isFlag)
      return 0;
    int64_t row = fresh - 1, place = past + row, oldest = place;
    while (oldest > 0 && at(head, row, oldest) - at(head, row, oldest - 1) < kSteepest)
      --oldest;
    return oldest == place ? 0 : (at(head, row, place) - at(head, row, oldest)) / double(place - oldest);
  }

  enum class Sight { Seen, Hidden, Neither };
  Sight sight(int64_t head, int64_t row, int64_t key, double slope) const {
    double found = at(head, row, key);
    if (isFlag)
      return found != 0 ? Sight::Seen : Sight::Hidden;
    double own = at(head, row, past + row), wanted = own + slope * double(key - past - row);
    if (std::abs(found - wanted) <= kRounding * (std::abs(own) + std::abs(wanted) + 1))
      return own > kHidden ? Sight::Seen : Sight::Hidden;
    return found <= kHidden ? Sight::Hidden : Sight::Neither;
  }

private:
  double at(int64_t head, int64_t row, int64_t key) const {
    return numbers[size_t((head * fresh + row) * (past + fresh) + key)];
  }

  bool isFlag;
  int64_t past, fresh;
  std::vector<double> numbers;
};

} // namespace

std::optional<PatternMatcher::MaskForm> PatternMatcher::formAt(const DecoderPattern &pattern, Value mask,
                                                               Lengths lengths) {
  Probe probing = probe(pattern, lengths);
  const HostBytes *found = probing.value(mask);
  int64_t total = lengths.past + lengths.fresh;
  size_t rank = found ? found->dims.size() : 0;
  if (rank < 2 || rank > 4 || found->dims[rank - 1] != total || found->dims[rank - 2] != lengths.fresh ||
      (rank == 4 && found->dims[0] != 1))
    return std::nullopt;
  int64_t heads = rank > 2 ? found->dims[rank - 3] : 1;
  if (heads > kMostValues / (lengths.fresh * total))
    return std::nullopt;
  MaskValues values(*found, lengths.past, heads, lengths.fresh);
  MaskForm form{total, {}};
  for (int64_t head = 0; head < heads; ++head) {
    form.slopes.push_back(values.slope(head));
    for (int64_t row = 0; row < lengths.fresh; ++row)
      for (int64_t key = 0; key < total; ++key) {
        MaskValues::Sight sight = values.sight(head, row, key, form.slopes.back());
        int64_t back = lengths.past + row - key;
        if (sight == MaskValues::Sight::Neither ||
            (back <= 0 && (sight == MaskValues::Sight::Seen) != (back == 0)))
          return std::nullopt;
        if (back > 0 && sight == MaskValues::Sight::Hidden)
          form.window = std::min(form.window, back);
      }
  }
  for (int64_t head = 0; head < heads; ++head) // all rows have that window
    for (int64_t row = 0; row < lengths.fresh; ++row)
      for (int64_t back = 1; back <= lengths.past + row; ++back)
        if ((values.sight(head, row, lengths.past + row - back, form.slopes[size_t(head)]) ==
             MaskValues::Sight::Seen) != (back < form.window))
          return std::nullopt;
  if (llvm::all_of(form.slopes, [](double slope) { return slope == 0; }))
    form.slopes.clear();
  return form;
}

StatusOr<PatternMatcher::MaskForm> PatternMatcher::formOf(const DecoderPattern &pattern, Operation *op,
                                                          Value mask) {
  if (auto found = forms.find(mask.getAsOpaquePointer()); found != forms.end())
    return found->second;
  int64_t longest = std::clamp<int64_t>(contextLength, 16, int64_t(1) << 20);
  std::optional<MaskForm>
      form; // the longest case shows the window, the shortest has slopes with the least rounding
  for (Lengths lengths : {Lengths{longest - 2, 2}, Lengths{5, 4}, Lengths{0, 3}}) {
    std::optional<MaskForm> found = formAt(pattern, mask, lengths);
    bool fits = found && (!form || (found->window == std::min(form->window, lengths.past + lengths.fresh) &&
                                    found->slopes.size() == form->slopes.size()));
    for (size_t head = 0; fits && form && head < form->slopes.size(); ++head)
      fits = std::abs(form->slopes[head] - found->slopes[head]) <= 1e-3 * std::abs(found->slopes[head]);
    if (!fits)
      return atNode(op, "its mask is not one that hides later tokens, or also those before a window");
    form = MaskForm{form ? form->window : found->window, found->slopes};
  }
  form->window = form->window >= longest ? -1 : form->window;
  forms[mask.getAsOpaquePointer()] = *form;
  return *form;
}

Status PatternMatcher::matchMask(const DecoderPattern &pattern, AttentionSite &site, Value mask) {
  DSPARK_ASSIGN_OR_RETURN(MaskForm form, formOf(pattern, site.op, mask));
  site.window = form.window;
  if (form.slopes.size() == 1)
    form.slopes.resize(size_t(site.heads), form.slopes[0]);
  if (!form.slopes.empty() && int64_t(form.slopes.size()) != site.heads)
    return atNode(site.op, "its mask is of " + std::to_string(form.slopes.size()) +
                               " heads, the queries of " + std::to_string(site.heads));
  site.slopes.assign(form.slopes.begin(), form.slopes.end());
  return Status::ok();
}

} // namespace dspark::recovery

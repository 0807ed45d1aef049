#include "planning/CostModel.h"
#include <algorithm>
#include <optional>

namespace dspark {
namespace {

constexpr double kEta = 0.5;      // of the peak, of kernels that were not measured
constexpr double kHeavyWork = 20; // operations of exp, tanh ... in units of multiply-adds' halves
constexpr double kStepWork = 16, kStartWork = 64;

Isa isaOf(const std::string &key) {
  std::string name = key.substr(0, key.find('/'));
  for (Isa isa : {Isa::Amx, Isa::Avx512, Isa::Avx2})
    if (name.ends_with("_" + std::string(isaName(isa))))
      return isa;
  return Isa::Baseline;
}

// "matmul_f32_avx512/x" -> "matmul_f32_avx2/x" -> "matmul_f32/x" -> nothing; "_amx" -> "_avx512".
std::optional<std::string> lowerLevel(const std::string &key) {
  std::string name = key.substr(0, key.find('/')), rest = key.substr(name.size());
  Isa isa = isaOf(key);
  if (isa == Isa::Baseline)
    return std::nullopt;
  name.resize(name.size() - isaName(isa).size() - 1);
  return name + (isa > Isa::Avx2 ? "_" + std::string(isaName(Isa(int(isa) - 1))) : "") + rest;
}

} // namespace

double CostModel::readSeconds(double bytes, double footprint, int threadsUsed) const {
  if (levels.empty())
    return bytes / 1e10;
  double seconds = 0, reached = 0; // share of the bytes that levels up to the last one hold
  for (const MemoryLevel &level : levels) {
    bool holdsAll = footprint <= level.bytes || &level == &levels.back();
    double share = holdsAll ? 1 : std::max(reached, level.bytes / footprint);
    // More threads read faster up to what all of them got.
    double most = std::max(level.allPerSecond, level.onePerSecond);
    seconds += (share - reached) * bytes / std::min(level.onePerSecond * std::max(1, threadsUsed), most);
    reached = share;
  }
  return seconds;
}

const CostTerms *CostModel::termsOf(const std::string &key) const {
  for (std::optional<std::string> name = key; name; name = lowerLevel(*name))
    for (std::string prefix = *name;; prefix.resize(prefix.rfind('/'))) {
      if (auto it = kernels.find(prefix); it != kernels.end())
        return &it->second;
      if (prefix.find('/') == prefix.npos)
        break;
    }
  return nullptr;
}

CostTerms CostModel::columns(const CostFeatures &f, double footprint) const {
  // What a step moves was just made, or is made for the next step: it lies where all of it fits.
  return {f.work,
          f.heavy,
          f.steps,
          f.starts,
          readSeconds(f.moved, f.moved * 2, 1),
          readSeconds(f.constant, footprint, 1),
          1};
}

const Peak *CostModel::peakOf(Isa isa) const {
  for (int level = int(isa); level >= 0; --level)
    if (auto it = peaks.find(std::string(isaName(Isa(level)))); it != peaks.end())
      return &it->second;
  return nullptr;
}

CostTerms CostModel::prior(const std::string &key) const {
  const Peak *known = peakOf(isaOf(key));
  double peak = known && known->f32 > 0 ? known->f32 : 1e10;
  double unit = 1 / (kEta * peak);
  return {unit, kHeavyWork * unit, kStepWork * unit, kStartWork * unit, 1, 1, launch};
}

double CostModel::predict(const CostFeatures &f, double footprint, int threadsUsed) const {
  double sharers = std::max(1.0, std::min(double(threadsUsed), f.parts));
  const CostTerms *terms = termsOf(f.key);
  double call, shared, bytes;
  CostTerms column = columns(f, footprint);
  if (terms) {
    call = (*terms)[6];
    bytes = (*terms)[4] * column[4] + (*terms)[5] * column[5];
    shared = bytes;
    for (int i = 0; i < 4; ++i)
      shared += (*terms)[size_t(i)] * column[size_t(i)];
  } else {
    CostTerms guess = prior(f.key);
    call = guess[6];
    bytes = column[4] + column[5];
    shared = std::max(guess[0] * f.work + guess[1] * f.heavy, bytes);
  }
  if (sharers == 1)
    return call + shared;
  // Threads share the arithmetic evenly; bytes only as far as they get more bandwidth together.
  double together =
      readSeconds(f.moved, f.moved * 2, int(sharers)) + readSeconds(f.constant, footprint, int(sharers));
  double alone = column[4] + column[5];
  double bytesShare = alone > 0 ? together / alone : 1;
  return std::min(call + shared, call + barrier + (shared - bytes) / sharers + bytes * bytesShare);
}

} // namespace dspark

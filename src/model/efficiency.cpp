// SPDX-License-Identifier: MIT
#include "model/fields.hpp"
#include "model/sweep.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

bool has_median(const CaseResult& result) {
  return result.outcome == OutcomeKind::measured && result.samples > 0;
}

using Options = std::vector<std::pair<std::string, std::string>>;

// Size and split follow the number of devices, and how threads wait follows from the CPUs that are
// left for them.
Options shared_options(const Case& what) {
  Options options = identity_fields(what);
  std::erase_if(options, [](const auto& field) {
    return field.first == "size_bytes" || field.first == "split" || field.first == "wait";
  });
  return options;
}

/// Measured cases of one device with equal options by size, device and split; the first of each.
using Singles = std::map<std::tuple<Bytes, int, int>, const CaseResult*>;

std::map<Options, Singles> singles_of(std::span<const CaseResult> cases) {
  std::map<Options, Singles> singles;
  for (const CaseResult& one : cases)
    if (has_median(one) && one.what.gpus.size() == 1)
      singles[shared_options(one.what)].try_emplace(
          {one.what.size, one.what.gpus.front(), one.what.split}, &one);
  return singles;
}

/// The median of `size` bytes on one of the devices of `many`, the first that has such a case.
std::optional<double> alone(const Singles& singles, const Case& many, Bytes size) {
  // The same number of slices, or a slice a device, as by default.
  const int one_each = std::cmp_equal(many.split, many.gpus.size()) ? 1 : many.split;
  for (const int gpu : many.gpus) {
    const CaseResult* found = nullptr;
    for (const int split : {many.split, one_each})
      if (const auto one = singles.find({size, gpu, split}); one != singles.end())
        found = found ? std::min(found, one->second) : one->second;
    if (found) return found->summary.median;
  }
  return std::nullopt;
}

}  // namespace

void fill_efficiencies(std::span<CaseResult> cases) {
  const std::map<Options, Singles> all = singles_of(cases);
  for (CaseResult& result : cases) {
    result.weak_efficiency = result.strong_efficiency = std::nullopt;
    const std::size_t devices = result.what.gpus.size();
    if (devices < 2 || !has_median(result) || result.summary.median <= 0) continue;
    const auto singles = all.find(shared_options(result.what));
    if (singles == all.end()) continue;
    const double median = result.summary.median;
    if (result.what.size % devices == 0)
      if (const auto one = alone(singles->second, result.what, result.what.size / devices))
        result.weak_efficiency = *one / median;
    if (const auto one = alone(singles->second, result.what, result.what.size))
      result.strong_efficiency = *one / (static_cast<double>(devices) * median);
  }
}

std::vector<BestOfSize> best_of_sizes(std::span<const CaseResult> cases) {
  std::vector<BestOfSize> sizes;
  std::map<Bytes, std::vector<std::size_t>> measured;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!has_median(cases[i])) continue;
    std::vector<std::size_t>& same = measured[cases[i].what.size];
    if (same.empty()) sizes.push_back({cases[i].what.size, {}, 1});
    same.push_back(i);
  }
  for (BestOfSize& of : sizes) {
    const std::vector<std::size_t>& same = measured[of.size];
    const auto median = [&](std::size_t i) { return cases[i].summary.median; };
    const Summary& best = cases[*std::ranges::min_element(same, {}, median)].summary;
    // The interval of a single sample or of an old file may not hold the median itself.
    const double reach = std::max(best.median_high, best.median);
    double slowest = 0;
    for (const std::size_t i : same) {
      slowest = std::max(slowest, median(i));
      if (std::min(cases[i].summary.median_low, median(i)) <= reach) of.best.push_back(i);
    }
    if (best.median > 0) of.slowest = slowest / best.median;
  }
  return sizes;
}

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "model/fields.hpp"
#include "model/sweep.hpp"

#include <algorithm>
#include <string>
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

// A slice a device, as by default, or the same number of slices.
bool same_split(const Case& many, const Case& one) {
  const bool one_each = std::cmp_equal(many.split, many.gpus.size()) && one.split == 1;
  return one_each || many.split == one.split;
}

/// The median of the case with `size` bytes on one of the devices of `of`, the first that has one.
std::optional<double> alone(std::span<const CaseResult> cases, const CaseResult& of, Bytes size) {
  const Options options = shared_options(of.what);
  for (const int gpu : of.what.gpus)
    for (const CaseResult& one : cases)
      if (has_median(one) && one.what.gpus == std::vector{gpu} && one.what.size == size &&
          same_split(of.what, one.what) && shared_options(one.what) == options)
        return one.summary.median;
  return std::nullopt;
}

}  // namespace

void fill_efficiencies(std::span<CaseResult> cases) {
  for (CaseResult& result : cases) {
    result.weak_efficiency = result.strong_efficiency = std::nullopt;
    const std::size_t devices = result.what.gpus.size();
    if (devices < 2 || !has_median(result) || result.summary.median <= 0) continue;
    const double median = result.summary.median;
    if (result.what.size % devices == 0)
      if (const auto one = alone(cases, result, result.what.size / devices))
        result.weak_efficiency = *one / median;
    if (const auto one = alone(cases, result, result.what.size))
      result.strong_efficiency = *one / (static_cast<double>(devices) * median);
  }
}

std::vector<BestOfSize> best_of_sizes(std::span<const CaseResult> cases) {
  std::vector<BestOfSize> sizes;
  for (const CaseResult& result : cases)
    if (has_median(result) &&
        std::ranges::find(sizes, result.what.size, &BestOfSize::size) == sizes.end())
      sizes.push_back({result.what.size, {}, 1});
  for (BestOfSize& of : sizes) {
    const auto counts = [&](const CaseResult& r) {
      return has_median(r) && r.what.size == of.size;
    };
    const Summary* best = nullptr;
    double slowest = 0;
    for (const CaseResult& result : cases) {
      if (!counts(result)) continue;
      if (!best || result.summary.median < best->median) best = &result.summary;
      slowest = std::max(slowest, result.summary.median);
    }
    // The interval of a single sample or of an old file may not hold the median itself.
    const double reach = std::max(best->median_high, best->median);
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (counts(cases[i]) &&
          std::min(cases[i].summary.median_low, cases[i].summary.median) <= reach)
        of.best.push_back(i);
    if (best->median > 0) of.slowest = slowest / best->median;
  }
  return sizes;
}

}  // namespace mgpu

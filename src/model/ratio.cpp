// SPDX-License-Identifier: MIT
#include "model/ratio.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mgpu {
namespace {

constexpr std::size_t batches_of_a_side = 10;

double estimate(Metric metric, std::span<const double> samples) {
  switch (metric) {
    case Metric::min:
      return *std::ranges::min_element(samples);
    case Metric::mean:
      return std::accumulate(samples.begin(), samples.end(), 0.0) /
             static_cast<double>(samples.size());
    case Metric::median:
      break;
  }
  return median({samples.begin(), samples.end()});
}

// Neighbours share what changes slowly; whole batches of them share less with each other.
Rounds batches_of(const Rounds& rounds) {
  const std::size_t wanted = (batches_of_a_side + rounds.size() - 1) / rounds.size();
  Rounds batches;
  for (const auto samples : rounds) {
    const std::size_t n = samples.size(), count = std::min(n, wanted);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t first = n * k / count, last = n * (k + 1) / count;
      batches.push_back(samples.subspan(first, last - first));
    }
  }
  return batches;
}

std::size_t shortest(const Rounds& units) {
  return std::ranges::min_element(units, {}, [](auto unit) { return unit.size(); })->size();
}

std::vector<double> values_of(const Rounds& units, Metric metric, std::size_t length) {
  std::vector<double> values;
  for (const auto unit : units)
    values.push_back(estimate(metric, unit.first(std::min(unit.size(), length))));
  return values;
}

double estimate_of_all(const Rounds& rounds, Metric metric) {
  std::vector<double> samples;
  for (const auto round : rounds) samples.insert(samples.end(), round.begin(), round.end());
  return estimate(metric, samples);
}

std::vector<double> logarithms(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return values;
}

// How many ways there are to each U: the coefficients of the Gaussian binomial of m + n over m.
// They sum to 1.3e14 at most for m = n = 25, so all are exact.
std::vector<double> ways_to_each_u(std::size_t m, std::size_t n) {
  std::vector<double> ways(m * n + 1);
  ways[0] = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    for (std::size_t u = ways.size(); u-- > n + i;) ways[u] -= ways[u - n - i];
    for (std::size_t u = i; u < ways.size(); ++u) ways[u] += ways[u - i];
  }
  return ways;
}

}  // namespace

std::optional<std::size_t> dropped_ranks(std::size_t m, std::size_t n) {
  constexpr double one_side = 0.005, quantile = 2.576;
  constexpr std::size_t exact = 25;
  if (m <= exact && n <= exact) {
    const auto ways = ways_to_each_u(m, n);
    const double allowed = one_side * std::accumulate(ways.begin(), ways.end(), 0.0);
    std::optional<std::size_t> dropped;
    double sum = 0;
    for (std::size_t u = 0; u < ways.size() && (sum += ways[u]) <= allowed; ++u) dropped = u;
    return dropped;
  }
  const double x = static_cast<double>(m), y = static_cast<double>(n);
  // One in all orders has U = 0.
  const double orders = std::lgamma(x + y + 1) - std::lgamma(x + 1) - std::lgamma(y + 1);
  if (orders < -std::log(one_side)) return std::nullopt;
  const double rank = x * y / 2 - quantile * std::sqrt(x * y * (x + y + 1) / 12) - 0.5;
  return static_cast<std::size_t>(std::max(0.0, std::floor(rank)));
}

Ratio ratio_of(const Rounds& base, const Rounds& current, Metric metric, bool in_turns) {
  Ratio ratio;
  const bool rounds = base.size() >= enough_rounds && current.size() >= enough_rounds;
  ratio.units = rounds ? Units::rounds : Units::batches;
  const Rounds base_units = rounds ? base : batches_of(base),
               current_units = rounds ? current : batches_of(current);
  ratio.units_base = base_units.size();
  ratio.units_current = current_units.size();
  // More samples have a lower minimum: it is sought in equally many.
  const std::size_t length = metric == Metric::min
                                 ? std::min(shortest(base_units), shortest(current_units))
                                 : std::numeric_limits<std::size_t>::max();
  const auto base_values = values_of(base_units, metric, length),
             current_values = values_of(current_units, metric, length);
  ratio.base = rounds ? median(base_values) : estimate_of_all(base, metric);
  ratio.current = rounds ? median(current_values) : estimate_of_all(current, metric);
  ratio.value = ratio.current / ratio.base;

  const auto a = logarithms(base_values), b = logarithms(current_values);
  ratio.spread = std::max(summarize(a).sd, summarize(b).sd);
  const auto droppable = dropped_ranks(a.size(), b.size());
  if (!droppable) return ratio;
  const std::size_t dropped = rounds && !in_turns ? 0 : *droppable;
  std::vector<double> differences;
  differences.reserve(a.size() * b.size());
  for (const double x : a)
    for (const double y : b) differences.push_back(y - x);
  const auto at = [&](std::size_t rank) {
    const auto place = differences.begin() + static_cast<std::ptrdiff_t>(rank);
    std::ranges::nth_element(differences, place);
    return std::exp(*place);
  };
  ratio.interval = Interval{std::min(at(dropped), ratio.value),
                            std::max(at(differences.size() - 1 - dropped), ratio.value)};
  return ratio;
}

}  // namespace mgpu

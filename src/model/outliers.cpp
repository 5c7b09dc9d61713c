// SPDX-License-Identifier: MIT
#include "model/outliers.hpp"

#include "model/stats.hpp"

#include <algorithm>
#include <cmath>

namespace mgpu {
namespace {

// The normal quantile that is exceeded with probability p, 0 < p <= 0.5, within 4.5e-4 (Hastings;
// Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.23).
double upper_quantile(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

}  // namespace

Outliers find_outliers(std::span<const double> values, double floor) {
  constexpr double least_k = 3.5, false_share = 0.005;
  constexpr double sd_per_mad = 1.4826;  // of normal noise
  Outliers outliers;
  outliers.found.resize(values.size());
  outliers.median = median({values.begin(), values.end()});
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - outliers.median));
  outliers.mad = median(std::move(distances));
  if (values.size() < enough_to_judge) return outliers;

  const double k =
      std::max(least_k, upper_quantile(false_share / static_cast<double>(values.size())));
  outliers.threshold = std::max(k * sd_per_mad * outliers.mad, floor * outliers.median);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = values[i] - outliers.median;
    if (std::abs(off) > *outliers.threshold)
      outliers.found[i] = off > 0 ? Outlier::slow : Outlier::fast;
  }
  return outliers;
}

}  // namespace mgpu

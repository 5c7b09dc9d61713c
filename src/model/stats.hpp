// SPDX-License-Identifier: MIT
// Summaries of samples. Times are nanoseconds. O(n log n), but for the correlation time: n times
// the lags until samples are independent, a thousand at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mgpu {

struct Summary {
  double min = 0, median = 0, mean = 0, max = 0;
  double sd = 0;                     ///< with n - 1; 0 for one sample
  double p25 = 0, p75 = 0, p99 = 0;  ///< linear between order statistics (Hyndman and Fan's type 7)
  double median_low = 0, median_high = 0;  ///< 95% interval of the median, see median_interval
};

/// Of samples in time order; at least one.
Summary summarize(std::span<const double> samples);

/// The mean of the middle two for an even number; at least one.
double median(std::vector<double> values);

/// Order-statistic interval of the median at 95%: ranks j = floor(n/2 - 1.96 sqrt(n tau)/2), at
/// least 1, and n + 1 - j.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval(std::span<const double> samples);

/// How many correlated samples weigh as one: max(1, 2 sum G - 1) of sign(x - median), G_k = rho(2k)
/// + rho(2k+1) while positive, kept non-increasing (Geyer, "Practical Markov chain Monte Carlo",
/// 1992). Lags end at min(n/2, 1000). 1 for a constant series.
double correlation_time(std::span<const double> samples);

/// Two modes of a distribution: the share of the samples in each and its centre.
struct Modes {
  double low_share = 0, high_share = 0;
  double low_centre = 0,
         high_centre = 0;  ///< ns; of the shortest interval that holds half of the mode
};

/// The two modes, or nothing: on sorted logarithms of at least 50 samples, cut at the widest gap
/// inside the widest window of max(4, n/20) neighbours that leaves max(10, n/10) on each side. Two
/// modes where the centres are 2% and 1.5 times the sum of both half-widths apart and the middle
/// third between them is a tenth as dense as the thinner side.
std::optional<Modes> two_modes(std::span<const double> samples);

/// Whether sampling may stop since the median is known to `percent`: the order-statistic interval
/// and a t interval of ten batch medians both lie within it, the samples weigh as 50 independent
/// ones, and they took half a second. O(n log n).
bool median_settled(std::span<const double> samples, double percent);

/// Samples in time order, at most `limit` of them: when full, every second stored one is dropped
/// and from then on every second kept, and so on: stored()[i] is sample i * stride. min, max, mean
/// and sd stay those of all.
class SampleSeries {
 public:
  explicit SampleSeries(std::size_t limit = 1'000'000);  ///< at least 1
  void add(double ns);
  std::int64_t count() const { return count_; }
  bool thinned() const { return stride_ > 1; }
  const std::vector<double>& stored() const { return stored_; }
  Summary summary() const;  ///< at least one sample

 private:
  std::size_t limit_;
  std::int64_t count_ = 0, stride_ = 1;
  std::vector<double> stored_;
  double min_ = 0, max_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford's running mean and sum of squared differences
};

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "model/stats.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mgpu {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> values(samples.begin(), samples.end());
  std::ranges::sort(values);
  return values;
}

double quantile(std::span<const double> ordered, double p) {
  const double position = static_cast<double>(ordered.size() - 1) * p;
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, ordered.size() - 1);
  return std::lerp(ordered[below], ordered[above], position - static_cast<double>(below));
}

/// Of sign(x - center). Their mean is taken off: where many samples equal the median it is not
/// zero, and every lag would seem correlated.
double correlation_time_about(std::span<const double> samples, double center) {
  const std::size_t n = samples.size();
  std::vector<double> signs(n);
  std::ranges::transform(samples, signs.begin(),
                         [&](double x) { return double(x > center) - double(x < center); });
  const double mean = std::reduce(signs.begin(), signs.end()) / static_cast<double>(n);
  for (double& sign : signs) sign -= mean;

  const auto product_at = [&](std::size_t lag) {
    return std::transform_reduce(signs.begin(), signs.end() - static_cast<std::ptrdiff_t>(lag),
                                 signs.begin() + static_cast<std::ptrdiff_t>(lag), 0.0);
  };
  const double variance = product_at(0);
  if (variance == 0) return 1;

  const std::size_t last_lag = std::min<std::size_t>(n / 2, 1000);
  double sum = 0, pair = 2;
  for (std::size_t lag = 0; lag + 1 <= last_lag; lag += 2) {
    pair = std::min(pair, (product_at(lag) + product_at(lag + 1)) / variance);
    if (pair <= 0) break;
    sum += pair;
  }
  return std::max(1.0, 2 * sum - 1);
}

Interval median_interval_of(std::span<const double> ordered, double tau) {
  const auto n = static_cast<double>(ordered.size());
  const double rank = std::max(1.0, std::floor(n / 2 - 1.96 * std::sqrt(n * tau) / 2));
  const auto low = static_cast<std::size_t>(rank) - 1;
  return {ordered[low], ordered[ordered.size() - 1 - low]};
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  SampleSeries series(samples.size());
  for (const double ns : samples) series.add(ns);
  return series.summary();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

Interval median_interval(std::span<const double> samples) {
  const auto ordered = sorted(samples);
  return median_interval_of(ordered, correlation_time_about(samples, quantile(ordered, 0.5)));
}

double correlation_time(std::span<const double> samples) {
  return correlation_time_about(samples, quantile(sorted(samples), 0.5));
}

SampleSeries::SampleSeries(std::size_t limit) : limit_(limit) {}

void SampleSeries::add(double ns) {
  const std::int64_t number = count_++;
  min_ = number == 0 ? ns : std::min(min_, ns);
  max_ = number == 0 ? ns : std::max(max_, ns);
  const double difference = ns - mean_;
  mean_ += difference / static_cast<double>(count_);
  squares_ += difference * (ns - mean_);

  if (number % stride_ != 0) return;
  if (stored_.size() == limit_) {
    for (std::size_t i = 0; 2 * i < stored_.size(); ++i) stored_[i] = stored_[2 * i];
    stored_.resize((stored_.size() + 1) / 2);
    stride_ *= 2;
    if (number % stride_ != 0) return;
  }
  stored_.push_back(ns);
}

Summary SampleSeries::summary() const {
  const auto ordered = sorted(stored_);
  Summary result;
  result.min = min_;
  result.max = max_;
  result.mean = mean_;
  result.sd = count_ > 1 ? std::sqrt(squares_ / static_cast<double>(count_ - 1)) : 0;
  result.median = quantile(ordered, 0.5);
  result.p25 = quantile(ordered, 0.25);
  result.p75 = quantile(ordered, 0.75);
  result.p99 = quantile(ordered, 0.99);
  const auto interval = median_interval_of(ordered, correlation_time_about(stored_, result.median));
  result.median_low = interval.low;
  result.median_high = interval.high;
  return result;
}

}  // namespace mgpu

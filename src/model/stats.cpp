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

// The shortest interval that holds half of some ordered values.
struct Half {
  double centre, width;
  double density;  // values per unit inside it
};

Half shortest_half(std::span<const double> ordered) {
  const std::size_t held = (ordered.size() + 1) / 2;
  std::size_t best = 0;
  for (std::size_t i = 0; i + held <= ordered.size(); ++i)
    if (ordered[i + held - 1] - ordered[i] < ordered[best + held - 1] - ordered[best]) best = i;
  const double low = ordered[best], high = ordered[best + held - 1];
  return {(low + high) / 2, high - low, static_cast<double>(held) / (high - low)};
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

std::optional<Modes> two_modes(std::span<const double> samples) {
  const std::size_t n = samples.size();
  if (n < 50) return std::nullopt;
  std::vector<double> y(n);
  std::ranges::transform(samples, y.begin(), [](double ns) { return std::log(ns); });
  std::ranges::sort(y);

  const std::size_t least = std::max<std::size_t>(10, n / 10);
  const std::size_t window = std::max<std::size_t>(4, n / 20);
  // The cut lies behind y[k]: both sides keep at least `least`.
  const std::size_t first = least - 1, last = n - least;
  std::size_t widest = first;
  for (std::size_t i = first; i + window <= last; ++i)
    if (y[i + window] - y[i] > y[widest + window] - y[widest]) widest = i;
  std::size_t cut = widest;
  for (std::size_t k = widest; k < std::min(widest + window, last); ++k)
    if (y[k + 1] - y[k] > y[cut + 1] - y[cut]) cut = k;

  const std::span<const double> all(y);
  const auto below = all.first(cut + 1), above = all.subspan(cut + 1);
  const Half low = shortest_half(below), high = shortest_half(above);
  const double apart = high.centre - low.centre;
  if (apart < 0.02 || apart < 1.5 * (low.width + high.width)) return std::nullopt;
  const double from = low.centre + apart / 3, to = high.centre - apart / 3;
  const auto between = std::ranges::upper_bound(y, to) - std::ranges::lower_bound(y, from);
  if (static_cast<double>(between) / (apart / 3) > 0.1 * std::min(low.density, high.density))
    return std::nullopt;
  const double low_share = static_cast<double>(below.size()) / static_cast<double>(n);
  return Modes{low_share, 1 - low_share, std::exp(low.centre), std::exp(high.centre)};
}

bool median_settled(std::span<const double> samples, double percent) {
  constexpr std::size_t batches = 10;
  constexpr double t_of_nine_degrees = 2.262, shortest_ns = 0.5e9, weight = 50;
  const std::size_t n = samples.size();
  if (n < 50 || std::reduce(samples.begin(), samples.end()) < shortest_ns) return false;
  const auto ordered = sorted(samples);
  const double middle = quantile(ordered, 0.5), allowed = middle * percent / 100;
  const double tau = correlation_time_about(samples, middle);
  if (static_cast<double>(n) < weight * tau) return false;
  const Interval interval = median_interval_of(ordered, tau);
  if (interval.high - middle > allowed || middle - interval.low > allowed) return false;

  SampleSeries medians;
  for (std::size_t k = 0; k < batches; ++k) {
    const auto batch = samples.subspan(n * k / batches, n * (k + 1) / batches - n * k / batches);
    medians.add(median({batch.begin(), batch.end()}));
  }
  return t_of_nine_degrees * medians.summary().sd / std::sqrt(double{batches}) <= allowed;
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

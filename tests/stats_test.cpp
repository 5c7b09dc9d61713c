// SPDX-License-Identifier: MIT
#include "model/stats.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <vector>

using namespace mgpu;
using Catch::Approx;

namespace {

/// In (0, 1), the same on every machine.
double uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

double normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * uniform(random));
}

std::vector<double> autoregressive(std::size_t n, double rho, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<double> samples(n);
  double x = normal(random);
  for (double& sample : samples) {
    sample = x;
    x = rho * x + std::sqrt(1 - rho * rho) * normal(random);
  }
  return samples;
}

std::vector<double> sequence(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

/// 1, 51, 2, 52, ... 50, 100: neighbours on both sides of the median, so no positive correlation.
std::vector<double> interleaved() {
  std::vector<double> values;
  for (int i = 1; i <= 50; ++i) values.insert(values.end(), {double(i), double(i + 50)});
  return values;
}

}  // namespace

TEST_CASE("a summary agrees with numbers worked by hand", "[stats]") {
  const std::vector<double> samples{4, 1, 3, 2};
  const auto summary = summarize(samples);
  CHECK(summary.min == 1);
  CHECK(summary.median == 2.5);
  CHECK(summary.mean == 2.5);
  CHECK(summary.max == 4);
  CHECK(summary.sd == Approx(std::sqrt(5.0 / 3)));
  CHECK(summary.p25 == Approx(1.75));
  CHECK(summary.p75 == Approx(3.25));
  CHECK(summary.p99 == Approx(3.97));
  CHECK(summary.median_low == 1);
  CHECK(summary.median_high == 4);
}

TEST_CASE("a summary of one sample is that sample without a spread", "[stats]") {
  const std::vector<double> samples{7.5};
  const auto summary = summarize(samples);
  for (const double value : {summary.min, summary.median, summary.mean, summary.max, summary.p25,
                             summary.p75, summary.p99, summary.median_low, summary.median_high})
    CHECK(value == 7.5);
  CHECK(summary.sd == 0);
}

TEST_CASE("a small spread on a large offset keeps its digits", "[stats]") {
  const std::vector<double> samples{1e15 + 4, 1e15 + 7, 1e15 + 13, 1e15 + 16};
  const auto summary = summarize(samples);
  CHECK(summary.mean == 1e15 + 10);
  CHECK(summary.sd == Approx(std::sqrt(30.0)).epsilon(1e-12));
}

TEST_CASE("a summary does not depend on the order but for its interval", "[stats]") {
  auto samples = autoregressive(501, 0.9, 3);
  const auto in_time = summarize(samples);
  std::ranges::sort(samples);
  const auto ordered = summarize(samples);
  CHECK(ordered.min == in_time.min);
  CHECK(ordered.median == in_time.median);
  CHECK(ordered.max == in_time.max);
  CHECK(ordered.p25 == in_time.p25);
  CHECK(ordered.p99 == in_time.p99);
  CHECK(ordered.mean == Approx(in_time.mean));
  CHECK(ordered.sd == Approx(in_time.sd));
}

TEST_CASE("the median of an even number is the mean of the middle two", "[stats]") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1}) == 3);
  CHECK(median({9, 1, 4}) == 4);
  CHECK(median({10, 1, 4, 5}) == 4.5);
}

TEST_CASE("the interval of the median has the documented ranks", "[stats]") {
  // 100 / 2 - 1.96 * sqrt(100) / 2 = 40.2: ranks 40 and 61.
  const auto interval = median_interval(interleaved());
  CHECK(interval.low == 40);
  CHECK(interval.high == 61);
}

TEST_CASE("the interval of few samples is their range", "[stats]") {
  const int n = GENERATE(1, 2, 3, 4, 5);
  const auto interval = median_interval(sequence(n));
  CHECK(interval.low == 1);
  CHECK(interval.high == n);
}

TEST_CASE("correlated samples widen the interval of the median", "[stats]") {
  // Half low, half high: n = 100 samples weigh as 100 / tau, so the rank is 50 - 1.96 sqrt(100 tau)
  // / 2.
  const double tau = correlation_time(sequence(100));
  CHECK(tau > 10);
  const auto interval = median_interval(sequence(100));
  const double rank = std::max(1.0, std::floor(50 - 9.8 * std::sqrt(tau)));
  CHECK(interval.low == rank);
  CHECK(interval.high == 101 - rank);
  CHECK(interval.low < 40);
}

TEST_CASE("the interval covers the true median about as often as it says", "[stats]") {
  const double rho = GENERATE(0.0, 0.5);
  int covered = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const auto interval = median_interval(autoregressive(400, rho, seed + 1));
    covered += interval.low <= 0 && 0 <= interval.high;
  }
  CAPTURE(rho, covered);
  CHECK(covered >= 365);
  CHECK(covered <= 398);
}

TEST_CASE("the correlation time of a constant series is one", "[stats]") {
  const std::size_t n = GENERATE(1u, 2u, 3u, 100u);
  CHECK(correlation_time(std::vector<double>(n, 5.0)) == 1);
}

TEST_CASE("the correlation time agrees with numbers worked by hand", "[stats]") {
  // Signs - - - + + +: rho(1) = 3/6, then rho(2) + rho(3) = 0 - 3/6 ends the sum.
  CHECK(correlation_time(std::vector<double>{1, 1, 1, 2, 2, 2}) == Approx(2));
  CHECK(correlation_time(std::vector<double>{3, 1, 2, 9, 8, 7}) == Approx(2));
  CHECK(correlation_time(std::vector<double>{1, 2, 1, 2, 1, 2}) == 1);
}

TEST_CASE("a later pair of lags never counts for more than an earlier one", "[stats]") {
  // Pairs 17/14, 1/14, 7/14: the third counts as 1/14, so 2 * 19/14 - 1.
  const std::vector<double> samples{2, 2, 2, 2, 1, 2, 2, 1, 1, 1, 2, 1, 1, 1};
  CHECK(correlation_time(samples) == Approx(12.0 / 7));
}

TEST_CASE("the correlation time looks at no lag above 1000", "[stats]") {
  // Half low, half high: all lags count, and 500 pairs of at most 2 bound it.
  std::vector<double> samples(100'000, 1.0);
  std::fill(samples.begin() + 50'000, samples.end(), 2.0);
  const double tau = correlation_time(samples);
  CHECK(tau <= 1999);
  CHECK(tau > 1900);
}

TEST_CASE("many samples equal to the median are not correlated for that", "[stats]") {
  std::mt19937_64 random(7);
  std::vector<double> samples(10'000);
  for (double& sample : samples) sample = uniform(random) < 0.6 ? 10 : 11;
  CHECK(correlation_time(samples) < 1.3);
}

TEST_CASE("the correlation time of a sticky two-mode series is that of its Markov chain",
          "[stats]") {
  // Leaving low with p and high with q: rho(k) = (1 - p - q)^k, and tau = (1 + r) / (1 - r).
  const auto [p, q] = GENERATE(table<double, double>({{0.1, 0.1}, {0.05, 0.08}, {0.5, 0.5}}));
  std::mt19937_64 random(11);
  std::vector<double> samples(200'000);
  bool high = false;
  for (double& sample : samples) {
    sample = high ? 20 : 10;
    if (uniform(random) < (high ? q : p)) high = !high;
  }
  const double r = 1 - p - q;
  CAPTURE(p, q);
  CHECK(correlation_time(samples) == Approx((1 + r) / (1 - r)).epsilon(0.1));
}

TEST_CASE("the correlation time of a Gaussian AR(1) series follows the arcsine law", "[stats]") {
  const double rho = GENERATE(0.0, 0.5, 0.9);
  double tau = 1, power = rho;
  for (int k = 1; k <= 500; ++k, power *= rho) tau += 4 / std::numbers::pi * std::asin(power);
  CAPTURE(rho);
  CHECK(correlation_time(autoregressive(200'000, rho, 5)) == Approx(tau).epsilon(0.1));
}

TEST_CASE("the correlation time ignores how far samples lie from the median", "[stats]") {
  auto samples = autoregressive(2000, 0.8, 9);
  const double tau = correlation_time(samples);
  for (double& sample : samples) sample = std::exp(3 * sample);
  CHECK(correlation_time(samples) == Approx(tau));
}

TEST_CASE("a series stores everything up to its limit", "[stats]") {
  SampleSeries series(4);
  for (int i = 0; i < 4; ++i) series.add(i);
  CHECK(series.count() == 4);
  CHECK_FALSE(series.thinned());
  CHECK(series.stored() == std::vector<double>{0, 1, 2, 3});
}

TEST_CASE("a full series keeps every second sample, then every fourth", "[stats]") {
  SampleSeries series(4);
  const auto add_until = [&](int end) {
    while (series.count() < end) series.add(static_cast<double>(series.count()));
  };
  add_until(5);
  CHECK(series.thinned());
  CHECK(series.stored() == std::vector<double>{0, 2, 4});
  add_until(8);
  CHECK(series.stored() == std::vector<double>{0, 2, 4, 6});
  add_until(9);
  CHECK(series.stored() == std::vector<double>{0, 4, 8});
  add_until(17);
  CHECK(series.stored() == std::vector<double>{0, 8, 16});
  CHECK(series.count() == 17);
}

TEST_CASE("a series of any limit keeps evenly spaced samples and never more than its limit",
          "[stats]") {
  const std::size_t limit = GENERATE(1u, 2u, 3u, 5u, 8u, 13u);
  SampleSeries series(limit);
  for (int i = 0; i < 300; ++i) {
    series.add(i);
    const auto& stored = series.stored();
    REQUIRE(stored.size() <= limit);
    REQUIRE(stored.front() == 0);
    for (std::size_t k = 2; k < stored.size(); ++k)
      REQUIRE(stored[k] - stored[k - 1] == stored[1] - stored[0]);
    REQUIRE(series.thinned() == (static_cast<std::size_t>(i) >= limit));
  }
}

TEST_CASE("min, max, mean and sd of a thinned series are those of all samples", "[stats]") {
  auto samples = autoregressive(1001, 0.5, 21);
  samples[333] = 100;
  samples[335] = -100;
  SampleSeries series(16);
  for (const double sample : samples) series.add(sample);
  REQUIRE(series.thinned());
  const auto thinned = series.summary(), all = summarize(samples);
  CHECK(thinned.min == -100);
  CHECK(thinned.max == 100);
  CHECK(thinned.mean == all.mean);
  CHECK(thinned.sd == all.sd);
  CHECK(thinned.median == median(series.stored()));
}

TEST_CASE("a series that is not thinned has the summary of its samples", "[stats]") {
  const auto samples = autoregressive(50, 0.3, 4);
  SampleSeries series;
  for (const double sample : samples) series.add(sample);
  const auto a = series.summary(), b = summarize(samples);
  CHECK(a.mean == b.mean);
  CHECK(a.sd == b.sd);
  CHECK(a.p99 == b.p99);
  CHECK(a.median_low == b.median_low);
  CHECK(a.median_high == b.median_high);
}

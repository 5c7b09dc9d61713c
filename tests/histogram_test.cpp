// SPDX-License-Identifier: MIT
#include "report/histogram.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

std::vector<std::string> lines_of(const std::vector<double>& samples, int width) {
  return histogram_lines(make_histogram(samples, width), width);
}

std::vector<double> a_hundred() {
  std::vector<double> samples;
  for (int i = 0; i < 96; ++i) samples.push_back(100'000 + i);
  for (int i = 1; i <= 4; ++i) samples.push_back(1e6 * i);
  return samples;
}

std::vector<double> counting_to(int n) {
  std::vector<double> samples;
  for (int i = 1; i <= n; ++i) samples.push_back(i);
  return samples;
}

}  // namespace

TEST_CASE("two samples stand at both ends, as in BenchmarkTools' own test", "[histogram]") {
  CHECK(lines_of({1.0, 1.01}, 58) ==
        std::vector<std::string>{"  █                                                       █  ",
                                 "  █▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█ ▁",
                                 "  1 ns           Histogram: frequency by time       1.01 ns <"});
}

TEST_CASE("one bin that dwarfs the others makes the scale logarithmic", "[histogram]") {
  const Histogram histogram = make_histogram(a_hundred(), 62);
  CHECK(histogram.logarithmic);
  CHECK(histogram.median_column == 0);
  CHECK(histogram.mean_column == 2);
  CHECK(histogram_lines(histogram, 62) ==
        std::vector<std::string>{
            "  █                                                              ",
            "  █▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄ ▄",
            "  100 μs        Histogram: log(frequency) by time          3 ms <"});
}

TEST_CASE("the footer of the seed's trial comes out with its spaces", "[histogram]") {
  // 886 samples between its ends; columns of 8 and 9 characters made the width 59.
  std::vector<double> samples(886, 5e6);
  samples.front() = 2.889e6;
  for (std::size_t i = 870; i < samples.size(); ++i) samples[i] = 15.1e6;
  CHECK(histogram_lines(make_histogram(samples, 59, HistogramScale::log), 59).back() ==
        "  2.89 ms      Histogram: log(frequency) by time     15.1 ms <");
}

TEST_CASE("a forced scale wins over what BenchmarkTools would decide", "[histogram]") {
  CHECK_FALSE(make_histogram(a_hundred(), 62, HistogramScale::linear).logarithmic);
  CHECK(make_histogram(std::vector<double>{1.0, 1.01}, 58, HistogramScale::log).logarithmic);
}

TEST_CASE("the order of samples does not matter", "[histogram]") {
  std::vector<double> samples = a_hundred();
  const auto sorted = lines_of(samples, 62);
  std::ranges::shuffle(samples, std::mt19937(1));
  CHECK(lines_of(samples, 62) == sorted);
}

TEST_CASE("any samples give bars of 1 to 16, a blank and an overflow bar", "[histogram]") {
  std::mt19937 random(GENERATE(range(1U, 40U)));
  const auto n = std::uniform_int_distribution<std::size_t>(2, 400)(random);
  const int width = std::uniform_int_distribution<int>(54, 64)(random);
  std::lognormal_distribution<double> times(10, 1);
  std::vector<double> samples(n);
  std::ranges::generate(samples, [&] { return times(random); });

  const auto scale =
      GENERATE(HistogramScale::automatic, HistogramScale::linear, HistogramScale::log);
  const Histogram histogram = make_histogram(samples, width, scale);
  REQUIRE(histogram.heights.size() == static_cast<std::size_t>(width) + 1);
  CHECK(histogram.heights[static_cast<std::size_t>(width) - 1] == 0);
  CHECK(std::ranges::max(histogram.heights) == 16);
  for (std::size_t i = 0; i < histogram.heights.size(); ++i)
    if (std::cmp_not_equal(i, width - 1)) CHECK(histogram.heights[i] >= 1);
  CHECK(histogram.low <= histogram.high);
}

TEST_CASE("equal samples all stand in the first column", "[histogram]") {
  const Histogram histogram = make_histogram(std::vector<double>(7, 42.0), 54);
  CHECK(histogram.heights.front() == 16);
  CHECK(std::ranges::count(histogram.heights, 1) == 54 - 1);
  CHECK(histogram.median_column == 0);
  CHECK(histogram.mean_column == 0);
}

TEST_CASE("a sample on an edge belongs to the bin below", "[histogram]") {
  const Histogram histogram = make_histogram(std::vector<double>{0, 1, 10}, 11);
  CHECK(histogram.heights[0] == 16);
  CHECK(histogram.heights[1] == 1);
  CHECK(histogram.heights[9] == 9);
}

TEST_CASE("the last edge may round below the top sample, which is then in no bin", "[histogram]") {
  constexpr int width = 58, bins = width - 1;
  constexpr double low = 1.581, high = 7.934;
  static_assert(low + bins * ((high - low) / bins) < high);
  CHECK(make_histogram(std::vector<double>{low, high}, width).heights[bins - 1] == 1);
}

TEST_CASE("the shown part ends at 99% of the samples, rounded half to even", "[histogram]") {
  CHECK(make_histogram(counting_to(50), 54).high == 50);    // 49.5
  CHECK(make_histogram(counting_to(150), 54).high == 148);  // 148.5
  CHECK(make_histogram(counting_to(200), 54).high == 198);
}

TEST_CASE("the overflow column counts a hundredth of the samples from a hundred on",
          "[histogram]") {
  const auto overflow = [](int n) {
    return make_histogram(counting_to(n), 54, HistogramScale::linear).heights.back();
  };
  CHECK(overflow(99) == 1);
  CHECK(overflow(100) > 1);
}

TEST_CASE("without an empty bin the bars start at 1, not at 2", "[histogram]") {
  // 60 and 39 samples in the two bins, the blank's 1, and 1 in the overflow column.
  std::vector<double> samples(60, 1.0);
  samples.resize(100, 2.0);
  CHECK(make_histogram(samples, 3, HistogramScale::linear).heights ==
        std::vector<int>{16, 11, 0, 1});
}

TEST_CASE("the median's column is that of the lower middle sample", "[histogram]") {
  CHECK(make_histogram(std::vector<double>{0, 5, 10}, 11).median_column == 0);
  CHECK(make_histogram(std::vector<double>{0, 3, 7, 10}, 11).median_column == 3);
}

TEST_CASE("columns of median and mean are rounded half to even", "[histogram]") {
  CHECK(make_histogram(std::vector<double>{0, 2.5, 7, 10}, 11).median_column == 2);
  CHECK(make_histogram(std::vector<double>{0, 3.5, 7, 10}, 11).median_column == 4);
  CHECK(make_histogram(std::vector<double>{0, 4, 4, 10}, 11).mean_column == 4);  // 4.5
}

TEST_CASE("a mean beyond the last column marks nothing", "[histogram]") {
  std::vector<double> samples = counting_to(99);
  samples.push_back(1e15);
  const Histogram histogram = make_histogram(samples, 54);
  CHECK(std::cmp_greater_equal(histogram.mean_column, histogram.heights.size()));
  const auto lines = histogram_lines(histogram, 54, true);
  CHECK(lines[0].find("\x1b[32m") == std::string::npos);
  CHECK(lines[0].find("\x1b[34m") != std::string::npos);
}

TEST_CASE("median and mean bars are coloured in both rows, and blue wins", "[histogram]") {
  const Histogram apart = make_histogram(a_hundred(), 62);
  for (const std::size_t row : {0U, 1U}) {
    const std::string line = histogram_lines(apart, 62, true)[row];
    CHECK(line.find("\x1b[34m") != std::string::npos);
    CHECK(line.find("\x1b[32m") != std::string::npos);
  }
  const Histogram together = make_histogram(std::vector<double>(7, 42.0), 54);
  CHECK(histogram_lines(together, 54, true)[1].find("\x1b[32m") == std::string::npos);
}

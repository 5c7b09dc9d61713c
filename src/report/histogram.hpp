// SPDX-License-Identifier: MIT
// The histogram of BenchmarkTools.jl 1.8 (src/trials.jl): two rows of bars and a footer, its
// rounding and edge rules included.
#pragma once

#include "model/stats.hpp"
#include "model/words.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu {

/// Bars without colour. Heights are 1 to 16; the last of them is the overflow column (the slowest
/// 1%), the one before it a blank (0).
struct Histogram {
  std::vector<int> heights;
  std::vector<double> counts;  ///< samples of each bin from `low` on, `step` ns wide
  double step = 0;
  double slowest = 0;  ///< samples that the overflow column stands for
  int median_column = 0,
      mean_column = 0;  ///< 0-based; may lie past the end (then nothing is marked)
  bool logarithmic = false;
  double low = 0, high = 0;  ///< ns at the first bin's and the last bin's end
};

/// From the fastest sample to the 99% point, which ends a histogram. At least one sample.
Interval histogram_range(std::span<const double> samples);

/// `width` is BenchmarkTools' W. At least two samples, in any order. On an axis other than its own
/// the first bin takes what lies before it, and what lies behind it is left out.
Histogram make_histogram(std::span<const double> samples, int width,
                         HistogramScale scale = HistogramScale::automatic,
                         std::optional<Interval> axis = std::nullopt);

/// BenchmarkTools' W for a trial with this summary.
int histogram_width(const Summary& summary);

/// One row of bars for a table: `width` bins from the fastest to the 99% point, their frequency or
/// its logarithm; or on another axis. Empty for fewer than two samples.
std::string histogram_line(std::span<const double> samples, int width, HistogramScale scale,
                           std::optional<Interval> axis = std::nullopt);

/// The two rows of bars and the footer, two spaces before each, without line feeds.
std::vector<std::string> histogram_lines(const Histogram& histogram, int width, bool color = false);

}  // namespace mgpu

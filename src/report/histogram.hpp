// SPDX-License-Identifier: MIT
// The histogram of BenchmarkTools.jl 1.8 (src/trials.jl): two rows of bars and a footer, its
// rounding and edge rules included.
#pragma once

#include "model/words.hpp"

#include <span>
#include <string>
#include <vector>

namespace mgpu {

/// Bars without colour. Heights are 1 to 16; the last of them is the overflow column (the slowest
/// 1%), the one before it a blank (0).
struct Histogram {
  std::vector<int> heights;
  int median_column = 0,
      mean_column = 0;  ///< 0-based; may lie past the end (then nothing is marked)
  bool logarithmic = false;
  double low = 0, high = 0;  ///< ns at the first bin's and the last bin's end
};

/// `width` is BenchmarkTools' W (42 + the widths of both columns of the header). At least two
/// samples, in any order.
Histogram make_histogram(std::span<const double> samples, int width,
                         HistogramScale scale = HistogramScale::automatic);

/// The two rows of bars and the footer, two spaces before each, without line feeds.
std::vector<std::string> histogram_lines(const Histogram& histogram, int width, bool color = false);

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "report/histogram.hpp"

#include "model/stats.hpp"
#include "model/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>

namespace mgpu {
namespace {

constexpr double quantile = 0.99;
constexpr int rows = 2;
constexpr int steps_a_row = 8;
constexpr std::array<const char*, steps_a_row> glyphs = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Julia's round: half to even, which is how nearbyint rounds by default.
double rounded(double value) {
  return std::nearbyint(value);
}

// Counts of sorted values up to each bin's upper edge. Edges are low + i * step in double, so the
// last may lie below `high`.
std::vector<double> count_bins(std::span<const double> sorted, Interval axis, int bins) {
  const double low = axis.low, step = (axis.high - low) / bins;
  std::vector<double> counts;
  auto from = sorted.begin();
  for (int i = 1; i <= bins; ++i) {
    const auto to = std::upper_bound(from, sorted.end(), low + i * step);
    counts.push_back(static_cast<double>(to - from));
    from = to;
  }
  return counts;
}

// One bin would dwarf the others: the median of those with data is under a twentieth of the
// highest.
bool wants_log(const std::vector<double>& counts, double samples, int width) {
  std::vector<double> filled;
  std::ranges::copy_if(counts, std::back_inserter(filled),
                       [&](double count) { return count > 0.1 * samples / width; });
  return !filled.empty() && median(filled) / std::ranges::max(counts) < 0.05;
}

std::vector<int> bar_heights(const std::vector<double>& counts, int top) {
  const double most = std::ranges::max(counts);
  const bool gaps = std::ranges::min(counts) == 0;
  std::vector<int> heights;
  for (const double count : counts)
    heights.push_back(count == 0 ? 1
                      : gaps     ? 2 + static_cast<int>(rounded((top - 2) * count / most))
                                 : 1 + static_cast<int>(rounded((top - 1) * count / most)));
  return heights;
}

// Past the end is as good as any column there; the bound keeps the conversion defined.
int column_of(double value, double low, double step, int width) {
  return static_cast<int>(std::clamp(rounded((value - low) / step), 0.0, width + 1.0));
}

std::vector<double> sorted_of(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return sorted;
}

std::span<const double> up_to_quantile(const std::vector<double>& sorted) {
  const double kept = rounded(quantile * static_cast<double>(sorted.size()));
  return std::span(sorted).first(static_cast<std::size_t>(kept));
}

Interval ends_of(std::span<const double> sorted) {
  return {sorted.front(), sorted.back()};
}

void take_logarithm(std::vector<double>& counts) {
  for (double& count : counts) count = std::log(1 + count);
}

}  // namespace

int histogram_width(const Summary& s) {
  const auto columns = [](double ns) {
    const std::string text = format_time(ns);
    return static_cast<int>(text.size()) - (text.find("μ") == text.npos ? 0 : 1);
  };
  return 42 + std::max({columns(s.min), columns(s.median), columns(s.mean)}) +
         std::max(columns(s.max), columns(s.sd));
}

Interval histogram_range(std::span<const double> samples) {
  return ends_of(up_to_quantile(sorted_of(samples)));
}

std::string histogram_line(std::span<const double> samples, int width, HistogramScale scale,
                           std::optional<Interval> axis) {
  if (samples.size() < 2) return "";
  const std::vector<double> sorted = sorted_of(samples);
  const std::span shown = up_to_quantile(sorted);
  std::vector<double> counts = count_bins(shown, axis.value_or(ends_of(shown)), width);
  if (scale == HistogramScale::log) take_logarithm(counts);
  std::string line;
  for (const int height : bar_heights(counts, steps_a_row))
    line += glyphs[static_cast<std::size_t>(height - 1)];
  return line;
}

Histogram make_histogram(std::span<const double> samples, int width, HistogramScale scale,
                         std::optional<Interval> axis) {
  const std::vector<double> sorted = sorted_of(samples);
  const auto n = static_cast<double>(sorted.size());
  const std::span shown = up_to_quantile(sorted);

  Histogram histogram;
  const Interval ends = axis.value_or(ends_of(shown));
  histogram.low = ends.low;
  histogram.high = ends.high;
  std::vector<double> counts = count_bins(shown, ends, width - 1);
  histogram.counts = counts;
  histogram.slowest = std::floor((1 - quantile) * n);
  histogram.step = (histogram.high - histogram.low) / (width - 1);
  counts.push_back(1);  // the blank column takes part in the scale before it is blanked
  counts.push_back(histogram.slowest);

  histogram.logarithmic = scale == HistogramScale::log ||
                          (scale == HistogramScale::automatic && wants_log(counts, n, width));
  if (histogram.logarithmic) take_logarithm(counts);
  histogram.heights = bar_heights(counts, rows * steps_a_row);
  histogram.heights.end()[-2] = 0;

  if (const double step = histogram.step; step > 0) {
    const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
    histogram.median_column = column_of(sorted[sorted.size() / 2 - 1], histogram.low, step, width);
    histogram.mean_column = column_of(mean, histogram.low, step, width);
  }
  return histogram;
}

std::vector<std::string> histogram_lines(const Histogram& histogram, int width, bool color) {
  const auto paint = [&](std::string_view text, std::string_view code) {
    return color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  };
  std::vector<std::string> lines;
  for (int row = rows - 1; row >= 0; --row) {
    std::string line = "  ";
    for (int column = 0; column < static_cast<int>(histogram.heights.size()); ++column) {
      const int height = histogram.heights[static_cast<std::size_t>(column)] - row * steps_a_row;
      const std::string_view glyph =
          height < 1 ? " " : glyphs[static_cast<std::size_t>(std::min(height, steps_a_row) - 1)];
      if (column == histogram.median_column)
        line += paint(glyph, "34");
      else if (column == histogram.mean_column)
        line += paint(glyph, "32");
      else
        line += glyph;
    }
    lines.push_back(std::move(line));
  }

  const std::string_view caption =
      histogram.logarithmic ? "Histogram: log(frequency) by time" : "Histogram: frequency by time";
  const int room = width - static_cast<int>(caption.size());
  // fmt pads by displayed width, and "μ" is two bytes.
  lines.push_back(fmt::format("  {}{}{}",
                              paint(fmt::format("{:<{}}", format_time_short(histogram.low),
                                                std::max(room / 2, 0)),
                                    "90"),
                              paint(caption, "90"),
                              paint(fmt::format("{:>{}} ", format_time_short(histogram.high),
                                                std::max((room + 1) / 2 - 1, 0)),
                                    "90")) +
                  paint("<", "1"));
  return lines;
}

}  // namespace mgpu

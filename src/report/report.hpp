// SPDX-License-Identifier: MIT
// Report -> bytes, and saved bytes -> Report. No I/O, no machine.
#pragma once

#include "model/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

struct RenderOptions {
  bool color = false;
  HistogramScale histogram = HistogramScale::automatic;
  int width =
      0;  ///< columns of the terminal that a table must fit, by dropping columns; 0: no limit
  std::optional<Interval> axis =
      std::nullopt;    ///< that histograms of single trials share; else each has its own
  int axis_width = 0;  ///< their width in BenchmarkTools' terms, where they share one
};

/// The whole text, line feed at its end included; JSON Lines: one line a case. Colour appears in
/// text alone.
std::string render(Format format, const Report& report, const RenderOptions& options = {});

/// A gnuplot script with its data inside: rate over size for several cases, the histogram of a
/// single one. It draws to stdout in the terminal named (svg, png), or to the screen where none is
/// (gp). Throws Error{runtime} where there is nothing to draw.
std::string render_gnuplot(const Report& report, Format terminal);

/// The timelines of the cases as a Chrome trace, which Perfetto opens: a track for each thread and
/// for each device.
std::string render_trace(const Report& report);

/// The same as bars for a terminal, 80 columns wide, without colour.
std::string render_timeline(const Report& report);

/// The documents of a JSON or JSON Lines file in order. `path` is for messages; what was ignored (a
/// last line of a .jsonl cut off before its line feed) is added to `notes`. Throws Error{usage}
/// with path and place for what is cut off, empty, foreign or newer.
std::vector<Report> read_reports(std::string_view text, const std::string& path,
                                 std::vector<std::string>& notes);

}  // namespace mgpu

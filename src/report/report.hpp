// SPDX-License-Identifier: MIT
// Report -> bytes, and saved bytes -> Report. No I/O, no machine.
#pragma once

#include "model/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

struct RenderOptions {
  bool color = false;
  HistogramScale histogram = HistogramScale::automatic;
};

/// The whole text, line feed at its end included; JSON Lines: one line a case. Colour appears in
/// text alone.
std::string render(Format format, const Report& report, const RenderOptions& options = {});

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

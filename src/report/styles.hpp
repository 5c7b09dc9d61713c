// SPDX-License-Identifier: MIT
// The colours of text. Knows no report.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace mgpu {

// Those of BenchmarkTools, then ours.
inline constexpr std::string_view min_style = "1;36", max_style = "35", median_style = "1;34",
                                  mean_style = "1;32", sd_style = "32", dim_style = "90",
                                  failure_style = "1;31", cause_style = "33", best_style = "1;32";

/// `text` in a style, or as it is where there is to be no colour.
inline std::string painted(std::string_view text, std::string_view style, bool color) {
  return color && !style.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", style, text)
                                 : std::string(text);
}

}  // namespace mgpu

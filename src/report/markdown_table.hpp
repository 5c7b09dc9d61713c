// SPDX-License-Identifier: MIT
// What Markdown documents share. Knows no report.
#pragma once

#include "report/sweep_table.hpp"

#include <string>
#include <string_view>

namespace mgpu {

/// What would be markup, escaped.
std::string escaped(std::string_view text);

/// Heading, rows and sentences. Why a row found nothing stands in a last column: Markdown has no
/// cell that spans several.
std::string markdown_table(const SweepTable& table);

}  // namespace mgpu

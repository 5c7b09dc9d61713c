// SPDX-License-Identifier: MIT
#include "report/fleet_page.hpp"
#include "report/histogram.hpp"
#include "report/markdown_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace mgpu {
namespace {

std::vector<std::string> bars_of(const FleetBars& bars, bool color) {
  const int width = histogram_width(summarize(bars.medians));
  return histogram_lines(make_histogram(bars.medians, width), width, color);
}

std::string table_lines(SweepTable table, std::size_t columns) {
  const std::size_t width = std::min(columns, text_width);
  std::string out = wrapped(' ' + table.heading, 3, " ", width);
  const std::vector<std::string> dropped = fit(table.columns, columns);
  if (!table.columns.empty()) out += table_text(std::move(table.columns), columns);
  for (const std::string& line : table.lines) out += wrapped(' ' + line, 3, " ", width);
  if (!dropped.empty())
    out += wrapped(fmt::format(" left out at {} columns: {}", columns, fmt::join(dropped, ", ")), 3,
                   " ", width);
  return out;
}

}  // namespace

std::string fleet_text(const Fleet& fleet, BackendKind backend, const RenderOptions& options) {
  const std::size_t columns = options.width > 0 ? static_cast<std::size_t>(options.width)
                                                : std::numeric_limits<std::size_t>::max();
  const std::size_t width = std::min(columns, text_width);
  FleetPage page = fleet_page(fleet, backend);
  std::string out = wrapped("mgpu merge: " + page.heading, 1, ", ", width) + '\n';
  out += table_lines(std::move(page.cases), columns) + '\n';
  for (const FleetBars& bars : page.bars) {
    if (!bars.caption.empty()) out += ' ' + bars.caption + ":\n";
    for (const std::string& line : bars_of(bars, options.color)) out += line + '\n';
    out += '\n';
  }
  for (SweepTable& table : page.tables) out += table_lines(std::move(table), columns) + '\n';
  for (const std::string& line : page.lines) out += wrapped(' ' + line, 3, " ", width);
  if (!page.lines.empty()) out += '\n';
  return out + "exclude: " + page.exclude + '\n';
}

std::string fleet_markdown(const Fleet& fleet, BackendKind backend) {
  const FleetPage page = fleet_page(fleet, backend);
  std::string out = fmt::format("**mgpu merge**: {}\n\n", page.heading);
  const auto add = [&](const SweepTable& table) {
    out += markdown_table(table) + (table.lines.empty() ? "" : "\n");
  };
  add(page.cases);
  for (const FleetBars& bars : page.bars)
    out += fmt::format("{}```\n{}\n```\n\n", bars.caption.empty() ? "" : bars.caption + ":\n\n",
                       fmt::join(bars_of(bars, false), "\n"));
  for (const SweepTable& table : page.tables) add(table);
  for (const std::string& line : page.lines) out += fmt::format("- {}\n", escaped(line));
  return out +
         fmt::format("{}exclude: {}\n", page.lines.empty() ? "" : "\n", escaped(page.exclude));
}

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "report/comparison.hpp"
#include "report/styles.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace mgpu {
namespace {

std::string_view style_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return best_style;
    case Verdict::slower:
      return failure_style;
    case Verdict::unclear:
      return cause_style;
    case Verdict::same:
      break;
  }
  return "";
}

/// Each distinct reason once, with its rows.
std::vector<std::string> reason_lines(const std::vector<ComparisonRow>& rows) {
  RowNames names{"row", {}};
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    names.names.push_back(std::to_string(i + 1));
    if (std::ranges::find(reasons, rows[i].reason) == reasons.end())
      reasons.push_back(rows[i].reason);
  }
  std::vector<std::string> lines;
  for (const std::string& reason : reasons) {
    std::vector<std::size_t> those;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].reason == reason) those.push_back(i);
    lines.push_back(fmt::format("{}: {}", names.list(those), printable(reason)));
  }
  return lines;
}

}  // namespace

std::string comparison_text(const Comparison& comparison, BackendKind backend,
                            const RenderOptions& options) {
  const std::size_t width =
      options.width > 0 ? static_cast<std::size_t>(options.width) : text_width;
  const std::size_t prose_width = std::min(width, text_width);
  SweepTable table = comparison_table(comparison, backend);
  std::string out = wrapped("mgpu compare: " + table.heading, 1, ", ", prose_width) + '\n';
  const std::vector<std::string> dropped = fit(table.columns, width);

  const auto add_row = [&](const auto& cell_of, std::string_view verdict_style) {
    std::string line = " ";
    for (const Column& column : table.columns) {
      const bool last = &column == &table.columns.back();
      const std::string text = last ? std::string(cell_of(column))
                                    : padded(cell_of(column), width_of(column), column.align);
      line += column.header == "verdict" ? painted(text, verdict_style, options.color) : text;
      if (!last) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  if (!table.columns.empty())
    add_row([](const Column& column) -> std::string_view { return column.header; }, "");
  for (std::size_t row = 0; row < comparison.rows.size(); ++row)
    add_row([&](const Column& column) -> std::string_view { return column.cells[row]; },
            style_of(comparison.rows[row].verdict));

  std::vector<std::string> lines;
  if (std::ranges::find(dropped, "reason") != dropped.end()) lines = reason_lines(comparison.rows);
  std::ranges::move(table.lines, std::back_inserter(lines));
  std::vector<std::string> missed;
  std::ranges::copy_if(dropped, std::back_inserter(missed),
                       [](const std::string& header) { return header != "reason"; });
  if (!missed.empty())
    lines.push_back(fmt::format("left out at {} columns: {}", width, fmt::join(missed, ", ")));
  if (!lines.empty() && !comparison.rows.empty()) out += '\n';
  for (const std::string& line : lines) out += wrapped(" " + line, 3, " ", prose_width);
  return out;
}

}  // namespace mgpu

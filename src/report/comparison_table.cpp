// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"
#include "report/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace mgpu {
namespace {

using enum Column::Align;

std::string interval_cell(const ComparisonRow& row) {
  return row.ratio_low && row.ratio_high
             ? fmt::format("{:.3f} .. {:.3f}", *row.ratio_low, *row.ratio_high)
             : "";
}

/// A column of what was found. All but the verdict may go where a terminal is narrow.
struct Finding {
  std::string_view header;
  Column::Align align;
  int drop;
  std::string (*cell)(const ComparisonRow&);
};
constexpr auto findings = std::to_array<Finding>({
    {"base", right, 3, [](const ComparisonRow& r) { return format_time(r.base.ns); }},
    {"new", right, 3, [](const ComparisonRow& r) { return format_time(r.current.ns); }},
    {"ratio", right, 0, [](const ComparisonRow& r) { return fmt::format("{:.3f}", r.ratio); }},
    {"99% interval", left, 2, interval_cell},
    {"verdict", left, 0, [](const ComparisonRow& r) { return std::string(name(r.verdict)); }},
    {"reason", left, 4, [](const ComparisonRow& r) { return r.reason; }},
});

std::string counted_verdicts(const std::vector<ComparisonRow>& rows) {
  std::vector<std::string> parts;
  for (const auto& word : vocabulary<Verdict>) {
    const auto count = std::ranges::count(rows, word.value, &ComparisonRow::verdict);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, word.name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_modes(SweepTable& table, const std::vector<ComparisonRow>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto phrase = [](const Compared& side) {
      return side.modes ? modes_phrase(*side.modes) : std::string("one");
    };
    if (rows[i].base.modes || rows[i].current.modes)
      table.lines.push_back(fmt::format("modes of row {}: base {}; new {}", i + 1,
                                        phrase(rows[i].base), phrase(rows[i].current)));
  }
}

void add_sentences(SweepTable& table, const Comparison& comparison, BackendKind backend) {
  add_modes(table, comparison.rows);
  if (comparison.forced)
    table.lines.push_back("compared by position, as --force asks: the cases may differ");
  for (const UnmatchedCase& lone : comparison.unmatched)
    table.lines.push_back(fmt::format("only {}: {}: {}", name(lone.side),
                                      case_phrase(lone.what, backend), lone.reason));
  for (const Difference& difference : comparison.differences)
    table.lines.push_back(fmt::format("{}: {} in base, {} in new", difference.what, difference.base,
                                      difference.current));
  // Names and reasons come from files.
  for (std::string& line : table.lines) line = printable(line);
}

}  // namespace

SweepTable comparison_table(const Comparison& comparison, BackendKind backend) {
  const std::vector<ComparisonRow>& rows = comparison.rows;
  SweepTable table;
  table.notes.assign(rows.size(), "");
  table.best.assign(rows.size(), false);
  if (rows.empty()) {
    table.heading = "no case is measured on both sides";
  } else {
    std::vector<CaseResult> cases(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) cases[i].what = rows[i].what;
    table.heading = fmt::format("{} ({}), {}, tolerance {:g}%, {}", counted(rows.size(), "case"),
                                counted_verdicts(rows), name(rows.front().metric),
                                rows.front().tolerance, common_phrase(cases, backend));
    Column numbers{"#", {}};
    for (std::size_t i = 0; i < rows.size(); ++i) numbers.cells.push_back(std::to_string(i + 1));
    table.columns.push_back(std::move(numbers));
    for (const CaseField* field : varying_fields(cases)) {
      Column column{std::string(field->header), {}, field->number ? right : left, 1};
      for (const ComparisonRow& row : rows) column.cells.push_back(field->cell(row.what));
      table.columns.push_back(std::move(column));
    }
    for (const Finding& finding : findings) {
      Column column{std::string(finding.header), {}, finding.align, finding.drop};
      for (const ComparisonRow& row : rows) column.cells.push_back(printable(finding.cell(row)));
      table.columns.push_back(std::move(column));
    }
  }
  add_sentences(table, comparison, backend);
  return table;
}

}  // namespace mgpu

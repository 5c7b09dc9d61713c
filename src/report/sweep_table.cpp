// SPDX-License-Identifier: MIT
#include "report/sweep_table.hpp"

#include "model/fields.hpp"
#include "report/case_fields.hpp"
#include "report/histogram.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace mgpu {
namespace {

using enum Column::Align;

constexpr int bars = 16;

/// A column of what was found; a new one is a row of the table below.
struct Finding {
  std::string_view header;
  Column::Align align;
  int drop;
  std::string (*cell)(const CaseResult&);
};

std::string share(const std::optional<double>& value) {
  return value ? percent(*value) : "";
}

std::string marks_cell(const CaseResult& r) {
  std::vector<std::string_view> words;
  for (const Mark mark : r.marks) words.push_back(name(mark));
  return fmt::format("{}", fmt::join(words, ", "));
}

// What tells cases apart goes last where a terminal is narrow; the median stays.
constexpr int drop_varying = 1;
constexpr auto sources = std::to_array<Finding>({
    {"file", left, drop_varying, [](const CaseResult& r) { return printable(r.file); }},
    {"rounds", right, 9,
     [](const CaseResult& r) {
       return r.round_medians.empty() ? "" : std::to_string(r.round_medians.size());
     }},
});
constexpr auto times_and_rates = std::to_array<Finding>({
    {"min", right, 2, [](const CaseResult& r) { return format_time(r.summary.min); }},
    {"median", right, 0, [](const CaseResult& r) { return format_time(r.summary.median); }},
    {"mean", right, 9, [](const CaseResult& r) { return format_time(r.summary.mean); }},
    {"max", right, 8, [](const CaseResult& r) { return format_time(r.summary.max); }},
    {"moved", right, 3, [](const CaseResult& r) { return format_rate(r.rates.moved.median); }},
    {"copied", right, 7, [](const CaseResult& r) { return format_rate(r.rates.copied.median); }},
});
constexpr auto remarks = std::to_array<Finding>({
    {"wanted", right, 2,
     [](const CaseResult& r) {
       return r.expect ? fmt::format("{} {}", format_rate(r.expect->wanted), name(r.expect->basis))
                       : "";
     }},
    {"met", left, 2,
     [](const CaseResult& r) {
       return !r.expect ? std::string() : std::string(r.expect->met ? "yes" : "no");
     }},
    {"baseline", left, 2,
     [](const CaseResult& r) {
       return r.baseline ? fmt::format("{} {:.3f}", name(r.baseline->verdict), r.baseline->ratio)
                         : "";
     }},
    {"weak", right, 5, [](const CaseResult& r) { return share(r.weak_efficiency); }},
    {"strong", right, 5, [](const CaseResult& r) { return share(r.strong_efficiency); }},
    {"marks", left, 4, marks_cell},
});

Column column_of(const Finding& finding, std::span<const CaseResult> cases) {
  Column column{std::string(finding.header), {}, finding.align, finding.drop};
  for (const CaseResult& result : cases)
    column.cells.push_back(is_measured(result) ? finding.cell(result) : "");
  return column;
}

bool is_empty(const Column& column) {
  return std::ranges::all_of(column.cells, &std::string::empty);
}

// Of two and more files: the axis that the rows of one case share.
std::vector<std::optional<Interval>> axes_of_files(std::span<const CaseResult> cases) {
  std::map<std::vector<std::pair<std::string, std::string>>, std::optional<Interval>> axes;
  const auto counts = [](const CaseResult& r) {
    return !r.file.empty() && is_measured(r) && r.samples_ns.size() > 1;
  };
  for (const CaseResult& result : cases) {
    if (!counts(result)) continue;
    const Interval own = histogram_range(result.samples_ns);
    auto& axis = axes[identity_fields(result.what)];
    axis = axis ? Interval{std::min(axis->low, own.low), std::max(axis->high, own.high)} : own;
  }
  std::vector<std::optional<Interval>> all;
  for (const CaseResult& result : cases)
    all.push_back(counts(result) ? axes[identity_fields(result.what)] : std::nullopt);
  return all;
}

}  // namespace

SweepTable sweep_table(const Report& report, HistogramScale scale) {
  const std::span<const CaseResult> cases = report.cases;
  SweepTable table;
  table.heading =
      fmt::format("{}, {}", counted_cases(report), common_phrase(cases, report.machine.backend));
  table.best.assign(cases.size(), false);
  for (const BestOfSize& of : contests(cases))
    for (const std::size_t i : of.best) table.best[i] = true;

  RowNames names{"row", {}};
  Column numbers{"#", {}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    names.names.push_back(std::to_string(i + 1));
    numbers.cells.push_back(names.names.back() + (table.best[i] ? '*' : ' '));
    table.notes.push_back(note_of(cases[i]));
  }
  table.columns.push_back(std::move(numbers));
  for (const CaseField* field : varying_fields(cases)) {
    Column column{std::string(field->header), {}, field->number ? right : left, drop_varying};
    for (const CaseResult& result : cases) column.cells.push_back(field->cell(result.what));
    table.columns.push_back(std::move(column));
  }
  for (const Finding& finding : sources)
    if (std::ranges::any_of(cases, [&](const CaseResult& r) { return !finding.cell(r).empty(); })) {
      Column column{std::string(finding.header), {}, finding.align, finding.drop};
      for (const CaseResult& result : cases) column.cells.push_back(finding.cell(result));
      table.columns.push_back(std::move(column));
    }
  for (const Finding& finding : times_and_rates) table.columns.push_back(column_of(finding, cases));
  Column histogram{
      scale == HistogramScale::log ? "log, min to 99%" : "min to 99% point", {}, left, 6};
  const auto axes = axes_of_files(cases);
  for (std::size_t i = 0; i < cases.size(); ++i)
    histogram.cells.push_back(
        is_measured(cases[i]) ? histogram_line(cases[i].samples_ns, bars, scale, axes[i]) : "");
  table.columns.push_back(std::move(histogram));
  for (const Finding& finding : remarks) table.columns.push_back(column_of(finding, cases));
  std::erase_if(table.columns, is_empty);
  table.lines = finding_lines(report, names, true);
  if (std::ranges::any_of(axes, [](const auto& axis) { return axis.has_value(); }))
    table.lines.insert(table.lines.begin(), "histograms: rows of one case share an axis");
  if (std::ranges::any_of(table.columns, [](const Column& column) {
        return column.header == "weak" || column.header == "strong";
      }))
    table.lines.insert(
        table.lines.begin(),
        "weak: one device's median over that of N with N times the bytes; strong: one device's "
        "over N times that of N with the same bytes");
  return table;
}

}  // namespace mgpu

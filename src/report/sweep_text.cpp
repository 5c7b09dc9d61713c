// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/styles.hpp"
#include "report/sweep_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace mgpu {
namespace {

/// A table laid out for a terminal `width` columns wide, 0 for any.
class SweepText {
 public:
  SweepText(const Report& report, SweepTable table, const RenderOptions& options)
      : report_(report),
        table_(std::move(table)),
        color_(options.color),
        width_(options.width > 0 ? static_cast<std::size_t>(options.width)
                                 : std::numeric_limits<std::size_t>::max()),
        prose_width_(std::min(width_, text_width)) {}

  bool fits() const { return width_of(table_.columns) <= width_; }

  std::string render() {
    out_ = wrapped(fmt::format("mgpu sweep: {}", table_.heading), 1, ", ", prose_width_) + '\n';
    add_table();
    out_ += '\n';
    add_devices();
    for (const std::string& line : table_.lines) add(line);
    return out_;
  }

 private:
  void add(std::string_view line) {
    const std::string text = wrapped(fmt::format(" {}", line), 3, " ", prose_width_);
    constexpr std::string_view cause = "cause";
    out_ += line.starts_with(cause)
                ? ' ' + painted(cause, cause_style, color_) + text.substr(1 + cause.size())
                : text;
  }

  void add_table() {
    const std::vector<std::string> dropped = fit(table_.columns, width_);
    const std::vector<Column>& columns = table_.columns;
    // Why a row found nothing stands in place of the times.
    const auto times = std::ranges::find_if(
        columns, [](const Column& c) { return c.header == "min" || c.header == "median"; });
    const auto before = static_cast<std::size_t>(times - columns.begin());
    const std::size_t start = width_of({columns.data(), before}) + 2;
    std::vector<std::size_t> widths;
    std::string line = " ";
    for (const Column& column : columns) {
      widths.push_back(width_of(column));
      line += padded(column.header, widths.back(), column.align) + "  ";
    }
    add_line(line);
    std::vector<std::size_t> cut;
    for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
      const std::string& note = table_.notes[row];
      line = " ";
      for (std::size_t i = 0; i < (note.empty() ? columns.size() : before); ++i)
        line += cell(columns[i], widths[i], row) + "  ";
      if (!note.empty()) {
        const std::string shown = shortened(note, width_ - std::min(width_, start));
        if (shown != note) cut.push_back(row);
        line += painted(shown, note.starts_with("FAIL") ? failure_style : dim_style, color_);
      }
      add_line(line);
    }
    for (const std::string& whole : note_lines(report_, cut, row_names())) add(whole);
    if (!dropped.empty())
      add(fmt::format("left out at {} columns: {}", width_, fmt::join(dropped, ", ")));
  }

  std::string cell(const Column& column, std::size_t width, std::size_t row) const {
    const std::string text = padded(column.cells[row], width, column.align);
    const bool star = column.header == "#" && table_.best[row];
    return star ? painted(text, best_style, color_) : painted(text, style_of(column), color_);
  }

  static std::string_view style_of(const Column& column) {
    if (column.header == "min") return min_style;
    if (column.header == "median") return median_style;
    if (column.header == "mean") return mean_style;
    if (column.header == "max") return max_style;
    return "";
  }

  RowNames row_names() const {
    RowNames names{"row", {}};
    for (std::size_t i = 0; i < report_.cases.size(); ++i)
      names.names.push_back(std::to_string(i + 1));
    return names;
  }

  void add_line(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    out_ += line + '\n';
  }

  void add_devices() {
    for (const std::string& line : device_lines(report_.cases, report_.machine)) add(line);
  }

  const Report& report_;
  SweepTable table_;
  bool color_;
  std::size_t width_, prose_width_;
  std::string out_;
};

}  // namespace

std::string sweep_text(const Report& report, const RenderOptions& options) {
  if (auto seed = seed_table(report)) {
    SweepText text(report, *std::move(seed), options);
    if (text.fits()) return text.render();
  }
  return SweepText(report, sweep_table(report, options.histogram), options).render();
}

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "report/markdown_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu {

std::string escaped(std::string_view text) {
  constexpr std::string_view markup = "|<*_`";
  std::string out;
  for (const char c : printable(text)) {
    if (markup.find(c) != markup.npos) out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_table(const SweepTable& table) {
  std::string out = escaped(table.heading) + "\n\n";
  if (!table.columns.empty()) {
    const bool noted = !std::ranges::all_of(table.notes, &std::string::empty);
    std::string rule = "|";
    out += '|';
    for (const Column& column : table.columns) {
      out += fmt::format(" {} |", column.header);
      rule += column.align == Column::Align::right ? "---:|" : "---|";
    }
    out += (noted ? " not measured |\n" : "\n") + rule + (noted ? "---|\n" : "\n");
    for (std::size_t row = 0; row < table.notes.size(); ++row) {
      out += '|';
      for (const Column& column : table.columns)
        out += fmt::format(" {} |", escaped(column.cells[row]));
      out += noted ? fmt::format(" {} |\n", escaped(table.notes[row])) : "\n";
    }
    out += '\n';
  }
  for (const std::string& line : table.lines) out += fmt::format("- {}\n", escaped(line));
  return out;
}

}  // namespace mgpu

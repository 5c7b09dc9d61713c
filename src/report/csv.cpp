// SPDX-License-Identifier: MIT
#include "report/document.hpp"
#include "report/fleet_page.hpp"
#include "report/phrases.hpp"
#include "report/renderers.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

/// Header and text of each cell that a row fills; columns it does not name stay empty.
using Cells = std::vector<std::pair<std::string, std::string>>;

/// A cell may hold line feeds.
std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t from = 0;;) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    shown += printable(text.substr(from, end - from));
    if (end == text.size()) return shown;
    shown += '\n';
    from = end + 1;
  }
}

/// Makes cells of a struct's fields, nested structs flattened. Units and prefixes keep headers
/// apart that are one word in JSON.
struct Flattener {
  Cells& cells;
  std::string prefix = {}, suffix = {};
  bool blank = false;

  template <class T>
  void operator()(const std::string& key, const T& field) const {
    if constexpr (is_a<T, Group> || std::same_as<T, Maybe<const std::vector<DirectionResult>>> ||
                  std::same_as<T, std::vector<double>> ||
                  std::same_as<T, std::vector<DeviceResult>> ||
                  std::same_as<T, std::vector<DirectionResult>> ||
                  std::same_as<T, std::vector<Counters::Pair>> ||
                  std::same_as<T, std::vector<PlanEntry::LaneSteps>> ||
                  std::same_as<T, std::vector<PlanEntry::Memory>>) {
      return;  // series have no cell, devices have rows
    } else if constexpr (is_a<T, Maybe>) {
      visit(key, field.value, blank || !field.present);
    } else if constexpr (std::same_as<T, std::vector<Cause>>) {
      std::vector<CauseKind> words;
      for (const Cause& cause : field) words.push_back(cause.word);
      visit(key, words, blank);
    } else if constexpr (requires { describe(*field, *this); }) {
      visit(key, field.value_or(typename T::value_type{}), blank || !field);
    } else {
      visit(key, field, blank);
    }
  }

  template <class T>
  void visit(const std::string& key, const T& field, bool empty) const {
    if constexpr (requires { describe(field, *this); })
      describe(field, nested<T>(key, empty));
    else
      cells.emplace_back(prefix + key + (key == "rate" ? "_bytes_per_s" : suffix),
                         empty ? "" : field_text(field));
  }

  template <class T>
  Flattener nested(const std::string& key, bool empty) const {
    if constexpr (std::same_as<T, Summary>) return {cells, "", "_ns", empty};
    if constexpr (std::same_as<T, Rate>) return {cells, key + '_', "_bytes_per_s", empty};
    if constexpr (std::same_as<T, Verification> || std::same_as<T, Mismatch> ||
                  std::same_as<T, Counters> || std::same_as<T, Counters::ByCause> ||
                  std::same_as<T, Efficiency> || std::same_as<T, Modes> ||
                  std::same_as<T, Telemetry> || std::same_as<T, Expected>)
      return {cells, key + '_', "", empty};
    if constexpr (std::same_as<T, AgainstBaseline>) return {cells, "baseline_", "", empty};
    return {cells, "", "", empty};
  }
};

template <class T>
void flatten(const T& record, Cells& cells) {
  describe(record, Flattener{cells});
}

/// Rows of cells -> bytes. The columns are those that `columns` names, each once.
class Table {
 public:
  explicit Table(const Cells& columns) {
    for (const auto& [header, text] : columns)
      if (std::ranges::find(headers_, header) == headers_.end()) headers_.push_back(header);
    write(headers_);
  }

  void add(const Cells& row) {
    std::vector<std::string> texts;
    for (const std::string& header : headers_) {
      const auto cell = std::ranges::find(row, header, &Cells::value_type::first);
      texts.push_back(cell == row.end() ? "" : cell->second);
    }
    write(texts);
  }

  std::string bytes;

 private:
  // RFC 4180, but for its line end, which the tools of Unix do not expect. Texts of foreign files
  // must not steer the terminal that shows a table.
  void write(const std::vector<std::string>& texts) {
    const char* separator = "";
    for (const std::string& raw : texts) {
      const std::string text = printable_lines(raw);
      bytes += std::exchange(separator, ",");
      if (text.find_first_of(",\"\r\n") == text.npos) {
        bytes += text;
        continue;
      }
      bytes += '"';
      for (const char c : text) bytes += c == '"' ? "\"\"" : std::string(1, c);
      bytes += '"';
    }
    bytes += '\n';
  }

  std::vector<std::string> headers_;
};

Cells run_cells(const Report& report, std::string device) {
  return {{"started", report.started},
          {"host", report.machine.host.name},
          {"backend", report_word(report.machine.backend)},
          {"device", std::move(device)}};
}

const Device* find_device(const Machine& machine, int ordinal) {
  const auto found = std::ranges::find(machine.devices, ordinal, &Device::ordinal);
  return found == machine.devices.end() ? nullptr : &*found;
}

void add_device(Cells& cells, const Device* device) {
  cells.emplace_back("uuid", device ? device->uuid : "");
  cells.emplace_back("pci", device ? device->pci : "");
  cells.emplace_back("name", device ? device->name : "");
}

std::string trials_csv(const Report& report) {
  Cells columns = run_cells(report, "");
  add_device(columns, nullptr);
  flatten(CaseResult{}, columns);
  flatten(DeviceResult{}, columns);
  Table table(columns);
  for (const CaseResult& result : report.cases) {
    Cells all = run_cells(report, "all");
    flatten(result, all);
    table.add(all);
    for (const DeviceResult& part : result.per_device) {
      Cells one = run_cells(report, std::to_string(part.index));
      add_device(one, find_device(report.machine, part.index));
      one.emplace_back("key", result.key);
      flatten(result.what, one);
      one.emplace_back("outcome", report_word(result.outcome));
      flatten(part, one);
      table.add(one);
    }
  }
  return table.bytes;
}

/// A row a case, then the cases without a partner.
std::string comparison_csv(const Report& report) {
  Cells columns = run_cells(report, "");
  columns.pop_back();
  columns.emplace_back("side", "");
  flatten(ComparisonRow{}, columns);
  Table table(columns);
  const auto add = [&]<class Row>(std::string_view side, const Row& row) {
    Cells cells = run_cells(report, "");
    cells.emplace_back("side", side);
    flatten(row, cells);
    table.add(cells);
  };
  const Comparison comparison = report.comparison.value_or(Comparison{});
  for (const ComparisonRow& row : comparison.rows) add("both", row);
  for (const UnmatchedCase& lone : comparison.unmatched) add(name(lone.side), lone);
  return table.bytes;
}

/// A row a GPU and case.
std::string fleet_csv(const Report& report) {
  const Fleet fleet = report.fleet.value_or(Fleet{});
  const auto cells_of = [&](const FleetGpu& gpu, const Case& what) {
    Cells cells = {{"started", report.started}, {"backend", report_word(report.machine.backend)}};
    flatten(gpu, cells);
    flatten(what, cells);
    return cells;
  };
  Table table(cells_of({}, {}));
  for (const FleetGpu& gpu : fleet.gpus) table.add(cells_of(gpu, case_of(fleet, gpu).what));
  return table.bytes;
}

std::string place_name(const PlanEntry::Memory& memory) {
  if (memory.device) return std::to_string(*memory.device);
  return memory.node ? fmt::format("host:{}", *memory.node) : "host";
}

std::string plan_csv(const Report& report) {
  Cells columns = run_cells(report, "");
  flatten(PlanEntry{}, columns);
  flatten(PlanEntry::Memory{}, columns);
  Table table(columns);
  for (const PlanEntry& entry : report.plan) {
    Cells all = run_cells(report, "all");
    flatten(entry, all);
    table.add(all);
    for (const PlanEntry::Memory& part : entry.memory) {
      Cells one = run_cells(report, place_name(part));
      flatten(entry.what, one);
      one.emplace_back("need_bytes", field_text(part.need));
      table.add(one);
    }
  }
  return table.bytes;
}

/// Beside the columns of a device, where it begins.
void add_link(Cells& cells, const Link& link) {
  const auto end = [](int e) { return e == host_end ? std::string("host") : std::to_string(e); };
  const std::initializer_list<Cells::value_type> fields = {
      {"to", end(link.to)},
      {"kind", kind_text(link)},
      {"nvlinks_active", field_text(link.nvlinks_active)},
      {"nvlinks_total", field_text(link.nvlinks_total)},
      {"bytes_per_s_now", field_text(link.now)},
      {"bytes_per_s_best", field_text(link.best)},
      {"performance_rank", field_text(link.performance_rank)},
      {"claimed_read", field_text(link.claimed.read)},
      {"claimed_write", field_text(link.claimed.write)},
      {"claimed_atomics", field_text(link.claimed.atomics)},
      {"claimed_reason", link.claimed.reason},
      {"proved", proved_text(link)}};
  cells.insert(cells.end(), fields);
}

/// A row a device, then one a link and one for each rate that was measured on it.
std::string topology_csv(const Report& report) {
  Cells columns = run_cells(report, "");
  flatten(Device{}, columns);
  add_link(columns, {});
  flatten(Measured{}, columns);
  Table table(columns);
  for (const Device& device : report.machine.devices) {
    Cells cells = run_cells(report, std::to_string(device.ordinal));
    flatten(device, cells);
    table.add(cells);
  }
  for (const Link& link : report.machine.links) {
    Cells cells = run_cells(report, link.from == host_end ? "host" : std::to_string(link.from));
    add_link(cells, link);
    if (link.measured.empty()) table.add(cells);
    for (const Measured& one : link.measured) {
      Cells measured = cells;
      flatten(one, measured);
      table.add(measured);
    }
  }
  return table.bytes;
}

}  // namespace

std::string render_csv(const Report& report, const RenderOptions&) {
  switch (report.kind) {
    case ReportKind::plan:
      return plan_csv(report);
    case ReportKind::topology:
      return topology_csv(report);
    case ReportKind::comparison:
      return comparison_csv(report);
    case ReportKind::fleet:
      return fleet_csv(report);
    case ReportKind::trials:
      break;
  }
  return trials_csv(report);
}

}  // namespace mgpu

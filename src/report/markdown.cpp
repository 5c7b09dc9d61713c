// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"
#include "report/comparison.hpp"
#include "report/document.hpp"
#include "report/fleet_page.hpp"
#include "report/markdown_table.hpp"
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/sweep_table.hpp"
#include "report/topology_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace mgpu {
namespace {

/// One column: its header and what it says of a row. A new column is a row of the table that holds
/// it.
template <class Row>
struct Cell {
  std::string_view header;
  bool number;
  std::string (*text)(const Row&);
};

template <class Row, std::size_t n>
std::string table(const std::array<Cell<Row>, n>& columns, const std::vector<Row>& rows) {
  std::string out = "|", rule = "|";
  for (const auto& column : columns) {
    out += fmt::format(" {} |", column.header);
    rule += column.number ? "---:|" : "---|";
  }
  out += '\n' + rule + '\n';
  for (const Row& row : rows) {
    out += '|';
    for (const auto& column : columns) out += fmt::format(" {} |", column.text(row));
    out += '\n';
  }
  return out;
}

struct TrialRow {
  const CaseResult& r;
  BackendKind backend;
};

template <class F>
std::string where_sampled(const TrialRow& row, const F& text) {
  return row.r.samples > 0 ? text(row.r) : "";
}

std::string verdict(const CaseResult& r) {
  if (r.verified) return *r.verified ? "yes" : "**no**";
  return r.samples > 0 ? "not checked" : "";
}

std::string remarks(const CaseResult& r) {
  std::string text = r.outcome == OutcomeKind::measured
                         ? ""
                         : fmt::format("{}: {}", name(r.outcome), escaped(r.reason));
  for (const Mark mark : r.marks) text += (text.empty() ? "" : ", ") + std::string(name(mark));
  return text;
}

constexpr auto trial_columns = std::to_array<Cell<TrialRow>>({
    {"case", false,
     [](const TrialRow& row) {
       return escaped((row.r.file.empty() ? "" : row.r.file + ": ") +
                      case_phrase(row.r.what, row.backend));
     }},
    {"samples", true,
     [](const TrialRow& row) {
       return std::to_string(row.r.samples) +
              (row.r.round_medians.empty()
                   ? ""
                   : fmt::format(" ({} rounds)", row.r.round_medians.size()));
     }},
    {"min", true,
     [](const TrialRow& row) {
       return where_sampled(row, [](auto& r) { return format_time(r.summary.min); });
     }},
    {"median", true,
     [](const TrialRow& row) {
       return where_sampled(row, [](auto& r) { return format_time(r.summary.median); });
     }},
    {"mean ± σ", true,
     [](const TrialRow& row) {
       return where_sampled(row, [](auto& r) {
         return format_time(r.summary.mean) + " ± " + format_time(r.summary.sd);
       });
     }},
    {"max", true,
     [](const TrialRow& row) {
       return where_sampled(row, [](auto& r) { return format_time(r.summary.max); });
     }},
    {"copied", true,
     [](const TrialRow& row) {
       return where_sampled(row, [](auto& r) { return format_rate(r.rates.copied.median); });
     }},
    {"moved", true,
     [](const TrialRow& row) {
       return where_sampled(row, [](auto& r) { return format_rate(r.rates.moved.median); });
     }},
    {"of peak", true,
     [](const TrialRow& row) { return row.r.of_peak ? percent(*row.r.of_peak) : ""; }},
    {"verified", false, [](const TrialRow& row) { return verdict(row.r); }},
    {"remarks", false, [](const TrialRow& row) { return remarks(row.r); }},
});

/// A table as texts have it.
std::string table(const std::vector<Column>& columns) {
  std::string out = "|", rule = "|";
  for (const Column& column : columns) {
    out += fmt::format(" {} |", escaped(column.header));
    rule += column.align == Column::Align::right ? "---:|" : "---|";
  }
  out += '\n' + rule + '\n';
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    out += '|';
    for (const Column& column : columns) out += fmt::format(" {} |", escaped(column.cells[row]));
    out += '\n';
  }
  return out;
}

std::string cause_list(const CaseResult& result) {
  std::string out;
  for (const Cause& cause : result.causes)
    out += fmt::format("- {}\n", escaped(cause_phrase(cause, result.summary.median)));
  return out.empty() ? "" : "\nCauses:\n\n" + out;
}

std::string verdict_list(const std::vector<CaseResult>& cases) {
  std::string out;
  const auto add = [&](std::string_view label, const std::string& phrase, bool met) {
    out += fmt::format("- {0}{1}{0}: {2}\n", met ? "" : "**", label, escaped(phrase));
  };
  for (const CaseResult& result : cases) {
    if (result.expect) add("expect", expected_phrase(*result.expect), result.expect->met);
    if (result.baseline)
      add("baseline", judgement_phrase(*result.baseline),
          result.baseline->verdict != Verdict::slower);
  }
  return out.empty() ? "" : "\nVerdicts:\n\n" + out;
}

std::string one_case(const Report& report) {
  std::vector<TrialRow> rows;
  for (const CaseResult& result : report.cases) rows.push_back({result, report.machine.backend});
  std::string out = table(trial_columns, rows);
  // The rounds of one case say the same; the first that names causes speaks for them.
  const auto told =
      std::ranges::find_if(report.cases, [](const CaseResult& r) { return !r.causes.empty(); });
  if (told != report.cases.end()) out += cause_list(*told);
  out += verdict_list(report.cases);
  return out +
         "\nTimes are of one sample; rates are medians, copied is payload, moved is read + "
         "written, "
         "1 GB is 1e9 bytes.\n";
}

std::string several_cases(const Report& report, const RenderOptions& options) {
  auto seed = seed_table(report);
  return markdown_table(seed ? *seed : sweep_table(report, options.histogram));
}

constexpr auto plan_columns = std::to_array<Cell<std::pair<const PlanEntry*, BackendKind>>>({
    {"case", false,
     [](const auto& row) { return escaped(case_phrase(row.first->what, row.second)); }},
    {"plan", false,
     [](const auto& row) {
       return row.first->error_kind ? "skipped: " + escaped(row.first->reason)
                                    : std::string("planned");
     }},
    {"time", true,
     [](const auto& row) {
       return row.first->estimate_ns ? format_time_short(*row.first->estimate_ns) : "";
     }},
});

constexpr auto device_columns = std::to_array<Cell<Device>>({
    {"device", true, [](const Device& d) { return std::to_string(d.ordinal); }},
    {"name", false, [](const Device& d) { return escaped(d.name); }},
    {"memory", true,
     [](const Device& d) { return d.memory_bytes ? format_memory(*d.memory_bytes) : ""; }},
    {"PCI address", false, [](const Device& d) { return escaped(d.pci); }},
    {"UUID", false, [](const Device& d) { return escaped(d.uuid); }},
    {"NUMA", true, [](const Device& d) { return field_text(d.numa); }},
    {"PCIe", false,
     [](const Device& d) {
       return d.pcie.generation && d.pcie.width
                  ? fmt::format("gen {} x{}", *d.pcie.generation, *d.pcie.width)
                  : "";
     }},
    {"NVLinks", true, [](const Device& d) { return field_text(d.nvlinks.active); }},
});

std::string topology(const Machine& machine) {
  std::string out = table(device_columns, machine.devices);
  for (const Matrix& matrix : topology_matrices(machine)) {
    out += '\n' + escaped(matrix.heading) + (matrix.columns.empty() ? "\n" : ":\n\n");
    if (!matrix.columns.empty()) out += table(matrix.columns);
    if (!matrix.notes.empty()) out += '\n';
    for (const std::string& note : matrix.notes) out += fmt::format("- {}\n", escaped(note));
  }
  const auto health = health_of(machine);
  out += health.empty() ? "" : "\nHealth:\n\n";
  for (const std::string& line : health) out += fmt::format("- {}\n", escaped(line));
  return out;
}

// "host node1, 2 x NVIDIA H200, driver 580.159.04, mgpu 0.1.0"
std::string setting(const Report& report) {
  const Machine& machine = report.machine;
  std::map<std::string, int> models;
  for (const Device& device : machine.devices) ++models[device.name];
  std::string text = "host " + escaped(machine.host.name);
  for (const auto& [model, count] : models) text += fmt::format(", {} x {}", count, escaped(model));
  if (!machine.driver.version.empty()) text += ", driver " + escaped(machine.driver.version);
  return text + ", mgpu " + escaped(report.tool_version);
}

std::string ending(const Report& report) {
  std::string out;
  if (report.error)
    out += fmt::format("\n**{}**: {}\n", name(report.error->kind), escaped(report.error->message));
  if (!report.complete) out += "\nThe run was interrupted: this is what was finished until then.\n";
  return out;
}

}  // namespace

std::string render_markdown(const Report& report, const RenderOptions& options) {
  if (report.kind == ReportKind::comparison)
    return comparison_markdown(report.comparison.value_or(Comparison{}), report.machine.backend);
  if (report.kind == ReportKind::fleet)
    return fleet_markdown(report.fleet.value_or(Fleet{}), report.machine.backend) + ending(report);
  const bool several = report.kind == ReportKind::trials && has_several_cases(report.cases);
  std::string out = fmt::format("**mgpu {}** on {}\n\n",
                                report.kind == ReportKind::topology ? "topo"
                                : several                           ? "sweep"
                                                                    : "copy",
                                setting(report));
  switch (report.kind) {
    case ReportKind::topology:
      out += topology(report.machine);
      break;
    case ReportKind::plan: {
      std::vector<std::pair<const PlanEntry*, BackendKind>> rows;
      for (const PlanEntry& entry : report.plan) rows.emplace_back(&entry, report.machine.backend);
      out += table(plan_columns, rows);
      break;
    }
    case ReportKind::comparison:
    case ReportKind::fleet:
      break;
    case ReportKind::trials:
      out += several ? several_cases(report, options) : one_case(report);
      break;
  }
  return out + ending(report);
}

}  // namespace mgpu

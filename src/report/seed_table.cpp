// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"
#include "report/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace mgpu {
namespace {

/// Who copies, seen from the GPU that holds the arrays.
enum class Who { home, other, several };

struct Scenario {
  std::string_view label;
  MemoryKind memory;
  Who who;
  bool split;
};
constexpr auto scenarios = std::to_array<Scenario>({
    {"1 single kernel", MemoryKind::device, Who::home, false},
    {"2 multiple kernels", MemoryKind::device, Who::home, true},
    {"3 wrong device", MemoryKind::device, Who::other, true},
    {"4 unified", MemoryKind::managed, Who::home, true},
    {"5 unified, wrong device", MemoryKind::managed, Who::other, true},
    {"6 multi-GPU", MemoryKind::managed, Who::several, true},
});

struct Policy {
  std::string_view label;
  Prefetch prefetch;
  OwnerWait owner_wait;
};
constexpr auto policies = std::to_array<Policy>({
    {"a: as shipped", Prefetch::array, OwnerWait::host},
    {"b: no prefetch", Prefetch::none, OwnerWait::host},
    {"c: no prefetch, no wait", Prefetch::none, OwnerWait::none},
});

struct Cell {
  std::size_t scenario = 0, policy = 0;
  bool operator==(const Cell&) const = default;
};

std::optional<std::size_t> scenario_of(const Case& c) {
  if (c.from.kind != Place::Kind::device || c.from != c.to) return std::nullopt;
  // On a machine with one GPU the last scenario is that GPU alone, in one slice.
  const bool alone = c.gpus == std::vector{c.from.index};
  const bool several =
      c.gpus.size() > 1 || (alone && c.memory == MemoryKind::managed && c.split == 1);
  const Who who = several ? Who::several : alone ? Who::home : Who::other;
  const auto found = std::ranges::find_if(scenarios, [&](const Scenario& row) {
    return row.memory == c.memory && row.who == who &&
           (who == Who::several || row.split == (c.split > 1));
  });
  if (found == scenarios.end()) return std::nullopt;
  return static_cast<std::size_t>(found - scenarios.begin());
}

std::optional<Cell> cell_of(const Case& c) {
  const auto scenario = scenario_of(c);
  const auto policy = std::ranges::find_if(policies, [&](const Policy& column) {
    return column.prefetch == c.prefetch && column.owner_wait == c.owner_wait;
  });
  if (!scenario || policy == policies.end() || c.runtime != Runtime::cudajl_5_4)
    return std::nullopt;
  return Cell{*scenario, static_cast<std::size_t>(policy - policies.begin())};
}

bool asked_for(const std::vector<std::string>& command) {
  constexpr std::string_view option = "--preset", word = "issue-2615";
  for (std::size_t i = 0; i < command.size(); ++i)
    if (command[i] == fmt::format("{}={}", option, word) ||
        (command[i] == option && i + 1 < command.size() && command[i + 1] == word))
      return true;
  return false;
}

// Four digits, all cells in one unit.
std::string milliseconds(double ns) {
  const double ms = ns / 1e6;
  return fmt::format("{:.{}f}", ms, ms < 9.9995 ? 3 : ms < 99.995 ? 2 : 1);
}

std::string text_of(const CaseResult& result) {
  if (result.outcome == OutcomeKind::failed) return "FAIL";
  if (!is_measured(result)) return "-";
  return fmt::format("{} / {}", milliseconds(result.summary.min),
                     milliseconds(result.summary.median));
}

}  // namespace

std::optional<SweepTable> seed_table(const Report& report) {
  if (!asked_for(report.command)) return std::nullopt;
  SweepTable table;
  table.heading =
      fmt::format("CUDA.jl issue 2615, {}, {}; min / median in ms", counted_cases(report),
                  common_phrase(report.cases, report.machine.backend));
  Column down{"scenario", {}, Column::Align::left};
  for (const Scenario& row : scenarios) down.cells.emplace_back(row.label);
  table.columns.push_back(std::move(down));
  for (const Policy& column : policies)
    table.columns.push_back(
        {std::string(column.label), std::vector<std::string>(scenarios.size())});
  table.notes.resize(scenarios.size());
  table.best.resize(scenarios.size());

  RowNames names;
  std::vector<Cell> taken;
  std::vector<std::size_t> unmeasured;
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    const auto cell = cell_of(report.cases[i].what);
    if (!cell || std::ranges::find(taken, *cell) != taken.end()) return std::nullopt;
    taken.push_back(*cell);
    table.columns[cell->policy + 1].cells[cell->scenario] = text_of(report.cases[i]);
    names.names.push_back(fmt::format("{}{}", scenarios[cell->scenario].label.front(),
                                      policies[cell->policy].label.front()));
    if (!is_measured(report.cases[i])) unmeasured.push_back(i);
  }
  table.lines = note_lines(report, unmeasured, names);
  for (std::string& line : finding_lines(report, names, false))
    table.lines.push_back(std::move(line));
  return table;
}

}  // namespace mgpu

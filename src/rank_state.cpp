// SPDX-License-Identifier: MIT
#include "rank_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace mgpu {

void weigh(Report& report, const ErrorInfo& error) {
  const int its = exit_code(error.kind), told = report.error ? exit_code(report.error->kind) : 0;
  if (graver(told, its) != told) report.error = error;
  report.exit_code = graver(report.exit_code, its);
}

void complete_fleet(Report& report, FleetBuilder fleet, std::span<const RankState> ranks,
                    double outlier) {
  report.kind = ReportKind::fleet;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankState& state = ranks[rank];
    report.complete = report.complete && state.ended && state.complete;
    if (!state.ended && rank > 0)
      fleet.missing({static_cast<int>(rank), state.host, state.last_case});
    if (state.error) weigh(report, *state.error);
  }
  report.fleet = fleet.finish(outlier);
}

std::vector<std::string> complaints_of(std::span<const RankState> ranks) {
  std::map<std::string, std::set<std::size_t>> told;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    std::istringstream in(ranks[rank].complaints);
    for (std::string line; std::getline(in, line);) told[line].insert(rank);
  }
  if (!ranks.empty() && ranks[0].error) told.erase("mgpu: error: " + ranks[0].error->message);
  std::vector<std::string> lines;
  for (const auto& [line, who] : told)
    lines.push_back(
        fmt::format("{} (rank{} {})", line, who.size() > 1 ? "s" : "", fmt::join(who, ", ")));
  return lines;
}

}  // namespace mgpu

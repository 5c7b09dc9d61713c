// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/renderers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu {
namespace {

std::string memory_line(const std::vector<PlanEntry::Memory>& memory, std::string_view noun) {
  std::string line;
  for (const PlanEntry::Memory& place : memory)
    line += fmt::format("{}{} on {}", line.empty() ? " memory needed: " : ", ",
                        format_bytes(place.need),
                        place.device ? fmt::format("{} {}", noun, *place.device)
                        : place.node ? fmt::format("NUMA node {}", *place.node)
                                     : "the host");
  return line.empty() ? "" : wrapped(line, 3);
}

std::string entry_text(const PlanEntry& entry, BackendKind backend) {
  const std::string phrase = case_phrase(entry.what, backend);
  if (entry.error_kind)
    return wrapped(fmt::format("mgpu copy: skipped, {}: {}", phrase, printable(entry.reason)), 1);
  const std::string_view noun = device_noun(backend);
  std::string out = wrapped("mgpu copy: planned, " + phrase, 1, ", ");
  for (const PlanEntry::LaneSteps& lane : entry.lanes) {
    out += fmt::format(" {} {}, slice {}{}, {}:\n", noun, lane.device, lane.slice,
                       lane.reverse ? " of the reverse arrays" : "", format_bytes(lane.bytes));
    for (const std::string& step : lane.steps) out += wrapped("   " + printable(step), 5);
  }
  out += memory_line(entry.memory, noun);
  if (entry.estimate_ns)
    out += fmt::format(" time: about {}\n", format_time_short(*entry.estimate_ns));
  return out;
}

/// A line a cell: the command that measures it alone says what it is.
std::string topology_plan(const Report& report) {
  const auto left_out = std::ranges::count_if(
      report.plan, [](const PlanEntry& entry) { return entry.error_kind.has_value(); });
  std::string out =
      fmt::format("mgpu topo: {} of copies planned",
                  counted(report.plan.size() - static_cast<std::size_t>(left_out), "cell"));
  if (left_out > 0) out += fmt::format(", {} left out", left_out);
  if (report.estimate_ns)
    out += fmt::format(", with latencies and probes about {:.0f} s", *report.estimate_ns / 1e9);
  out += "\n";
  for (const PlanEntry& entry : report.plan)
    out += entry.error_kind ? wrapped(fmt::format("   left out: {}: {}", printable(entry.command),
                                                  printable(entry.reason)),
                                      5, " ", 100)
                            : fmt::format("   {}\n", printable(entry.command));
  return out;
}

}  // namespace

std::string plan_text(const Report& report) {
  std::string out;
  if (std::ranges::any_of(report.plan, [](const PlanEntry& e) { return !e.command.empty(); }))
    return topology_plan(report);
  for (const PlanEntry& entry : report.plan)
    out += (out.empty() ? "" : "\n") + entry_text(entry, report.machine.backend);
  return out;
}

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/renderers.hpp"

#include <fmt/format.h>

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

}  // namespace

std::string plan_text(const Report& report) {
  std::string out;
  for (const PlanEntry& entry : report.plan)
    out += (out.empty() ? "" : "\n") + entry_text(entry, report.machine.backend);
  return out;
}

}  // namespace mgpu

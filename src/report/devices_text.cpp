// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/topology_matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace mgpu {
namespace {

std::string table_of(const CaseResult& result, std::string_view noun) {
  using enum Column::Align;
  std::vector<Column> columns = {{std::string(noun), {}},
                                 {"slices", {}, right, 1},
                                 {"bytes", {}, right, 1},
                                 {"device time", {}},
                                 {"prefetch", {}},
                                 {"launch", {}},
                                 {"waits", {}},
                                 {"rate", {}},
                                 {"of peak", {}, right, 1}};
  // What no device did is no column; waits are one wherever they were asked for.
  const auto nobody = [&](std::optional<double> DeviceResult::*phase) {
    return std::ranges::none_of(result.per_device,
                                [&](const DeviceResult& d) { return d.*phase > 0.0; });
  };
  const bool no_prefetch = nobody(&DeviceResult::prefetch_ns);
  const bool no_waits = result.what.owner_wait == OwnerWait::none && nobody(&DeviceResult::wait_ns);
  const auto bytes = [](Bytes n) {
    const std::string exact = format_bytes(n);
    return exact.size() <= 8 ? exact : format_memory(n);
  };
  const auto time = [](const std::optional<double>& ns) {
    return ns ? format_time_short(*ns) : "-";
  };
  for (const DeviceResult& d : result.per_device) {
    const std::vector<std::string> cells = {std::to_string(d.index),
                                            std::to_string(d.slices),
                                            bytes(d.bytes),
                                            time(d.device_ns),
                                            no_prefetch ? "-" : time(d.prefetch_ns),
                                            time(d.launch_ns),
                                            no_waits ? "-" : time(d.wait_ns),
                                            d.rate ? format_rate(*d.rate) : "-",
                                            peak_phrase(d.of_peak, d.bottleneck)};
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  std::erase_if(columns, [](const Column& c) {
    return std::ranges::all_of(c.cells, [](auto& cell) { return cell == "-"; });
  });
  return table_text(std::move(columns));
}

// Those that copy, then those that only hold an array. A file may name what its machine does not
// have.
std::vector<int> devices_named(std::span<const CaseResult> results, std::size_t devices) {
  std::vector<int> ordinals;
  const auto add_once = [&](int ordinal) {
    const bool exists = ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices;
    if (exists && std::ranges::find(ordinals, ordinal) == ordinals.end())
      ordinals.push_back(ordinal);
  };
  for (const CaseResult& result : results)
    for (const DeviceResult& device : result.per_device) add_once(device.index);
  for (const CaseResult& result : results)
    for (const Place& place : {result.what.from, result.what.to})
      if (place.kind == Place::Kind::device) add_once(place.index);
  return ordinals;
}

// Where threads ran, device by device, those together that had the same CPUs.
std::string pinned_phrase(const CaseResult& result, std::string_view noun) {
  std::map<std::vector<int>, std::vector<int>> devices;
  for (const DeviceResult& device : result.per_device)
    if (device.slices > 0) devices[device.cpus].push_back(device.index);
  devices.erase(std::vector<int>{});
  std::vector<std::string> parts;
  for (const auto& [cpus, ordinals] : devices)
    parts.push_back(fmt::format("{} {} on CPUs {}", noun, ranges_of(ordinals), ranges_of(cpus)));
  return parts.empty() ? "" : fmt::format("threads of {}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<std::string> device_lines(std::span<const CaseResult> results, const Machine& machine) {
  std::vector<std::string> lines;
  for (const int ordinal : devices_named(results, machine.devices.size()))
    lines.push_back(fmt::format("{} {}: {}", device_noun(machine.backend), ordinal,
                                identity_of(machine.devices[static_cast<std::size_t>(ordinal)])));
  return lines;
}

std::string devices_text(const CaseResult& result, const Machine& machine) {
  if (result.per_device.empty()) return "";
  const std::string_view noun = device_noun(machine.backend);
  std::string out = table_of(result, noun);
  for (const std::string& line : device_lines({&result, 1}, machine)) out += wrapped(' ' + line, 3);
  if (const std::string pinned = pinned_phrase(result, noun); !pinned.empty())
    out += wrapped(' ' + pinned, 3);
  for (const DirectionResult& way : result.per_direction)
    out += wrapped(
        fmt::format(
            " {}: {} copied in {}, {}{}", name(way.direction), format_bytes(way.bytes),
            format_time(way.time_ns), format_rate(way.rate),
            way.device_ns && *way.device_ns > 0
                ? fmt::format(" ({} by device time)",
                              format_rate(static_cast<double>(way.bytes) / *way.device_ns * 1e9))
                : ""),
        3);
  for (const DeviceResult& device : result.per_device)
    if (const std::string state = state_phrase(device); !state.empty())
      out += wrapped(fmt::format(" {} {}: {}", noun, device.index, state), 3);
  return out;
}

}  // namespace mgpu

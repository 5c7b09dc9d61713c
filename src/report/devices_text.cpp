// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/topology_matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

namespace mgpu {
namespace {

/// In one unit, for the eye to compare them: as they are where all are short so, else rounded. What
/// is idle has 0 B.
std::vector<std::string> bytes_cells(const std::vector<DeviceResult>& devices) {
  constexpr std::size_t short_enough = 8;
  constexpr std::string_view idle = "0 B";
  constexpr auto units = std::to_array<std::string_view>({"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
  const Bytes most = std::ranges::max(devices, {}, &DeviceResult::bytes).bytes;
  const auto unit_of = [](const std::string& text) { return text.substr(text.find(' ') + 1); };
  const std::string unit = unit_of(format_bytes(most));
  std::vector<std::string> exact, rounded;
  for (const DeviceResult& device : devices) exact.push_back(format_bytes(device.bytes));
  if (std::ranges::all_of(exact, [&](const std::string& text) {
        return text.size() <= short_enough && (unit_of(text) == unit || text == idle);
      }))
    return exact;
  std::size_t power = 0;
  double scale = 1;
  for (; static_cast<double>(most) / scale >= 1000 && power + 1 < units.size(); ++power)
    scale *= 1024;
  for (const DeviceResult& device : devices)
    rounded.push_back(
        device.bytes == 0
            ? std::string(idle)
            : fmt::format("{:.2f} {}", static_cast<double>(device.bytes) / scale, units[power]));
  return rounded;
}

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
  const std::vector<std::string> bytes = bytes_cells(result.per_device);
  const auto time = [](const std::optional<double>& ns) {
    return ns ? format_time_short(*ns) : "-";
  };
  for (std::size_t row = 0; row < result.per_device.size(); ++row) {
    const DeviceResult& d = result.per_device[row];
    const std::vector<std::string> cells = {std::to_string(d.index),
                                            std::to_string(d.slices),
                                            bytes[row],
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

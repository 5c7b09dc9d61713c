// SPDX-License-Identifier: MIT
#include "model/health.hpp"
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/topology_matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

using enum Column::Align;

/// Shortens the cells of one column, so that the table fits, to no less than `least`.
void shorten(std::vector<Column>& columns, std::size_t which, std::size_t least) {
  const std::size_t whole = width_of(columns), own = width_of(columns[which]);
  if (whole <= text_width) return;
  const std::size_t excess = whole - text_width, room = own > excess ? own - excess : 0;
  for (std::string& cell : columns[which].cells) cell = shortened(cell, std::max(room, least));
}

std::string fitted(std::vector<Column> columns) {
  const std::vector<std::string> dropped = fit(columns, text_width);
  std::string out = table_text(std::move(columns));
  if (!dropped.empty())
    out += wrapped(fmt::format(" left out at {} columns: {}", text_width, fmt::join(dropped, ", ")),
                   3);
  return out;
}

/// A column of a table of devices: its header and what it says of one; "" is "n/a".
struct Cell {
  std::string header;
  std::string (*text)(const Device&);
  Column::Align align = right;
  int drop = 0;           ///< as of Column
  std::size_t least = 0;  ///< to which it may be shortened; 0: never
};

/// A column that says nothing of any device is left out.
std::string device_table(const Machine& machine, std::vector<Cell> cells) {
  std::vector<Column> columns;
  std::vector<std::size_t> least;
  for (Cell& cell : cells) {
    Column column{std::move(cell.header), {}, cell.align, cell.drop};
    bool said = false;
    for (const Device& device : machine.devices) {
      const std::string text = cell.text(device);
      said |= !text.empty();
      column.cells.push_back(text.empty() ? "n/a" : printable(text));
    }
    if (!said) continue;
    columns.push_back(std::move(column));
    least.push_back(cell.least);
  }
  if (columns.size() < 2) return "";
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (least[i] > 0) shorten(columns, i, least[i]);
  return '\n' + fitted(std::move(columns));
}

std::string number(std::optional<int> value) {
  return value ? std::to_string(*value) : "";
}

std::string rate(std::optional<double> value) {
  return value ? format_rate(*value) : "";
}

std::string ordinal(const Device& device) {
  return std::to_string(device.ordinal);
}

std::string host_line(const Host& host) {
  std::string line =
      fmt::format(" host: {}", counted(static_cast<std::uint64_t>(host.cpus), "CPU"));
  if (!host.allowed_cpus.empty() && std::cmp_less(host.allowed_cpus.size(), host.cpus))
    line += fmt::format(" ({} of them allowed here)", host.allowed_cpus.size());
  line += ", " + counted(host.nodes.size(), "NUMA node");
  if (host.memory_bytes) line += ", " + format_memory(*host.memory_bytes);
  if (!host.kernel.empty()) line += ", kernel " + printable(host.kernel);
  return wrapped(line, 3);
}

std::string driver_line(const Driver& driver) {
  if (driver.version.empty()) return "";
  std::string line = " driver: " + printable(driver.version);
  if (!driver.cuda.empty()) line += ", CUDA " + printable(driver.cuda);
  if (!driver.runtime.empty()) line += " (mgpu was built with " + printable(driver.runtime) + ")";
  if (!driver.nvml.empty()) line += ", NVML " + printable(driver.nvml);
  return wrapped(line, 3);
}

std::string node_table(const Machine& machine) {
  std::vector<Column> columns = {
      {"NUMA node", {}}, {"memory", {}}, {"CPUs", {}}, {"which", {}, left}};
  const bool gpus =
      machine.backend == BackendKind::cuda &&
      std::ranges::any_of(machine.devices, [](const Device& d) { return d.numa.has_value(); });
  if (gpus) columns.push_back({"GPUs", {}, left});
  for (const NumaNode& node : machine.host.nodes) {
    std::vector<int> near;
    for (const Device& device : machine.devices)
      if (device.numa == node.number) near.push_back(device.ordinal);
    const std::vector<std::string> cells = {
        std::to_string(node.number), format_memory(node.memory_bytes),
        std::to_string(node.cpus.size()), node.cpus.empty() ? "none" : ranges_of(node.cpus),
        near.empty() ? "none" : ranges_of(near)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  if (machine.host.nodes.empty()) return "";
  shorten(columns, 3, 20);
  return '\n' + fitted(std::move(columns));
}

/// "16", or "4 of 16" where the process may not use all.
std::string cpus_of(const Device& device) {
  if (device.cpus.size() < device.near_cpus.size())
    return fmt::format("{} of {}", device.cpus.size(), device.near_cpus.size());
  return device.cpus.empty() ? "" : std::to_string(device.cpus.size());
}

std::string cache_of(const Device& device) {
  return device.l2_bytes ? format_memory(*device.l2_bytes) : "";
}

std::string identities(const Machine& machine) {
  const bool host = machine.backend == BackendKind::host;
  std::vector<Cell> cells = {
      {host ? "device" : "GPU", ordinal},
      {"name", [](const Device& d) { return d.name + (d.mig ? " (MIG)" : ""); }, left, 0, 26},
      {"memory",
       [](const Device& d) { return d.memory_bytes ? format_memory(*d.memory_bytes) : ""; }},
      {"peak", [](const Device& d) { return rate(d.memory_peak); }, right, 1},
      {"PCI address", [](const Device& d) { return d.pci; }, left},
      {"NUMA", [](const Device& d) { return number(d.numa); }, right, 2},
      {"CPUs", cpus_of, right, 1}};
  if (host) cells.push_back({"cache", cache_of, right, 1});
  return device_table(machine, std::move(cells));
}

std::string properties(const Machine& machine) {
  return device_table(machine, {{"GPU", ordinal},
                                {"UUID", [](const Device& d) { return d.uuid; }, left},
                                {"CC", [](const Device& d) { return d.capability; }, right, 1},
                                {"SMs", [](const Device& d) { return number(d.sms); }, right, 1},
                                {"L2", cache_of, right, 2},
                                {"ECC",
                                 [](const Device& d) {
                                   return std::string(!d.ecc ? "" : *d.ecc ? "on" : "off");
                                 }},
                                {"mode",
                                 [](const Device& d) {
                                   std::string mode = d.compute_mode;
                                   std::ranges::replace(mode, '_', ' ');
                                   return mode;
                                 },
                                 left}});
}

std::string pcie_phrase(std::optional<int> generation, std::optional<int> lanes) {
  return generation && lanes ? fmt::format("gen {} x{}", *generation, *lanes) : "";
}

std::string nvlink_rate(const NvLinks& links, std::optional<int> count) {
  return links.each && count && links.active.value_or(0) > 0 ? format_rate(*links.each * *count)
                                                             : "";
}

std::string ports(const Machine& machine) {
  std::string table = device_table(
      machine,
      {{"GPU", ordinal},
       {"PCIe now", [](const Device& d) { return pcie_phrase(d.pcie.generation, d.pcie.width); },
        left},
       {"rate", [](const Device& d) { return rate(pcie_rate(d.pcie.generation, d.pcie.width)); },
        right, 1},
       {"PCIe best",
        [](const Device& d) { return pcie_phrase(d.pcie.best_generation, d.pcie.best_width); },
        left},
       {"rate",
        [](const Device& d) { return rate(pcie_rate(d.pcie.best_generation, d.pcie.best_width)); },
        right, 1},
       {"NVLinks",
        [](const Device& d) {
          const NvLinks& links = d.nvlinks;
          if (!links.active || !links.total) return std::string();
          return *links.active == 0 ? "none" : fmt::format("{} of {}", *links.active, *links.total);
        }},
       {"now", [](const Device& d) { return nvlink_rate(d.nvlinks, d.nvlinks.active); }},
       {"best", [](const Device& d) { return nvlink_rate(d.nvlinks, d.nvlinks.total); }}});
  const bool idle = std::ranges::any_of(
      machine.devices, [](const Device& d) { return d.pcie.generation < d.pcie.best_generation; });
  if (table.empty()) return table;
  table += " rates are one way, by generation and lanes or by the NVLinks' signal\n";
  return idle ? table + " PCIe runs at a lower generation while it is idle\n" : table;
}

std::string of(std::optional<int> now, std::optional<int> most) {
  if (!now) return "";
  return most ? fmt::format("{} of {}", *now, *most) : std::to_string(*now);
}

std::string states(const Machine& machine) {
  const auto known = [](const Device& d) { return d.state.has_value(); };
  if (std::ranges::none_of(machine.devices, known)) return "";
  std::string table = device_table(
      machine,
      {{"GPU", ordinal},
       {"SM MHz",
        [](const Device& d) { return d.state ? of(d.state->sm_mhz, d.state->sm_max_mhz) : ""; }},
       {"memory MHz",
        [](const Device& d) {
          return d.state ? of(d.state->memory_mhz, d.state->memory_max_mhz) : "";
        },
        right, 1},
       {"power",
        [](const Device& d) {
          if (!d.state || !d.state->power_w) return std::string();
          return d.state->power_limit_w
                     ? fmt::format("{:.0f} of {:.0f} W", *d.state->power_w, *d.state->power_limit_w)
                     : fmt::format("{:.0f} W", *d.state->power_w);
        }},
       {"°C", [](const Device& d) { return d.state ? number(d.state->temperature_c) : ""; }},
       {"others", [](const Device& d) { return d.state ? number(d.state->other_processes) : ""; }},
       {"clocks held down by",
        [](const Device& d) {
          if (!d.state) return std::string();
          const auto& reasons = d.state->event_reasons;
          return reasons.empty() ? "-" : fmt::format("{}", fmt::join(reasons, " "));
        },
        left, 0, 20}});
  const bool others = std::ranges::any_of(
      machine.devices, [](const Device& d) { return d.state && d.state->other_processes; });
  return others ? table + " others: other processes that compute there\n" : table;
}

std::string unified_phrase(const Device& device) {
  std::vector<std::string_view> has;
  if (device.managed) has.push_back("managed memory");
  if (device.concurrent_managed) has.push_back("used by CPUs and GPUs at once");
  if (device.pageable_access)
    has.push_back(device.host_page_tables ? "pageable memory by the host's page tables"
                                          : "pageable memory");
  if (device.host_access) has.push_back("CPUs reach it on the GPU");
  return has.empty() ? "none" : fmt::format("{}", fmt::join(has, ", "));
}

/// GPUs that can the same share a line.
std::string unified(const Machine& machine) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const Device& device : machine.devices) {
    const std::string phrase = unified_phrase(device);
    auto group = std::ranges::find(groups, phrase, [](const auto& g) { return g.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {phrase, {}});
    group->second.push_back(device.ordinal);
  }
  std::string out;
  for (const auto& [phrase, ordinals] : groups)
    out += wrapped(fmt::format(" unified memory{}: {}",
                               groups.size() == 1
                                   ? ""
                                   : fmt::format(" of GPU{} {}", ordinals.size() == 1 ? "" : "s",
                                                 ranges_of(ordinals)),
                               phrase),
                   3);
  return out.empty() ? out : '\n' + out;
}

/// No column of a matrix may go, so those that do not fit follow below, in parts of equal size,
/// each with the first one.
std::string blocks(const std::vector<Column>& columns) {
  if (columns.empty()) return "";
  const std::size_t first = width_of({columns.data(), 1});
  std::size_t widest = 0;
  for (const Column& column : std::span(columns).subspan(1))
    widest = std::max(widest, width_of(column) + 2);
  const std::size_t room = text_width > first + widest ? (text_width - first) / widest : 1,
                    count = columns.size() - 1, parts = (count + room - 1) / room;
  std::string out;
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<Column> some = {columns.front()};
    some.insert(some.end(), columns.begin() + static_cast<std::ptrdiff_t>(1 + part * count / parts),
                columns.begin() + static_cast<std::ptrdiff_t>(1 + (part + 1) * count / parts));
    out += table_text(std::move(some));
  }
  return out;
}

std::string matrices(const Machine& machine) {
  std::string out;
  for (const Matrix& matrix : topology_matrices(machine)) {
    out += '\n' + wrapped(fmt::format(" {}{}", printable(matrix.heading),
                                      matrix.columns.empty() ? "" : ":"),
                          3);
    out += blocks(matrix.columns);
    for (const std::string& note : matrix.notes) out += wrapped(' ' + printable(note), 3);
  }
  return out;
}

bool is_measured(const Machine& machine) {
  return std::ranges::any_of(
      machine.links, [](const Link& link) { return link.proved || !link.measured.empty(); });
}

std::string health(const Report& report) {
  const auto lines = health_of(report.machine);
  // What a run that failed did not find may be there all the same.
  if (lines.empty() && report.error) return "";
  if (lines.empty())
    return is_measured(report.machine)
               ? "\n health: nothing found\n"
               : "\n health: nothing found without measuring (topo --measure does)\n";
  std::string out = "\n health:\n";
  for (const std::string& line : lines) out += wrapped(" - " + printable(line), 3);
  return out;
}

}  // namespace

std::string topology_text(const Report& report) {
  const Machine& machine = report.machine;
  std::string out =
      wrapped(fmt::format("mgpu topo: {}, {}", printable(machine.host.name),
                          counted(machine.devices.size(), device_noun(machine.backend))),
              1);
  out += host_line(machine.host) + driver_line(machine.driver) + node_table(machine);
  if (machine.devices.empty()) return out;
  out += identities(machine);
  if (machine.backend == BackendKind::cuda)
    out += properties(machine) + ports(machine) + states(machine) + unified(machine);
  return out + matrices(machine) + health(report);
}

}  // namespace mgpu

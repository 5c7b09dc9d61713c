// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/renderers.hpp"

#include <fmt/format.h>

#include <utility>

namespace mgpu {
namespace {

using enum Column::Align;

std::string host_line(const Host& host) {
  std::string line =
      fmt::format(" host: {}", counted(static_cast<std::uint64_t>(host.cpus), "CPU"));
  if (!host.allowed_cpus.empty() && std::cmp_less(host.allowed_cpus.size(), host.cpus))
    line += fmt::format(" ({} of them allowed here)", host.allowed_cpus.size());
  line += ", " + counted(static_cast<std::uint64_t>(host.numa), "NUMA node");
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

std::string device_table(const Machine& machine) {
  std::vector<Column> columns = {{machine.backend == BackendKind::host ? "device" : "GPU", {}},
                                 {"name", {}, left},
                                 {"memory", {}},
                                 {"peak", {}, right, 1},
                                 {"PCI address", {}, left},
                                 {"NUMA", {}},
                                 {"CPUs", {}}};
  for (const Device& device : machine.devices) {
    const std::vector<std::string> cells = {
        std::to_string(device.ordinal),
        printable(device.name) + (device.mig ? " (MIG)" : ""),
        device.memory_bytes ? format_memory(*device.memory_bytes) : "n/a",
        device.memory_peak ? format_rate(*device.memory_peak) : "n/a",
        device.pci.empty() ? "n/a" : printable(device.pci),
        device.numa ? std::to_string(*device.numa) : "n/a",
        device.cpus.empty() ? "n/a" : std::to_string(device.cpus.size())};
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  std::string out = '\n' + table_text(std::move(columns));
  for (const Device& device : machine.devices)
    if (!device.uuid.empty())
      out += fmt::format(" GPU {}: {}\n", device.ordinal, printable(device.uuid));
  return out;
}

std::string peer_matrix(const Machine& machine) {
  std::vector<Column> columns = {{"", {}}};
  for (const Device& to : machine.devices) columns.push_back({std::to_string(to.ordinal), {}});
  for (const Device& from : machine.devices) {
    columns.front().cells.push_back(std::to_string(from.ordinal));
    for (const Device& to : machine.devices) {
      const auto peer = static_cast<std::size_t>(to.ordinal);
      const bool claimed = peer < from.peers.size() && from.peers[peer];
      columns[peer + 1].cells.push_back(from.ordinal == to.ordinal ? "-" : claimed ? "yes" : "no");
    }
  }
  return "\n peer access that the GPU of a row claims to the memory of a column's:\n" +
         table_text(std::move(columns));
}

}  // namespace

std::string topology_text(const Report& report) {
  const Machine& machine = report.machine;
  std::string out =
      wrapped(fmt::format("mgpu topo: {}, {}", printable(machine.host.name),
                          counted(machine.devices.size(), device_noun(machine.backend))),
              1);
  out += host_line(machine.host) + driver_line(machine.driver);
  if (!machine.devices.empty()) out += device_table(machine);
  if (machine.backend == BackendKind::cuda && machine.devices.size() > 1)
    out += peer_matrix(machine);
  return out;
}

}  // namespace mgpu

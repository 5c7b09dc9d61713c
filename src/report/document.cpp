// SPDX-License-Identifier: MIT
#include "report/document.hpp"

#include <fmt/format.h>

namespace mgpu {

std::vector<Link> links_of(const Machine& machine) {
  std::vector<Link> links;
  for (const Device& from : machine.devices)
    for (const Device& to : machine.devices) {
      if (from.ordinal == to.ordinal) continue;
      const auto peer = static_cast<std::size_t>(to.ordinal);
      const bool claimed = peer < from.peers.size() && from.peers[peer];
      links.push_back({from.ordinal, to.ordinal, claimed, claimed});
    }
  return links;
}

void set_links(Machine& machine, const std::vector<Link>& links) {
  const std::size_t devices = machine.devices.size();
  for (Device& device : machine.devices) device.peers.assign(devices, false);
  for (const Link& link : links) {
    const auto from = static_cast<std::size_t>(link.from), to = static_cast<std::size_t>(link.to);
    if (from >= devices || to >= devices)
      throw Error(ErrorKind::usage,
                  fmt::format("/links: from {} to {} names no device", link.from, link.to));
    machine.devices[from].peers[to] = link.read && link.write;
  }
}

std::vector<NodeDevices> numa_nodes_of(const Machine& machine) {
  std::map<int, std::vector<int>> devices;
  for (const Device& device : machine.devices)
    if (device.numa) devices[*device.numa].push_back(device.ordinal);
  std::vector<NodeDevices> nodes;
  for (auto& [node, ordinals] : devices) nodes.push_back({node, std::move(ordinals)});
  return nodes;
}

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "report/machine_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mgpu {
namespace {

// More than any machine has; what a file says beyond it must not cost memory.
constexpr int most_devices = 4096, most_nodes = 4096;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::usage, what);
}

}  // namespace

std::vector<int> peer_ordinals(const Device& device) {
  std::vector<int> ordinals;
  for (std::size_t i = 0; i < device.peers.size(); ++i)
    if (device.peers[i]) ordinals.push_back(static_cast<int>(i));
  return ordinals;
}

void set_peers(Device& device, const std::vector<int>& ordinals) {
  device.peers.clear();
  for (const int ordinal : ordinals) {
    if (ordinal < 0 || ordinal >= most_devices)
      refuse(fmt::format("/devices: the peer {} names no device", ordinal));
    const auto place = static_cast<std::size_t>(ordinal);
    if (device.peers.size() <= place) device.peers.resize(place + 1);
    device.peers[place] = true;
  }
}

void number_nodes(Host& host, int count) {
  if (count < 0 || count > most_nodes) refuse(fmt::format("/host/numa: is {}", count));
  host.nodes.assign(static_cast<std::size_t>(count), {});
  for (int i = 0; i < count; ++i) host.nodes[static_cast<std::size_t>(i)].number = i;
}

std::string proved_text(const Link& link) {
  if (!link.proved) return "";
  return *link.proved ? "yes" : "no";
}

void set_kind(Link& link, const std::string& text) {
  link.kind = parse_kind(text);
  if (!link.kind && !text.empty()) refuse(fmt::format("/links: '{}' is no kind of link", text));
}

void set_proved(Link& link, const std::string& text) {
  if (!text.empty() && text != "yes" && text != "no")
    refuse(fmt::format("/links: proved is '{}', not yes or no", text));
  link.proved = text.empty() ? std::nullopt : std::optional(text == "yes");
}

std::vector<NodeDevices> numa_nodes_of(const Machine& machine) {
  std::vector<NodeDevices> nodes;
  for (const NumaNode& node : machine.host.nodes) {
    NodeDevices& one = nodes.emplace_back(node);
    for (const Device& device : machine.devices)
      if (device.numa == node.number) one.devices.push_back(device.ordinal);
  }
  return nodes;
}

void complete(Machine& machine) {
  const std::size_t devices = machine.devices.size();
  for (std::size_t i = 0; i < devices; ++i) {
    auto& peers = machine.devices[i].peers;
    if (peers.size() > devices)
      refuse(fmt::format("/devices/{}/peers: {} names no device", i, peers.size() - 1));
    peers.resize(devices);
  }
  const auto is_end = [&](int end) {
    return end == host_end || (end >= 0 && std::cmp_less(end, devices));
  };
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    if (!is_end(link.from) || !is_end(link.to) || (link.from == host_end && link.to == host_end))
      refuse(fmt::format("/links/{}: from {} to {} names no device", i, link.from, link.to));
  }
}

}  // namespace mgpu

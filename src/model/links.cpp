// SPDX-License-Identifier: MIT
#include "model/links.hpp"

#include "model/machine.hpp"

#include <algorithm>
#include <array>

namespace mgpu {
namespace {

std::optional<double> lesser(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::min(a, b) : std::nullopt;
}

std::optional<double> now(const Pcie& pcie) {
  return pcie_rate(pcie.generation, pcie.width);
}

std::optional<double> best(const Pcie& pcie) {
  return pcie_rate(pcie.best_generation, pcie.best_width);
}

Link host_link(const Device& device, int from, int to) {
  Link link;
  link.from = from;
  link.to = to;
  link.kind = LinkKind::pcie;
  link.now = now(device.pcie);
  link.best = best(device.pcie);
  return link;
}

Link pair_link(const Device& a, const Device& b, BackendKind backend) {
  Link link;
  link.from = a.ordinal;
  link.to = b.ordinal;
  link.now = lesser(now(a.pcie), now(b.pcie));
  link.best = lesser(best(a.pcie), best(b.pcie));
  if (backend == BackendKind::host && a.numa && b.numa)
    link.kind = a.numa == b.numa ? LinkKind::node : LinkKind::sys;
  // A process has one instance of MIG, so what it claims of another is nothing.
  const auto peer = static_cast<std::size_t>(b.ordinal);
  if (!a.mig && !b.mig && peer < a.peers.size()) {
    link.claimed.read = link.claimed.write = a.peers[peer];
    if (!a.peers[peer]) link.claimed.reason = "CUDA refuses peer access";
  }
  return link;
}

}  // namespace

std::string kind_text(const Link& link) {
  if (!link.kind) return "";
  std::string text(name(*link.kind));
  if (link.kind == LinkKind::nvlink && link.nvlinks_active)
    text += std::to_string(*link.nvlinks_active);
  return text;
}

std::optional<LinkKind> parse_kind(std::string_view text) {
  if (text.starts_with("NV") && text.find_first_not_of("0123456789", 2) == text.npos)
    return LinkKind::nvlink;
  return parse_word<LinkKind>(text);
}

std::optional<double> pcie_rate(std::optional<int> generation, std::optional<int> width) {
  constexpr double giga = 1e9, bits = 8;
  constexpr std::array rates = {2.5 * 8 / 10,     5.0 * 8 / 10,     8.0 * 128 / 130,
                                16.0 * 128 / 130, 32.0 * 128 / 130, 64.0 * 242 / 256};
  constexpr int newest = rates.size();
  if (!generation || !width || *generation < 1 || *generation > newest) return std::nullopt;
  return rates[static_cast<std::size_t>(*generation - 1)] * giga / bits * *width;
}

std::vector<Link> plain_links(const Machine& machine) {
  std::vector<Link> links;
  const bool gpus = machine.backend == BackendKind::cuda;
  for (const Device& from : machine.devices) {
    for (const Device& to : machine.devices)
      if (from.ordinal != to.ordinal) links.push_back(pair_link(from, to, machine.backend));
    if (gpus) links.push_back(host_link(from, from.ordinal, host_end));
  }
  for (const Device& to : machine.devices)
    if (gpus) links.push_back(host_link(to, host_end, to.ordinal));
  return links;
}

const Link* find_link(const Machine& machine, int from, int to) {
  const auto found = std::ranges::find_if(
      machine.links, [&](const Link& link) { return link.from == from && link.to == to; });
  return found == machine.links.end() ? nullptr : &*found;
}

}  // namespace mgpu

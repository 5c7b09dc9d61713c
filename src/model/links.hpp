// SPDX-License-Identifier: MIT
// What joins devices with each other and with the host, as drivers claim it and as it was measured.
// Knows no device; absent values are nullopt, never zero.
#pragma once

#include "model/units.hpp"
#include "model/words.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

struct Machine;

/// An end of a link that is no device.
inline constexpr int host_end = -1;

/// What joins two ends, by nvidia-smi's words: NVLink, or the nearest common point on the way.
enum class LinkKind { nvlink, pix, pxb, phb, node, sys, pcie };
template <>
inline constexpr auto vocabulary<LinkKind> = std::to_array<Word<LinkKind>>({
    {LinkKind::nvlink, "NV", "NVLinks, as many as the number says"},
    {LinkKind::pix, "PIX", "one PCIe bridge at most"},
    {LinkKind::pxb, "PXB", "several PCIe bridges, no host bridge"},
    {LinkKind::phb, "PHB", "a PCIe host bridge (the CPU)"},
    {LinkKind::node, "NODE", "PCIe host bridges of one NUMA node"},
    {LinkKind::sys, "SYS", "the interconnect between NUMA nodes"},
    {LinkKind::pcie, "PCIe", "PCI Express to the host"},
});

/// What one kind of copy reached on a link.
struct Measured {
  std::string what;    ///< "read", "write", "both", "latency", ...
  std::string engine;  ///< a word of Engine
  std::optional<double> copied_rate, latency_ns;
  std::optional<double> peak;  ///< bytes per second that it could reach
  std::string command;         ///< that measures it alone
  std::optional<int> node;     ///< of the host's end, where the host has several
  std::string reason;          ///< why there is no figure
  bool operator==(const Measured&) const = default;
};

/// The way from one end to another, as the driver tells it.
struct Link {
  int from = 0, to = 0;  ///< ordinals, or host_end
  std::optional<LinkKind> kind;
  std::optional<int> nvlinks_active, nvlinks_total;
  std::optional<double> now, best;      ///< bytes per second, this way alone
  std::optional<int> performance_rank;  ///< CUDA's order among a machine's links, 0 is the best
  struct Claim {
    std::optional<bool> read, write, atomics;
    std::string reason;  ///< why not, where one of them is false
    bool operator==(const Claim&) const = default;
  } claimed;
  std::optional<bool> proved;  ///< what a verified probe found
  std::vector<Measured> measured;
  bool operator==(const Link&) const = default;
};

/// "NV18", "PIX", "NV" where the number is not known; empty where the kind is not.
std::string kind_text(const Link& link);
/// The kind that such a text names, with any number; nullopt: none.
std::optional<LinkKind> parse_kind(std::string_view text);

/// PCI Express of one device; generations and lanes.
struct Pcie {
  std::optional<int> generation, width, best_generation, best_width;
  bool operator==(const Pcie&) const = default;
};

/// Bytes per second one way, by the encoding alone (8b/10b, 128b/130b, 242 of 256 in a flit);
/// nullopt for generations that are not known.
std::optional<double> pcie_rate(std::optional<int> generation, std::optional<int> width);

/// The NVLinks of one device together.
struct NvLinks {
  std::optional<int> active, total;
  std::optional<double> each;    ///< bytes per second one way of one link
  std::optional<bool> switched;  ///< they end at NVSwitches, so that every peer is reached by all
  bool operator==(const NvLinks&) const = default;
};

/// Links between every ordered pair of devices, and each and the host both ways, by what the
/// devices alone tell: rates of PCI Express (of two the lesser), peers, NUMA nodes of CPUs.
std::vector<Link> plain_links(const Machine& machine);

/// Null where the machine has no such link.
const Link* find_link(const Machine& machine, int from, int to);

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "model/health.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mgpu {
namespace {

using Lines = std::vector<std::string>;

/// The greatest that devices of the same name say.
template <class Value>
auto best_of_like(const Machine& machine, const Device& device, Value value) {
  auto best = value(device);
  for (const Device& other : machine.devices)
    if (other.name == device.name && other.mig == device.mig) best = std::max(best, value(other));
  return best;
}

void nvlinks(const Machine& machine, const Device& device, Lines& lines) {
  const NvLinks& own = device.nvlinks;
  if (!own.active || !own.total) return;
  // Cards are sold with links that nothing is plugged into; where there are switches, all are used.
  const auto active = [](const Device& d) { return d.nvlinks.active.value_or(0); };
  const bool switched = best_of_like(
      machine, device, [](const Device& d) { return d.nvlinks.switched.value_or(false); });
  const int like = best_of_like(machine, device, active);
  const int wanted = switched ? std::max(like, *own.total) : like;
  if (*own.active < wanted && (*own.active > 0 || switched))
    lines.push_back(fmt::format("GPU {}: {} of {} NVLinks are active{}", device.ordinal,
                                *own.active, std::max(*own.total, wanted),
                                like > *own.active ? fmt::format(", its like have {}", like) : ""));
}

void pcie(const Machine& machine, const Device& device, Lines& lines) {
  const auto width = device.pcie.width;
  const auto best =
      best_of_like(machine, device, [](const Device& d) { return d.pcie.best_width.value_or(0); });
  if (width && *width < best)
    lines.push_back(fmt::format("GPU {}: PCIe has {} of {} lanes", device.ordinal, *width, best));
}

void cpus(const Device& device, Lines& lines) {
  if (!device.near_cpus.empty() && device.cpus.empty())
    lines.push_back(fmt::format("GPU {}: this process may use none of the CPUs near it{}",
                                device.ordinal,
                                device.numa ? fmt::format(" (NUMA node {})", *device.numa) : ""));
}

void state(const Device& device, Lines& lines) {
  if (!device.state) return;
  if (!device.state->event_reasons.empty())
    lines.push_back(fmt::format("GPU {}: its clocks are held down by {}", device.ordinal,
                                fmt::join(device.state->event_reasons, ", ")));
  if (const int others = device.state->other_processes.value_or(0); others > 0)
    lines.push_back(fmt::format("GPU {}: {} other process{} on it", device.ordinal, others,
                                others == 1 ? " computes" : "es compute"));
}

void ecc(const Machine& machine, const Device& device, Lines& lines) {
  const bool like =
      best_of_like(machine, device, [](const Device& d) { return d.ecc.value_or(false); });
  if (device.ecc == false && like)
    lines.push_back(
        fmt::format("GPU {}: ECC is off, and on for others of its kind", device.ordinal));
}

/// What links must have in common to be alike: ends, models, kind, and whether a NUMA node is the
/// nearest one.
std::string likeness(const Machine& machine, const Link& link, const Measured& one) {
  std::string text = fmt::format("{} {} {}", one.what, one.engine, kind_text(link));
  for (const int end : {link.from, link.to}) {
    if (end == host_end) {
      text += " host";
      continue;
    }
    const Device& device = machine.devices[static_cast<std::size_t>(end)];
    text += ' ' + device.name + (device.mig ? " MIG" : "");
    if (one.node) text += device.numa == one.node ? " near" : " far";
  }
  return text + (link.from == link.to ? " itself" : "");
}

/// The more the better.
std::optional<double> merit(const Measured& one) {
  if (one.latency_ns && *one.latency_ns > 0) return 1 / *one.latency_ns;
  return one.copied_rate;
}

std::string link_name(const Link& link, BackendKind backend) {
  const auto end = [&](int e) {
    if (e == host_end) return std::string("host");
    return fmt::format("{} {}", backend == BackendKind::host ? "device" : "GPU", e);
  };
  return link.from == link.to ? end(link.from) : end(link.from) + " -> " + end(link.to);
}

/// A line a link, of what is worst there.
void slow_links(const Machine& machine, Lines& lines) {
  for (const Link& link : machine.links) {
    const Measured* worst = nullptr;
    double least = enough_of_like;
    int slow = 0;
    for (const Measured& one : link.measured) {
      const auto share = share_of_like(machine, link, one);
      if (!share || *share >= enough_of_like) continue;
      ++slow;
      if (*share >= least) continue;
      least = *share;
      worst = &one;
    }
    if (!worst) continue;
    std::string what = worst->what;
    std::ranges::replace(what, '_', ' ');
    if (!worst->engine.empty()) what += " by " + worst->engine;
    if (worst->node) what += fmt::format(" of NUMA node {}", *worst->node);
    const std::string figure = worst->latency_ns
                                   ? fmt::format("takes {:.0f} ns", *worst->latency_ns)
                                   : "reaches " + format_rate(*worst->copied_rate);
    lines.push_back(fmt::format("{}: {} {}, {:.0f}% of the best of its like{}",
                                link_name(link, machine.backend), what, figure, 100 * least,
                                slow > 1
                                    ? fmt::format(" ({} of {} figures are below {:.0f}%)", slow,
                                                  link.measured.size(), 100 * enough_of_like)
                                    : ""));
  }
}

bool reaches(const Link* link) {
  return link && link->claimed.read.value_or(false) && link->claimed.write.value_or(false);
}

void links(const Machine& machine, Lines& lines) {
  for (const Link& link : machine.links) {
    const Link* const back = find_link(machine, link.to, link.from);
    if (link.claimed.read && back && back->claimed.read && reaches(&link) && !reaches(back))
      lines.push_back(
          fmt::format("GPU {} claims access to GPU {}, but not the other way", link.from, link.to));
    if (link.proved == false && reaches(&link))
      lines.push_back(fmt::format(
          "GPU {} claims access to GPU {}, but what it copies does not arrive: look at the IOMMU "
          "and at ACS of the PCIe bridges",
          link.from, link.to));
  }
}

}  // namespace

std::vector<std::string> health_of(const Machine& machine) {
  Lines lines;
  for (const Device& device : machine.devices) {
    nvlinks(machine, device, lines);
    pcie(machine, device, lines);
    cpus(device, lines);
    state(device, lines);
    ecc(machine, device, lines);
  }
  links(machine, lines);
  slow_links(machine, lines);
  return lines;
}

std::optional<double> share_of_like(const Machine& machine, const Link& link, const Measured& one) {
  const auto own = merit(one);
  if (!own) return std::nullopt;
  const std::string like = likeness(machine, link, one);
  double best = *own;
  for (const Link& other : machine.links)
    for (const Measured& that : other.measured)
      if (const auto theirs = merit(that); that.what == one.what && theirs && *theirs > best &&
                                           likeness(machine, other, that) == like)
        best = *theirs;
  return best > 0 ? *own / best : 1;
}

}  // namespace mgpu

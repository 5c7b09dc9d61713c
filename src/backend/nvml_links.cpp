// SPDX-License-Identifier: MIT
#include "backend/nvml_links.hpp"

#include "backend/nvml_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace mgpu {
namespace {

// NVML_NVLINK_MAX_LINKS of CUDA 13; a GPU with fewer refuses the rest.
constexpr unsigned max_links = 36;
constexpr unsigned field_speed_common = 90, field_speed = 164;
constexpr int remote_switch = 2, remote_unknown = 255, status_ok = 0, status_unknown = 6;

using Topology = NvmlTopology;

std::optional<LinkKind> kind_of(std::optional<int> ancestor) {
  constexpr std::array<std::pair<int, LinkKind>, 6> levels{{{0, LinkKind::pix},
                                                            {10, LinkKind::pix},
                                                            {20, LinkKind::pxb},
                                                            {30, LinkKind::phb},
                                                            {40, LinkKind::node},
                                                            {50, LinkKind::sys}}};
  for (const auto& [level, kind] : levels)
    if (ancestor == level) return kind;
  return std::nullopt;
}

struct Count {
  int active = 0, total = 0;
};

template <class Wanted>
Count count(const Topology::Gpu& gpu, Wanted wanted) {
  Count sum;
  for (const Topology::NvLink& link : gpu.links)
    if (wanted(link)) {
      ++sum.total;
      sum.active += link.active ? 1 : 0;
    }
  return sum;
}

bool to_switch(const Topology::NvLink& link) {
  return link.remote == remote_switch;
}

/// In virtual machines the far end of a link may be hidden.
bool to_unknown(const Topology::NvLink& link) {
  return link.active && link.pci.empty() && !link.remote;
}

/// NVLinks that join two GPUs, directly or by switches.
Count between(const Machine& machine, const Topology& told, std::size_t from, std::size_t to) {
  const Topology::Gpu &a = told.gpus[from], &b = told.gpus[to];
  // Switches serve partitions of their own making, and a pair may be in two of them.
  if (const auto status = told.pair(from, to).nvlink; status && *status != status_ok) return {};
  const Count out = count(a, [&](auto& link) { return link.pci == machine.devices[to].pci; });
  const Count back = count(b, [&](auto& link) { return link.pci == machine.devices[from].pci; });
  // A dead link may know its other end at one of its ends alone.
  if (out.total > 0 && back.total > 0)
    return {std::min(out.active, back.active), std::max(out.total, back.total)};
  if (out.total > 0 || back.total > 0) return out.total > 0 ? out : back;
  const auto shared = [&](auto wanted) {
    return count(a, wanted).active > 0 && count(b, wanted).active > 0;
  };
  const bool hidden = shared(to_unknown) && told.pair(from, to).nvlink == status_ok;
  if (!shared(to_switch) && !hidden) return {};
  const auto any = [](auto&) { return true; };
  const Count of_a = count(a, any), of_b = count(b, any);
  return {std::min(of_a.active, of_b.active), std::min(of_a.total, of_b.total)};
}

NvLinks nvlinks_of(const Topology::Gpu& gpu) {
  NvLinks links;
  if (gpu.links.empty()) return links;
  const Count all = count(gpu, [](auto&) { return true; });
  links.active = all.active;
  links.total = all.total;
  if (gpu.mb_per_s) links.each = *gpu.mb_per_s * 1e6;
  links.switched = count(gpu, to_switch).total > 0;
  return links;
}

Link::Claim claim_of(const Topology::Pair& pair) {
  Link::Claim claim;
  std::vector<std::pair<std::string, std::string>> refused;  // reason, and what it refuses
  const auto read = [&](std::optional<int> status, std::string what) -> std::optional<bool> {
    if (!status || *status == status_unknown) return std::nullopt;
    if (*status == status_ok) return true;
    const std::string reason(p2p_status_words(*status));
    if (!refused.empty() && refused.back().first == reason)
      refused.back().second += ", " + what;
    else
      refused.emplace_back(reason, std::move(what));
    return false;
  };
  claim.read = read(pair.read, "read");
  claim.write = read(pair.write, "write");
  claim.atomics = read(pair.atomics, "atomics");
  for (const auto& [reason, what] : refused)
    claim.reason += fmt::format("{}{}: {}", claim.reason.empty() ? "" : "; ", what, reason);
  return claim;
}

void overlay(Link& link, const Machine& machine, const Topology& told) {
  const auto from = static_cast<std::size_t>(link.from), to = static_cast<std::size_t>(link.to);
  const Device &a = machine.devices[from], &b = machine.devices[to];
  link.kind = kind_of(told.pair(from, to).ancestor);
  if (a.mig || b.mig) return;  // an instance has neither NVLinks nor peers
  const Count nvlinks = between(machine, told, from, to);
  if (nvlinks.total > 0) {
    link.nvlinks_active = nvlinks.active;
    link.nvlinks_total = nvlinks.total;
    const auto each = a.nvlinks.each && b.nvlinks.each ? std::min(a.nvlinks.each, b.nvlinks.each)
                      : a.nvlinks.each                 ? a.nvlinks.each
                                                       : b.nvlinks.each;
    if (nvlinks.active > 0) {
      link.kind = LinkKind::nvlink;
      link.now = each ? std::optional(nvlinks.active * *each) : std::nullopt;
    }
    link.best = each ? std::optional(nvlinks.total * *each) : std::nullopt;
  }
  const bool usable = link.claimed.read.value_or(true);
  const Link::Claim claim = claim_of(told.pair(from, to));
  if (!claim.read || !claim.write) return;
  link.claimed = claim;
  if (!usable && *claim.read) {
    link.claimed.read = link.claimed.write = false;
    link.claimed.reason = "CUDA refuses what NVML allows";
  }
}

using Handle = NvmlDevice*;

/// The functions, null where the library has none.
struct LinkCalls {
  const NvmlLibrary& library;
  using Number = int(Handle, unsigned*);
  using OfLink = int(Handle, unsigned link, unsigned*);
  using OfPair = int(Handle, Handle, unsigned*);
  Number* generation = library.seek<Number>("nvmlDeviceGetCurrPcieLinkGeneration");
  Number* width = library.seek<Number>("nvmlDeviceGetCurrPcieLinkWidth");
  Number* best_generation = library.seek<Number>("nvmlDeviceGetMaxPcieLinkGeneration");
  Number* best_width = library.seek<Number>("nvmlDeviceGetMaxPcieLinkWidth");
  int (*whole)(Handle, Handle*) =
      library.seek<int(Handle, Handle*)>("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  OfLink* link_state = library.seek<OfLink>("nvmlDeviceGetNvLinkState");
  OfLink* link_remote = library.seek<OfLink>("nvmlDeviceGetNvLinkRemoteDeviceType");
  int (*link_pci)(Handle, unsigned, NvmlPci*) =
      library.seek<int(Handle, unsigned, NvmlPci*)>("nvmlDeviceGetNvLinkRemotePciInfo_v2");
  int (*fields)(Handle, int, NvmlField*) =
      library.seek<int(Handle, int, NvmlField*)>("nvmlDeviceGetFieldValues");
  OfPair* ancestor = library.seek<OfPair>("nvmlDeviceGetTopologyCommonAncestor");
  int (*p2p)(Handle, Handle, int, unsigned*) =
      library.seek<int(Handle, Handle, int, unsigned*)>("nvmlDeviceGetP2PStatus");

  /// By the field that tells of one link, else by the older one, which is 0 on some GPUs.
  std::optional<int> mb_per_s(Handle device, unsigned link) const {
    std::array<NvmlField, 2> asked{};
    asked[0].field = field_speed;
    asked[0].scope = link;
    asked[1].field = field_speed_common;
    if (fields == nullptr || fields(device, asked.size(), asked.data()) != 0) return std::nullopt;
    for (const NvmlField& answer : asked) {
      const auto value = static_cast<unsigned>(answer.value);
      if (answer.status == 0 && answer.type == 1 && value > 0) return static_cast<int>(value);
    }
    return std::nullopt;
  }

  Topology::Gpu gpu(Handle device) const {
    Topology::Gpu gpu;
    // An instance of MIG shares the PCI Express of its GPU, and has no NVLinks.
    const auto parent = ask<Handle>(whole, device);
    const Handle slot = parent.value_or(device);
    gpu.pcie = {as_int(ask<unsigned>(generation, slot)), as_int(ask<unsigned>(width, slot)),
                as_int(ask<unsigned>(best_generation, slot)),
                as_int(ask<unsigned>(best_width, slot))};
    for (unsigned i = 0; i < max_links && !parent; ++i) {
      const auto state = ask<unsigned>(link_state, device, i);
      if (!state) continue;
      Topology::NvLink& link = gpu.links.emplace_back();
      link.active = *state == 1;
      link.remote = as_int(ask<unsigned>(link_remote, device, i));
      if (link.remote == remote_unknown) link.remote.reset();
      // Virtual machines see no switches: all ones.
      if (const auto pci = ask<NvmlPci>(link_pci, device, i); pci && pci->domain != ~0U)
        link.pci = fmt::format("{:08x}:{:02x}:{:02x}.0", pci->domain, pci->bus, pci->device);
      if (link.active && !gpu.mb_per_s) gpu.mb_per_s = mb_per_s(device, i);
    }
    return gpu;
  }

  Topology::Pair pair(Handle from, Handle to) const {
    const auto status = [&](int capability) {
      return as_int(ask<unsigned>(p2p, from, to, capability));
    };
    return {as_int(ask<unsigned>(ancestor, from, to)), status(0), status(1), status(3), status(2)};
  }
};

}  // namespace

NvmlTopology ask_topology(const NvmlLibrary& library, std::span<NvmlDevice* const> devices) {
  const LinkCalls calls{library};
  NvmlTopology told;
  for (const Handle device : devices)
    told.gpus.push_back(device ? calls.gpu(device) : Topology::Gpu{});
  for (const Handle from : devices)
    for (const Handle to : devices)
      told.pairs.push_back(from && to && from != to ? calls.pair(from, to) : Topology::Pair{});
  return told;
}

void join_topology(Machine& machine, const NvmlTopology& told) {
  for (std::size_t i = 0; i < told.gpus.size(); ++i) {
    machine.devices[i].pcie = told.gpus[i].pcie;
    if (!machine.devices[i].mig) machine.devices[i].nvlinks = nvlinks_of(told.gpus[i]);
  }
  machine.links = plain_links(machine);
  if (told.gpus.empty()) return;
  for (Link& link : machine.links)
    if (link.from != host_end && link.to != host_end) overlay(link, machine, told);
}

std::string_view p2p_status_words(int status) {
  constexpr std::array<std::string_view, 7> words = {"ok",
                                                     "chipset not supported",
                                                     "GPU not supported",
                                                     "topology not supported",
                                                     "disabled by the driver's settings",
                                                     "not supported",
                                                     "unknown"};
  const auto last = static_cast<int>(words.size()) - 1;
  return words[static_cast<std::size_t>(status < 0 || status > last ? last : status)];
}

}  // namespace mgpu

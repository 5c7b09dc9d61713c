// SPDX-License-Identifier: MIT
#include "model/paths.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace mgpu {
namespace {

// What has a peak of its own. NVLinks of a device are shared by all its partners where there is a
// switch, so both a pair and each end count.
struct Resource {
  enum class Kind { memory, pair, nvlinks_out, nvlinks_in, pcie_out, pcie_in };
  Kind kind = Kind::memory;
  int device = 0, other = 0;
  auto operator<=>(const Resource&) const = default;
};

struct Peak {
  std::optional<double> bytes_per_s;
  Bottleneck what = Bottleneck::memory;
};

const Link* link_between(const Machine& machine, int from, int to) {
  const auto found = std::ranges::find_if(
      machine.links, [&](const Link& link) { return link.from == from && link.to == to; });
  return found == machine.links.end() ? nullptr : &*found;
}

bool by_nvlink(const Machine& machine, int from, int to) {
  const Link* link = link_between(machine, from, to);
  return link && link->kind == LinkKind::nvlink;
}

Peak peak_of(const Resource& resource, const Machine& machine) {
  using enum Resource::Kind;
  const Device& device = machine.devices[static_cast<std::size_t>(resource.device)];
  // PCI Express idles at a lower generation than it works at; NVLinks that are down stay down.
  const auto pcie = [&](int from, int to) {
    const Link* link = link_between(machine, from, to);
    return Peak{link ? link->best : std::nullopt, Bottleneck::pcie};
  };
  switch (resource.kind) {
    case memory:
      return {device.memory_peak, Bottleneck::memory};
    case pair: {
      const Link* link = link_between(machine, resource.device, resource.other);
      if (link && link->kind == LinkKind::nvlink) return {link->now, Bottleneck::nvlink};
      return pcie(resource.device, resource.other);
    }
    case nvlinks_out:
    case nvlinks_in: {
      const NvLinks& links = device.nvlinks;
      if (!links.active || !links.each) return {std::nullopt, Bottleneck::nvlink};
      return {*links.active * *links.each, Bottleneck::nvlink};
    }
    case pcie_out:
      return pcie(resource.device, host_end);
    case pcie_in:
      return pcie(host_end, resource.device);
  }
  return {};
}

// Where a side of a lane is when a sample begins: a kernel has pulled managed pages to its device,
// unless advice keeps them or they are brought back.
Site settled(const Case& what, MemoryKind memory, const Site& place, int device) {
  const bool pulled = what.engine == Engine::kernel &&
                      (what.advise == Advice::none || what.advise == Advice::read_mostly);
  const bool moved = !what.cold && (pulled || what.prefetch != Prefetch::none);
  return memory == MemoryKind::managed && moved ? on_device(device) : place;
}

struct Ends {
  Site from, to;
};

Ends ends_of(const Case& what, const Lane& lane) {
  const auto kind = [&](bool source) {
    return source != lane.reverse ? what.source_memory : what.destination_memory;
  };
  const auto place = [&](bool source) {
    const Site& site = source ? lane.source_site : lane.destination_site;
    return settled(what, kind(source), site, lane.device);
  };
  return {place(true), place(false)};
}

class Loads {
 public:
  explicit Loads(const Machine& machine) : machine_(machine) {}

  void add(const Case& what, const Lane& lane) {
    const Ends ends = ends_of(what, lane);
    const auto bytes = static_cast<double>(lane.destination.bytes);
    const Site executing = on_device(lane.device);
    for (const Site& end : {ends.from, ends.to})
      if (!end.on_host()) loads_[{Resource::Kind::memory, end.index}] += bytes;
    if (what.engine == Engine::memcpy) {
      cross(ends.from, ends.to, bytes);
    } else {
      cross(ends.from, executing, bytes);
      cross(executing, ends.to, bytes);
    }
  }

  std::optional<Limit> longest() const {
    std::optional<Limit> limit;
    for (const auto& [resource, bytes] : loads_) {
      const Peak peak = peak_of(resource, machine_);
      if (!peak.bytes_per_s || *peak.bytes_per_s <= 0) return std::nullopt;
      const double ns = bytes / *peak.bytes_per_s * 1e9;
      if (!limit || ns > limit->ns) limit = Limit{ns, peak.what};
    }
    return limit;
  }

 private:
  void cross(const Site& from, const Site& to, double bytes) {
    using enum Resource::Kind;
    if (from == to || (from.on_host() && to.on_host())) return;
    if (from.on_host()) {
      loads_[{pcie_in, to.index}] += bytes;
    } else if (to.on_host()) {
      loads_[{pcie_out, from.index}] += bytes;
    } else {
      const bool nvlink = by_nvlink(machine_, from.index, to.index);
      loads_[{pair, from.index, to.index}] += bytes;
      loads_[{nvlink ? nvlinks_out : pcie_out, from.index}] += bytes;
      loads_[{nvlink ? nvlinks_in : pcie_in, to.index}] += bytes;
    }
  }

  const Machine& machine_;
  std::map<Resource, double> loads_;
};

}  // namespace

std::optional<Limit> limit_of(const Case& what, std::span<const Lane> lanes,
                              const Machine& machine) {
  if (machine.backend == BackendKind::host) {
    // CPUs reach every memory over links of which no peak is told.
    for (const Lane& lane : lanes)
      for (const Site& site : {lane.source_site, lane.destination_site})
        if (!site.is(lane.device)) return std::nullopt;
  }
  Loads loads(machine);
  for (const Lane& lane : lanes) loads.add(what, lane);
  return loads.longest();
}

bool crosses_link(const Case& what, const Lane& lane, const Machine& machine) {
  if (machine.backend == BackendKind::host) return false;
  const Ends ends = ends_of(what, lane);
  const Site executing = on_device(lane.device);
  return what.engine == Engine::memcpy ? ends.from != ends.to || ends.from.on_host()
                                       : ends.from != executing || ends.to != executing;
}

Basis basis_of(const Case& what, const Machine& machine) {
  const Schedule schedule = make_schedule(what);
  const bool crosses = std::ranges::any_of(
      schedule.lanes, [&](const Lane& lane) { return crosses_link(what, lane, machine); });
  return crosses ? Basis::copied : Basis::moved;
}

}  // namespace mgpu

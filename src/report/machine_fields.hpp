// SPDX-License-Identifier: MIT
// The fields of a Machine, one line each, by the names and in the order of the JSON document. Knows
// no format.
#pragma once

#include "model/fields.hpp"

#include <string>
#include <type_traits>
#include <vector>

namespace mgpu {

/// Device::peers as a list, and back; the latter throws Error{usage} for what cannot be an ordinal.
std::vector<int> peer_ordinals(const Device& device);
void set_peers(Device& device, const std::vector<int>& ordinals);

template <Of<Device> T, class V>
void describe(T& d, V&& v) {
  v("index", Derived{d.ordinal});
  v("ordinal", d.ordinal);
  v("uuid", d.uuid);
  v("pci", d.pci);
  v("name", d.name);
  v("memory_bytes", d.memory_bytes);
  v("l2_bytes", d.l2_bytes);
  v("memory_peak_bytes_per_s", d.memory_peak);
  v("numa", d.numa);
  v("cpus", maybe(d.cpus, !d.cpus.empty()));
  v("mig", d.mig);
  v("managed", d.managed);
  v("concurrent_managed", d.concurrent_managed);
  v("pageable_access", maybe(d.pageable_access, true));  // older files lack it and what follows
  v("host_page_tables", maybe(d.host_page_tables, true));
  v("host_access", maybe(d.host_access, true));
  std::vector<int> peers = peer_ordinals(d);
  v("peers", maybe(peers, true));
  if constexpr (!std::is_const_v<T>) set_peers(d, peers);
  v("compute_capability", d.capability);
  v("compute_mode", d.compute_mode);
  v("sms", d.sms);
  v("ecc", d.ecc);
  v("near_cpus", maybe(d.near_cpus, !d.near_cpus.empty()));
  v("pcie_generation", d.pcie.generation);
  v("pcie_width", d.pcie.width);
  v("pcie_best_generation", d.pcie.best_generation);
  v("pcie_best_width", d.pcie.best_width);
  v("nvlinks_active", d.nvlinks.active);
  v("nvlinks_total", d.nvlinks.total);
  v("nvlink_bytes_per_s", d.nvlinks.each);
  v("nvlinks_switched", d.nvlinks.switched);
  v("state", d.state);
}

/// That many NUMA nodes of which nothing else is known. Throws Error{usage} where none has so many.
void number_nodes(Host& host, int count);

template <Of<Host> T, class V>
void describe(T& h, V&& v) {
  v("name", h.name);
  v("cpus", h.cpus);
  v("allowed_cpus", h.allowed_cpus);
  int nodes = static_cast<int>(h.nodes.size());
  v("numa", nodes);
  if constexpr (!std::is_const_v<T>) number_nodes(h, nodes);
  v("kernel", h.kernel);
  v("memory_bytes", h.memory_bytes);
  v("rank", h.rank);
  v("ranks", h.ranks);
  v("slurm", h.slurm);
}

template <Of<Driver> T, class V>
void describe(T& d, V&& v) {
  v("version", d.version);
  v("cuda", d.cuda);
  v("runtime", d.runtime);
  v("nvml", d.nvml);
}

template <Of<Measured> T, class V>
void describe(T& m, V&& v) {
  v("what", m.what);
  v("engine", m.engine);
  v("node", m.node);
  v("copied_bytes_per_s", m.copied_rate);
  v("latency_ns", m.latency_ns);
  v("peak_bytes_per_s", m.peak);
  v("command", m.command);
  v("reason", m.reason);
}

/// A kind or a verdict in the words of the document, and back; the latter throw Error{usage} for
/// other words.
std::string proved_text(const Link& link);
void set_kind(Link& link, const std::string& text);
void set_proved(Link& link, const std::string& text);

template <Of<Link> T, class V>
void describe(T& l, V&& v) {
  v("from", maybe(l.from, l.from != host_end, host_end));
  v("to", maybe(l.to, l.to != host_end, host_end));
  std::string kind = kind_text(l), proved = proved_text(l);
  v("kind", kind);
  v("nvlinks_active", l.nvlinks_active);
  v("nvlinks_total", l.nvlinks_total);
  v("bytes_per_s_now", l.now);
  v("bytes_per_s_best", l.best);
  v("performance_rank", l.performance_rank);
  v("claimed", Group{[&](auto&& w) {
      w("read", l.claimed.read);
      w("write", l.claimed.write);
      w("atomics", l.claimed.atomics);
      w("reason", l.claimed.reason);
    }});
  v("proved", proved);
  v("measured", maybe(l.measured, true));
  if constexpr (!std::is_const_v<T>) {
    set_kind(l, kind);
    set_proved(l, proved);
  }
}

/// A NUMA node and the devices near it.
struct NodeDevices {
  NumaNode node;
  std::vector<int> devices;
};
std::vector<NodeDevices> numa_nodes_of(const Machine& machine);

template <Of<NodeDevices> T, class V>
void describe(T& n, V&& v) {
  v("node", n.node.number);
  v("cpus", maybe(n.node.cpus, true));
  v("memory_bytes", maybe(n.node.memory_bytes, true));
  v("devices", Derived{n.devices});
}

/// Gives each device of a machine that was read as many peers as there are devices. Throws
/// Error{usage} for a peer or an end of a link that names no device.
void complete(Machine& machine);

}  // namespace mgpu

// SPDX-License-Identifier: MIT
// The document around the cases: fields of Report, Machine and plan entries. What JSON is, and how
// text looks, is not known here.
#pragma once

#include "model/fields.hpp"

#include <map>
#include <string>
#include <vector>

namespace mgpu {

inline constexpr int schema_version = 1;

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
}

template <Of<Host> T, class V>
void describe(T& h, V&& v) {
  v("name", h.name);
  v("cpus", h.cpus);
  v("allowed_cpus", h.allowed_cpus);
  v("numa", h.numa);
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

template <Of<ErrorInfo> T, class V>
void describe(T& e, V&& v) {
  v("kind", e.kind);
  v("code", Derived{exit_code(e.kind)});
  v("message", e.message);
  v("device", e.device);
}

template <Of<PlanEntry::LaneSteps> T, class V>
void describe(T& l, V&& v) {
  v("device", l.device);
  v("slice", l.slice);
  v("bytes", l.bytes);
  v("steps", l.steps);
}

template <Of<PlanEntry::Memory> T, class V>
void describe(T& m, V&& v) {
  v("device", maybe(m.device, m.device >= 0, -1));
  v("need_bytes", m.need);
}

template <Of<PlanEntry> T, class V>
void describe(T& e, V&& v) {
  v("case", e.what);
  v("outcome", Derived{std::string(e.error_kind ? "skipped" : "planned")});
  v("reason", e.reason);
  v("error_kind", e.error_kind);
  v("steps", e.lanes);
  v("memory", e.memory);
  v("estimate_ns", e.estimate_ns);
}

/// What one device claims about another's memory.
struct Link {
  int from = 0, to = 0;  ///< ordinals
  bool read = false, write = false;
};

template <Of<Link> T, class V>
void describe(T& l, V&& v) {
  v("from", l.from);
  v("to", l.to);
  v("claimed", Group{[&](auto&& w) {
      w("read", l.read);
      w("write", l.write);
    }});
}

/// Every ordered pair of different devices; and the way back, which throws Error{usage} for a pair
/// that names no device.
std::vector<Link> links_of(const Machine& machine);
void set_links(Machine& machine, const std::vector<Link>& links);

/// The devices near a NUMA node; nodes without one are left out.
struct NodeDevices {
  int node = 0;
  std::vector<int> devices;
};
std::vector<NodeDevices> numa_nodes_of(const Machine& machine);

template <Of<NodeDevices> T, class V>
void describe(T& n, V&& v) {
  v("node", n.node);
  v("devices", n.devices);
}

template <Of<Report> T, class V>
void describe(T& r, V&& v) {
  v("schema", Derived{schema_version});
  v("kind", r.kind);
  v("tool", Group{[&](auto&& w) {
      w("name", Derived{std::string("mgpu")});
      w("version", r.tool_version);
      w("features", r.features);
    }});
  v("command", r.command);
  v("started", r.started);
  v("ended", r.ended);
  v("complete", r.complete);
  v("exit_code", r.exit_code);
  v("error", r.error);
  v("warnings", r.warnings);
  v("host", r.machine.host);
  v("environment", r.machine.environment);
  v("backend", r.machine.backend);
  v("driver", r.machine.driver);
  v("devices", r.machine.devices);
  switch (r.kind) {
    case ReportKind::trials:
      v("cases", r.cases);
      break;
    case ReportKind::plan:
      v("cases", r.plan);
      break;
    case ReportKind::topology: {
      std::vector<Link> links = links_of(r.machine);
      v("links", links);
      if constexpr (!std::is_const_v<T>) set_links(r.machine, links);
      v("numa", Derived{numa_nodes_of(r.machine)});
      v("health", Derived{std::vector<std::string>{}});
      break;
    }
  }
}

}  // namespace mgpu

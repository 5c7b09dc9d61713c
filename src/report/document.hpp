// SPDX-License-Identifier: MIT
// The document around the cases: fields of Report and of plan entries. What JSON is, and how text
// looks, is not known here.
#pragma once

#include "model/comparison_fields.hpp"
#include "model/fields.hpp"
#include "model/fleet_fields.hpp"
#include "model/health.hpp"
#include "report/machine_fields.hpp"

#include <string>
#include <utility>
#include <vector>

namespace mgpu {

inline constexpr int schema_version = 1;

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
  v("reverse", maybe(l.reverse, true));
  v("bytes", l.bytes);
  v("steps", l.steps);
}

template <Of<PlanEntry::Memory> T, class V>
void describe(T& m, V&& v) {
  v("device", m.device);
  v("node", m.node);
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
  v("command", e.command);
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
  if constexpr (!std::is_const_v<T>) complete(r.machine);
  switch (r.kind) {
    case ReportKind::trials:
      v("cases", r.cases);
      break;
    case ReportKind::plan:
      v("cases", r.plan);
      v("estimate_ns", r.estimate_ns);
      break;
    case ReportKind::comparison:
      if constexpr (!std::is_const_v<T>) r.comparison.emplace();
      if (r.comparison) describe(*r.comparison, v);
      break;
    case ReportKind::fleet:
      if constexpr (!std::is_const_v<T>) r.fleet.emplace();
      if (r.fleet) describe(*r.fleet, v);
      break;
    case ReportKind::topology: {
      v("links", r.machine.links);
      if constexpr (!std::is_const_v<T>) complete(r.machine);
      std::vector<NodeDevices> nodes = numa_nodes_of(r.machine);
      v("numa", nodes);
      v("health", Derived{health_of(r.machine)});
      if constexpr (!std::is_const_v<T>) {
        r.machine.host.nodes.clear();
        for (NodeDevices& one : nodes) r.machine.host.nodes.push_back(std::move(one.node));
      }
      break;
    }
  }
}

}  // namespace mgpu

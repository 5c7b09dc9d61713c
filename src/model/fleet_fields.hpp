// SPDX-License-Identifier: MIT
// The fields of a fleet, by the names and in the order of the JSON document. Knows no format.
#pragma once

#include "model/fields.hpp"
#include "model/fleet_result.hpp"

namespace mgpu {

template <Of<FleetGpu> T, class V>
void describe(T& g, V&& v) {
  v("key", g.key);
  v("host", g.host);
  v("rank", g.rank);
  v("ordinal", g.ordinal);
  v("uuid", g.uuid);
  v("pci", g.pci);
  v("name", g.name);
  v("bytes", g.bytes);
  v("rounds", g.rounds);
  v("min_ns", g.min_ns);
  v("median_ns", g.median_ns);
  v("max_ns", g.max_ns);
  v("rate", g.rate);
  v("ratio", g.ratio);
  v("outlier", g.outlier);
}

template <Of<FleetCase> T, class V>
void describe(T& c, V&& v) {
  v("key", c.key);
  v("case", c.what);
  v("name", c.name);
  v("basis", c.basis);
  v("device_times", c.device_times);
  v("nodes", c.nodes);
  v("gpus", c.gpus);
  v("bytes", c.bytes);
  v("min_ns", c.min_ns);
  v("p25_ns", c.p25_ns);
  v("median_ns", c.median_ns);
  v("p75_ns", c.p75_ns);
  v("max_ns", c.max_ns);
  v("mad", c.mad);
  v("threshold", c.threshold);
}

template <Of<FleetNodeCase> T, class V>
void describe(T& c, V&& v) {
  v("key", c.key);
  v("name", c.name);
  v("gpus", c.gpus);
  v("min_ns", c.min_ns);
  v("median_ns", c.median_ns);
  v("max_ns", c.max_ns);
}

template <Of<FleetNode> T, class V>
void describe(T& n, V&& v) {
  v("host", n.host);
  v("ranks", n.ranks);
  v("gpus", n.gpus);
  v("slow", n.slow);
  v("cases", n.cases);
  v("failures", n.failures);
}

template <Of<MissingRank> T, class V>
void describe(T& m, V&& v) {
  v("rank", m.rank);
  v("host", m.host);
  v("last_case", m.last_case);
}

template <Of<Fleet> T, class V>
void describe(T& f, V&& v) {
  v("outlier_percent", f.floor);
  v("nodes", f.nodes);
  v("gpus", f.gpus);
  v("distribution", f.cases);
  v("exclude", f.exclude);
  v("missing", f.missing);
}

}  // namespace mgpu

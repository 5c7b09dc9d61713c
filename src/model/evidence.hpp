// SPDX-License-Identifier: MIT
// What a machine tells beside times: what unified memory did, and the state a GPU was in. Absent is
// nullopt, never zero.
#pragma once

#include "model/units.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mgpu {

/// What unified memory did, per sample, so fractions are possible (CUPTI's unified-memory
/// activity).
struct Counters {
  double h2d_bytes = 0, d2h_bytes = 0, d2d_bytes = 0;
  double fault_groups = 0;
  double thrashing = 0;      ///< bytes of the regions that thrashed
  double throttling_ns = 0;  ///< time that a GPU was held off a page
  double remote_map_bytes = 0;
  struct ByCause {         ///< of d2d_bytes
    double user = 0;       ///< an explicit prefetch or advice
    double coherence = 0;  ///< an access to a page that is elsewhere
    double prefetch = 0;   ///< the driver's own, around an access
    double eviction = 0, access_counter = 0;
  } d2d_by_cause;
  struct Pair {
    int from = 0, to = 0;  ///< ordinals; -1 is the host
    double bytes = 0;
  };
  std::vector<Pair> pairs;  ///< those that moved anything, in order
  std::int64_t passes = 0;  ///< that were counted
};

/// Counters of some work, or why there are none ("CUPTI: insufficient privileges (35)").
using Counted = std::variant<Counters, std::string>;

/// The state of a GPU at one moment (NVML).
struct Telemetry {
  std::optional<int> sm_mhz, sm_max_mhz, memory_mhz, memory_max_mhz;
  std::optional<double> power_w, power_limit_w;
  std::optional<int> temperature_c;
  std::vector<std::string> event_reasons;  ///< that hold its clocks down: "sw-power-cap",
                                           ///< "hw-slowdown", ...; idle is none
  std::optional<int> other_processes;      ///< that compute on it beside this one
  bool operator==(const Telemetry&) const = default;
};

}  // namespace mgpu

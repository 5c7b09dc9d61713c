// SPDX-License-Identifier: MIT
// What the links of a machine really do: probes, latencies and the matrix of rates. Its copies are
// those of measure(), in no loop of its own.
#pragma once

#include "measure.hpp"
#include "model/request.hpp"

#include <stop_token>

namespace mgpu {

/// The state of each device at this moment becomes part of it. Blocking; makes no context.
void describe_states(Machine& machine, Backend& backend, Watchdog& dog);

/// Proves each pair that claims access, measures all cells of the matrix, and keeps what it finds
/// in the links of the report's machine as it comes; `observer` is told of everything but
/// finished cases. Blocking, until done or `stop` is requested: then the report is not complete. A
/// pair or a cell that fails costs the others nothing; at the end the gravest Error is thrown.
void measure_topology(const Request& request, Report& report, Backend& backend, Observer& observer,
                      Watchdog& dog, const std::stop_token& stop);

}  // namespace mgpu

// SPDX-License-Identifier: MIT
// What `mgpu topo --measure` measures: one cell for each way between two ends, and where what came
// of it is kept. Pure.
#pragma once

#include "model/machine.hpp"
#include "model/plan.hpp"
#include "model/request.hpp"
#include "model/result.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu {

/// The device of `from` copies, but where the word says otherwise.
enum class CellKind {
  local,
  read,
  write,
  both,
  host_to_device,
  device_to_host,
  host_both,
  one_to_all,
  all_to_one,
  latency
};
template <>
inline constexpr auto vocabulary<CellKind> = std::to_array<Word<CellKind>>({
    {CellKind::local, "local", "a device copies within its own memory"},
    {CellKind::read, "read", "each row's device copies from the memory of each column's"},
    {CellKind::write, "write", "each row's device copies to the memory of each column's"},
    {CellKind::both, "both", "each of two devices reads the other's memory, both together"},
    {CellKind::host_to_device, "host_to_device", "a GPU copies from pinned memory of the host"},
    {CellKind::device_to_host, "device_to_host", "a GPU copies to pinned memory of the host"},
    {CellKind::host_both, "host_both", "a GPU copies from and to the host, both together"},
    {CellKind::one_to_all, "one_to_all", "all others read a device's memory, all together"},
    {CellKind::all_to_one, "all_to_one", "all others write to a device's memory, all together"},
    {CellKind::latency, "latency",
     "each row's device waits for one load from each column's memory"},
});

struct Cell {
  int from = 0, to = 0;     ///< the link that it is of: ordinals, or host_end
  std::optional<int> node;  ///< of the host's end, where the host has several
  CellKind what = CellKind::local;
  std::optional<Engine> engine;  ///< none for a latency
  CaseSpec spec;                 ///< that of the copy
  std::string command;           ///< that measures the copy alone; empty for a latency
  std::string reason;            ///< why it is left out; empty: it is not
};

/// In the order in which they are shown: of each device alone, of each ordered pair, with the host,
/// of all at once, latencies. By kernel is left out where access is not claimed or was not proved;
/// memcpy is then staged. Throws what resolve_gpus throws.
std::vector<Cell> matrix_cells(const Request& request, const Machine& machine);

/// The cases of the cells that copy, in their order.
Plan matrix_plan(std::span<const Cell> cells, const Request& request, const Machine& machine);

/// Those as a dry run shows them.
std::vector<PlanEntry> matrix_entries(std::span<const Cell> cells, const Request& request,
                                      const Machine& machine);

/// Wall time of all cells, their probes and the start of their devices, as far as it can be told.
double matrix_estimate_ns(std::span<const Cell> cells, std::span<const PlanEntry> entries);

/// What came of a cell becomes part of its link: rates by the time of devices, where that is known.
void record_cell(Machine& machine, const Cell& cell, const CaseResult& result);
void record_latency(Machine& machine, const Cell& cell, double ns);
void record_reason(Machine& machine, const Cell& cell, const std::string& reason);

}  // namespace mgpu

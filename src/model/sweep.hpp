// SPDX-License-Identifier: MIT
// Many cases: their product, the known tables, and what only several cases together tell. Pure.
#pragma once

#include "model/machine.hpp"
#include "model/request.hpp"
#include "model/result.hpp"

#include <span>
#include <vector>

namespace mgpu {

/// The rows of a preset on this machine.
std::vector<CaseSpec> preset_cases(Preset preset, const Machine& machine);

/// Each base by every combination of the axes' values, the first axis outermost; a value that says
/// the same as an earlier one of its axis counts once.
std::vector<CaseSpec> product(const std::vector<CaseSpec>& bases, const std::vector<Axis>& axes);

/// All cases of a request: those of copy, or a sweep's.
std::vector<CaseSpec> expand(const Request& request, const Machine& machine);

/// Fills weak and strong efficiency of every measured case: weak is median(one device, S bytes)
/// over median(N devices, N x S bytes), strong is median(one device, S) over N x median(N devices,
/// S in all), where the one-device case with otherwise equal options is among `cases`; else
/// nullopt.
void fill_efficiencies(std::span<CaseResult> cases);

/// The fastest measured cases of each size, by index: those whose median intervals reach the best
/// one's. `slowest` is the factor of the slowest measured case of that size over the best.
struct BestOfSize {
  Bytes size = 0;
  std::vector<std::size_t> best;
  double slowest = 1;
};
std::vector<BestOfSize> best_of_sizes(std::span<const CaseResult> cases);

}  // namespace mgpu

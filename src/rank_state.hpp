// SPDX-License-Identifier: MIT
// What rank 0 knows of each rank of a run, and what that makes of the report of all. Sends and
// writes nothing.
#pragma once

#include "model/fleet.hpp"
#include "model/result.hpp"
#include "model/share.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu {

struct RankState {
  std::string host;          ///< empty: not told yet
  std::optional<Seen> seen;  ///< the devices that it sees
  std::string last_case;     ///< key of the one that it ended last
  std::string complaints;    ///< what it would have written to stderr
  std::optional<ErrorInfo> error;
  Nanos heard = 0;        ///< when something came from it
  std::size_t ready = 0;  ///< cases that it could sample by now, counted from the first
  int code = 0;           ///< that it would exit with
  bool ended = false, complete = false;
};

/// The graver of two errors is the report's.
void weigh(Report& report, const ErrorInfo& error);

/// Makes `report`, which has what surrounds it, that of the fleet of all ranks. Those that have not
/// ended are missing, but for rank 0, which reports.
void complete_fleet(Report& report, FleetBuilder fleet, std::span<const RankState> ranks,
                    double outlier);

/// Each line that other ranks would have written to stderr once, with the ranks that had it; not
/// what rank 0 has said of itself.
std::vector<std::string> complaints_of(std::span<const RankState> ranks);

}  // namespace mgpu

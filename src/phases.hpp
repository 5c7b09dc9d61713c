// SPDX-License-Identifier: MIT
// What the lanes saw, sample by sample, and what it comes to for each device.
#pragma once

#include "crew.hpp"
#include "model/result.hpp"

#include <span>
#include <vector>

namespace mgpu {

class Phases {
 public:
  explicit Phases(const Schedule& schedule);

  /// A timed sample; one record a lane. Outside the clock. Beyond four million records a further
  /// sample is not kept.
  void add(std::span<const LaneRecord> records, const PassResult& pass, int batch);
  /// A sample of the second set, with device times.
  void add_marked(std::span<const LaneRecord> records, const PassResult& pass, int batch);

  /// Fills rates, basis, per_device, per_direction, overlap, event_median_ns and of_peak of a
  /// result whose summary is set.
  void summarize(CaseResult& result, const Case& what, const Machine& machine) const;

 private:
  struct LanePhases {  // ns; single precision is exact to a part in ten million and halves what is
                       // stored
    float start, wait, prefetch, launch, sync, end;
  };
  struct Busy {
    double start, end;  // relative to the release
  };

  DirectionResult direction(Direction which, std::size_t samples, std::size_t marked) const;

  const Schedule& schedule_;
  std::vector<LanePhases> samples_;  // sample by sample, lane by lane
  std::vector<Busy> marked_;         // likewise
  std::vector<double> marked_walls_;
};

}  // namespace mgpu

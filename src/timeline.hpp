// SPDX-License-Identifier: MIT
// Keeps whole passes of the second set, so that a typical and the worst one can be drawn.
#pragma once

#include "crew.hpp"
#include "model/result.hpp"

#include <span>
#include <vector>

namespace mgpu {

class Timeline {
 public:
  /// One pass with marks.
  void add(std::span<const LaneRecord> records, const PassResult& pass);

  /// The pass in the middle by wall time, and the longest; empty without passes. `lanes` are those
  /// of the records.
  std::vector<TimelineSample> samples(std::span<const Lane> lanes) const;

 private:
  struct Pass {
    PassResult result;
    std::vector<LaneRecord> records;
  };
  std::vector<Pass> passes_;
};

}  // namespace mgpu

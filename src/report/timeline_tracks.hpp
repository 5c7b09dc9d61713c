// SPDX-License-Identifier: MIT
// A sample's spans as tracks, which the trace and the bars share. Knows neither JSON nor a
// terminal.
#pragma once

#include "model/result.hpp"

#include <string>
#include <vector>

namespace mgpu {

/// What one thread or one stream did: sorted by start, and what encloses before what it encloses.
struct Track {
  std::string name;  ///< "thread 0 (slice 0, GPU 0)"; "GPU 0", or "GPU 0, slice 2" where it has
                     ///< several streams, whose work overlaps
  bool on_device = false;
  std::vector<TimelineSample::Span> spans;
};

/// The threads by lane, then the devices by ordinal. Spans without a name are left out.
std::vector<Track> tracks_of(const TimelineSample& sample, const Case& what, BackendKind backend);

/// "case 0: typical sample, 2.03 ms".
std::string title_of(std::size_t case_number, const TimelineSample& sample);

/// The earliest start, and the latest end or the end of the sample, in ns after the release.
struct Extent {
  double start = 0, end = 0;
};
Extent extent_of(const TimelineSample& sample);

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "report/timeline_tracks.hpp"

#include "model/schedule.hpp"
#include "report/phrases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace mgpu {

std::vector<Track> tracks_of(const TimelineSample& sample, const Case& what, BackendKind backend) {
  const std::vector<Lane> lanes = make_schedule(what).lanes;  // a slice of zero bytes has none
  const auto slice_of = [&](int lane) { return lanes.at(static_cast<std::size_t>(lane)).slice; };
  std::map<int, std::set<int>> streams;  // lanes by device
  for (const auto& span : sample.spans)
    if (span.on_device) streams[span.device].insert(span.lane);

  std::map<std::tuple<bool, int, int>, Track> tracks;
  for (const auto& span : sample.spans) {
    if (span.what.empty()) continue;
    Track& track = tracks[{span.on_device, span.on_device ? span.device : 0, span.lane}];
    const std::string device = fmt::format("{} {}", device_noun(backend), span.device);
    track.on_device = span.on_device;
    const int thread = what.threads == Threads::single ? 0 : span.lane;
    track.name = !span.on_device
                     ? fmt::format("thread {} (slice {}, {})", thread, slice_of(span.lane), device)
                 : streams[span.device].size() == 1
                     ? device
                     : fmt::format("{}, slice {}", device, slice_of(span.lane));
    track.spans.push_back(span);
  }
  std::vector<Track> ordered;
  for (auto& [key, track] : tracks) {
    std::ranges::stable_sort(track.spans, {}, [](const TimelineSample::Span& span) {
      return std::pair(span.start_ns, -span.end_ns);
    });
    ordered.push_back(std::move(track));
  }
  return ordered;
}

std::string title_of(std::size_t case_number, const TimelineSample& sample) {
  return fmt::format("case {}: {} sample, {}", case_number, sample.which,
                     format_time_short(sample.wall_ns));
}

Extent extent_of(const TimelineSample& sample) {
  Extent extent{0, sample.wall_ns};
  for (const auto& span : sample.spans) {
    extent.start = std::min(extent.start, span.start_ns);
    extent.end = std::max(extent.end, span.end_ns);
  }
  return extent;
}

}  // namespace mgpu

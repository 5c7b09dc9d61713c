// SPDX-License-Identifier: MIT
#include "report/report.hpp"
#include "report/timeline_tracks.hpp"

#include <nlohmann/json.hpp>

namespace mgpu {
namespace {

using Json = nlohmann::ordered_json;

Json named(const char* what, int process, int thread, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

// Viewers sort tracks by name unless told otherwise, and "thread 10" would come before "thread 2".
Json ordered(int process, int thread) {
  return {{"name", "thread_sort_index"},
          {"ph", "M"},
          {"pid", process},
          {"tid", thread},
          {"args", {{"sort_index", thread}}}};
}

Json complete(const TimelineSample::Span& span, double origin_ns, int process, int thread) {
  return {{"name", span.what},
          {"cat", span.on_device ? "device" : "thread"},
          {"ph", "X"},
          {"pid", process},
          {"tid", thread},
          {"ts", (span.start_ns - origin_ns) / 1e3},
          {"dur", (span.end_ns - span.start_ns) / 1e3},
          {"args", {{"start_ns", span.start_ns}, {"end_ns", span.end_ns}}}};
}

}  // namespace

std::string render_trace(const Report& report) {
  Json events = Json::array();
  int process = 0;
  for (std::size_t c = 0; c < report.cases.size(); ++c)
    for (const TimelineSample& sample : report.cases[c].timeline) {
      // Perfetto drops what starts before zero; device clocks are only as close as their mapping.
      const double origin = extent_of(sample).start;
      events.push_back(named("process_name", process, 0, title_of(c, sample)));
      int thread = 0;
      for (const Track& track : tracks_of(sample, report.cases[c].what, report.machine.backend)) {
        events.push_back(named("thread_name", process, thread, track.name));
        events.push_back(ordered(process, thread));
        for (const auto& span : track.spans)
          events.push_back(complete(span, origin, process, thread));
        ++thread;
      }
      ++process;
    }
  const Json trace = {{"traceEvents", events}, {"displayTimeUnit", "ns"}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mgpu

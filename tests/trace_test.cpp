// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/report.hpp"
#include "sample_report.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

using Json = nlohmann::json;
using Span = TimelineSample::Span;

/// The second of two threads waits for the first one's copy inside its launch.
Report timed_report() {
  Report report = sample_report();
  TimelineSample typical{"typical", 2'000'000, {}};
  typical.spans = {
      // In no order, as threads give them.
      {1, 1, false, "wait for owner", 10'000, 1'000'000.5},
      {1, 1, false, "launching kernel", 10'000, 1'100'000},
      {1, 1, false, "launch", 1'050'000, 1'100'000},
      {1, 1, false, "prefetch", 1'000'000.5, 1'050'000},
      {1, 1, false, "synchronize", 1'100'000, 2'000'000},
      {0, 0, false, "launching kernel", 0, 60'000},
      {0, 0, false, "launch", 0, 60'000},
      {0, 0, false, "", 60'000, 61'000},
      {0, 0, false, "synchronize", 61'000, 1'000'000},
      {0, 0, true, "copy", 60'000, 1'000'000},
      {1, 1, true, "copy", 1'100'000, 1'990'000},
  };
  TimelineSample worst = typical;
  worst.which = "worst";
  worst.wall_ns = 4'000'000;
  report.cases[0].timeline = {typical, worst};
  return report;
}

Json events_of(const Report& report) {
  return Json::parse(render_trace(report)).at("traceEvents");
}

/// The names that metadata events of this kind give, by process and thread.
std::map<std::pair<int, int>, std::string> names_of(const Json& events, const std::string& kind) {
  std::map<std::pair<int, int>, std::string> names;
  for (const Json& event : events)
    if (event["name"] == kind)
      names[{event["pid"], event["tid"]}] = event["args"]["name"].get<std::string>();
  return names;
}

/// The complete events of a track.
std::vector<Json> spans_of(const Json& events, int process, int thread) {
  std::vector<Json> spans;
  for (const Json& event : events)
    if (event["ph"] == "X" && event["pid"] == process && event["tid"] == thread)
      spans.push_back(event);
  return spans;
}

}  // namespace

TEST_CASE("a trace has a process a sample, and a track a thread and a device", "[trace]") {
  const Json trace = Json::parse(render_trace(timed_report()));
  CHECK(trace.at("displayTimeUnit") == "ns");
  CHECK(names_of(trace["traceEvents"], "process_name") ==
        std::map<std::pair<int, int>, std::string>{{{0, 0}, "case 0: typical sample, 2 ms"},
                                                   {{1, 0}, "case 0: worst sample, 4 ms"}});
  std::map<std::pair<int, int>, std::string> tracks;
  for (const int process : {0, 1}) {
    tracks[{process, 0}] = "thread 0 (slice 0, GPU 0)";
    tracks[{process, 1}] = "thread 1 (slice 1, GPU 1)";
    tracks[{process, 2}] = "GPU 0";
    tracks[{process, 3}] = "GPU 1";
  }
  CHECK(names_of(trace["traceEvents"], "thread_name") == tracks);
}

TEST_CASE("a span of a trace is in microseconds, its exact nanoseconds beside", "[trace]") {
  const auto copy = spans_of(events_of(timed_report()), 0, 3).at(0);
  CHECK(copy["name"] == "copy");
  CHECK(copy["cat"] == "device");
  CHECK(copy["ts"] == 1100.0);
  CHECK(copy["dur"] == 890.0);
  const auto wait = spans_of(events_of(timed_report()), 0, 1).at(1);
  CHECK(wait["ts"] == 10.0);
  CHECK(wait["dur"] == 990.0005);
  CHECK(wait["args"] == Json{{"start_ns", 10'000.0}, {"end_ns", 1'000'000.5}});
}

TEST_CASE("what a launch encloses follows it, and nothing else overlaps in a track", "[trace]") {
  Report report = timed_report();
  const int split = GENERATE(2, 4);
  CaseResult& result = report.cases[0];
  result.what.split = split;
  if (split == 4)  // two streams at work on one device at the same time
    result.timeline[0].spans.push_back({2, 0, true, "copy", 500'000, 1'500'000});
  const Json events = events_of(report);
  std::vector<std::string> names;
  for (const Json& span : spans_of(events, 0, 1)) names.push_back(span["name"]);
  CHECK(names == std::vector<std::string>{"launching kernel", "wait for owner", "prefetch",
                                          "launch", "synchronize"});
  for (const auto& [track, name] : names_of(events, "thread_name")) {
    INFO(name);
    std::vector<double> open;  // ends
    for (const Json& span : spans_of(events, track.first, track.second)) {
      const double start = span["args"]["start_ns"], end = span["args"]["end_ns"];
      while (!open.empty() && open.back() <= start) open.pop_back();
      CHECK((open.empty() || end <= open.back()));
      open.push_back(end);
    }
  }
  if (split == 4) CHECK(names_of(events, "thread_name").at({0, 3}) == "GPU 0, slice 2");
}

TEST_CASE("no event of a trace starts before zero, for viewers drop it", "[trace]") {
  Report report = timed_report();
  report.cases[0].timeline[0].spans[9].start_ns = -500;
  const Json events = events_of(report);
  const auto copy = spans_of(events, 0, 2).at(0);
  CHECK(copy["ts"] == 0.0);
  CHECK(copy["args"]["start_ns"] == -500.0);
  CHECK(spans_of(events, 0, 0).at(0)["ts"] == 0.5);
  CHECK(spans_of(events, 1, 0).at(0)["ts"] == 0.0);  // the other sample keeps its own zero
}

TEST_CASE("a slice of zero bytes has no lane, and the tracks keep their slices' numbers",
          "[trace]") {
  Report report = timed_report();
  CaseResult& result = report.cases[0];
  result.what.split = 4;
  result.what.size = 40;  // slices of 0, 16, 0 and 24 bytes
  result.timeline.resize(1);
  const auto names = names_of(events_of(report), "thread_name");
  CHECK(names.at({0, 0}) == "thread 0 (slice 1, GPU 0)");
  CHECK(names.at({0, 1}) == "thread 1 (slice 3, GPU 1)");
}

TEST_CASE("one thread that submits to all is named so on each of its tracks", "[trace]") {
  Report report = timed_report();
  report.cases[0].what.threads = Threads::single;
  CHECK(names_of(events_of(report), "thread_name").at({0, 1}) == "thread 0 (slice 1, GPU 1)");
}

TEST_CASE("without a timeline a trace has no events, and there are no bars", "[trace]") {
  CHECK(render_trace(sample_report()) == "{\"traceEvents\":[],\"displayTimeUnit\":\"ns\"}\n");
  CHECK(render_timeline(sample_report()).empty());
}

TEST_CASE("a timeline is no part of a document", "[trace]") {
  CHECK(render(Format::json, timed_report()) == render(Format::json, sample_report()));
}

TEST_CASE("bars show who waited for whom", "[trace]") {
  Report report = timed_report();
  report.cases[0].timeline.resize(1);
  CHECK(render_timeline(report) ==
        R"(case 0: typical sample, 2 ms
                            0 ns                   1 ms                    2 ms
 thread 0 (slice 0, GPU 0) │llssssssssssssssssssssssss                         │
 thread 1 (slice 1, GPU 1) │wwwwwwwwwwwwwwwwwwwwwwwwwwplsssssssssssssssssssssss│
 GPU 0                     │ ccccccccccccccccccccccccc                         │
 GPU 1                     │                            ccccccccccccccccccccccc│
 w wait for owner  p prefetch  l launch  s synchronize  c copy
)");
}

TEST_CASE("bars keep to 80 columns", "[trace]") {
  Report report = timed_report();
  report.machine.backend = GENERATE(BackendKind::cuda, BackendKind::host);
  report.cases[0].what.split = 64;
  report.cases[0].timeline[1].spans.push_back({63, 1, false, "launch", -300, 4'321'987.6});
  std::istringstream lines(render_timeline(report));
  int seen = 0;
  for (std::string line; std::getline(lines, line); ++seen) {
    INFO(line);
    CHECK(columns_of(line) <= 80);
    if (line.find("│") != line.npos) CHECK(columns_of(line) == 80);
  }
  CHECK(seen > 12);
}

TEST_CASE("a cell of a bar shows what takes most of it, and what encloses yields", "[trace]") {
  Report report = timed_report();
  TimelineSample& sample = report.cases[0].timeline[0];
  report.cases[0].timeline.resize(1);
  sample.wall_ns = 51;  // the bars are 51 cells wide beside their names
  sample.spans = {{0, 0, false, "launching kernel", 0, 10},
                  {0, 0, false, "wait for owner", 1.4, 4.4},
                  {0, 0, false, "prefetch", 4.4, 4.9},
                  {0, 0, false, "dance", 20, 21}};
  const std::string text = render_timeline(report);
  INFO(text);
  CHECK(text.find("│lwwwplllll          ?          ") != text.npos);
  CHECK(text.ends_with(" w wait for owner  p prefetch  l launch  ? other\n"));
}

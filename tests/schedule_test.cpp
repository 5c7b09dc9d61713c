// SPDX-License-Identifier: MIT
#include "model/schedule.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <map>
#include <set>

using namespace mgpu;

namespace {

Case two_gpus(Bytes size) {
  Case what;
  what.gpus = {0, 1};
  what.split = 2;
  what.size = size;
  return what;
}

Case unified(Bytes size) {
  Case what = two_gpus(size);
  what.memory = what.source_memory = what.destination_memory = MemoryKind::managed;
  what.align = Bytes{2} << 20;
  return what;
}

Case at_home(Case what, int home) {
  what.from = what.to = {Place::Kind::device, home};
  return what;
}

// Every combination of the vocabularies that shape a schedule.
std::vector<Case> every_policy(Bytes size, int split) {
  std::vector<Case> cases;
  for (const MemoryKind memory : {MemoryKind::device, MemoryKind::managed})
    for (const auto& prefetch : vocabulary<Prefetch>)
      for (const auto& wait : vocabulary<OwnerWait>)
        for (const auto& lock : vocabulary<OwnerLock>)
          for (const int home : {-1, 0, 1}) {
            if (memory != MemoryKind::managed && prefetch.value != Prefetch::none) continue;
            Case what = memory == MemoryKind::managed ? unified(size) : two_gpus(size);
            what.memory = what.source_memory = what.destination_memory = memory;
            what.split = split;
            what.prefetch = prefetch.value;
            what.owner_wait = wait.value;
            what.owner_lock = lock.value;
            cases.push_back(home < 0 ? what : at_home(what, home));
          }
  return cases;
}

std::vector<StepKind> kinds(const std::vector<Step>& steps) {
  std::vector<StepKind> result;
  for (const Step& step : steps) result.push_back(step.kind);
  return result;
}

}  // namespace

TEST_CASE("slices cover every byte once, in order, whatever the size, number and alignment") {
  const Bytes size = GENERATE(1, 3, 15, 16, 17, 255, 257, 4096, 1000007, 4'000'000'000, ~Bytes{0});
  const int n = GENERATE(1, 2, 3, 7, 64);
  const Bytes align = GENERATE(1, 4, 16, 2097152);
  Bytes reached = 0;
  for (int i = 0; i < n; ++i) {
    const auto [begin, end] = slice_bounds(size, n, i, align);
    CHECK(begin == reached);
    CHECK(end >= begin);
    if (i + 1 < n)
      CHECK(end % (size / static_cast<Bytes>(n) < align ? std::min<Bytes>(align, 16) : align) == 0);
    reached = end;
  }
  CHECK(reached == size);
}

TEST_CASE("the seed's halves meet at 2 MiB unless a finer alignment is asked for") {
  CHECK(slice_bounds(4'000'000'000, 2, 1, Bytes{2} << 20).first ==
        2'000'000'000 / 2097152 * 2097152);
  CHECK(slice_bounds(4'000'000'000, 2, 1, 4).first == 2'000'000'000);
}

TEST_CASE("every byte of the destination is written once, from the same offset of the source") {
  const Bytes size = GENERATE(1, 17, 1000003, Bytes{64} << 20);
  const int split = GENERATE(1, 2, 3, 5);
  for (const Case& what : every_policy(size, split)) {
    const Schedule schedule = make_schedule(what);
    Bytes reached = 0;
    for (const Lane& lane : schedule.lanes) {
      CHECK(lane.base == reached);
      CHECK(lane.source.bytes == lane.destination.bytes);
      reached += lane.destination.bytes;
      int copies = 0;
      for (const Step& step : lane.sample) {
        if (step.kind != StepKind::copy) continue;
        ++copies;
        CHECK(step.range == lane.destination);
        CHECK(step.source == lane.source);
      }
      CHECK(copies == 1);
      for (const Range& range : {lane.source, lane.destination})
        CHECK(range.offset + range.bytes <=
              schedule.buffers[static_cast<std::size_t>(range.buffer)].bytes);
    }
    CHECK(reached == size);
  }
}

TEST_CASE("source and destination never share a buffer") {
  for (const Case& what : every_policy(1000003, 3)) {
    std::set<int> sources, destinations;
    for (const Lane& lane : make_schedule(what).lanes) {
      sources.insert(lane.source.buffer);
      destinations.insert(lane.destination.buffer);
    }
    for (const int source : sources) CHECK_FALSE(destinations.contains(source));
  }
}

TEST_CASE("device memory at home local is one allocation a slice, on the GPU that copies it") {
  const Schedule schedule = make_schedule(two_gpus(1 << 20));
  REQUIRE(schedule.buffers.size() == 4);
  for (const Lane& lane : schedule.lanes) {
    for (const Range& range : {lane.source, lane.destination})
      CHECK(schedule.buffers[static_cast<std::size_t>(range.buffer)].site.is(lane.device));
  }
  CHECK(schedule.peers.empty());
}

TEST_CASE("arrays on a named GPU are one allocation each, and the others reach it as peers") {
  const Schedule schedule = make_schedule(at_home(two_gpus(1 << 20), 0));
  REQUIRE(schedule.buffers.size() == 2);
  CHECK(schedule.buffers[0].site == on_device(0));
  CHECK(schedule.peers == std::vector{std::pair{1, 0}});
}

TEST_CASE("managed arrays are one allocation each and need no peer access") {
  const Schedule schedule = make_schedule(at_home(unified(Bytes{8} << 20), 0));
  CHECK(schedule.buffers.size() == 2);
  CHECK(schedule.peers.empty());
  CHECK(schedule.lanes[1].device == 1);
  CHECK(schedule.lanes[1].source_site == on_device(0));  // who touches it first
}

TEST_CASE("a slice prefetch touches only the slice") {
  Case what = unified(Bytes{8} << 20);
  what.prefetch = Prefetch::slice;
  for (const Lane& lane : make_schedule(what).lanes) {
    REQUIRE(kinds(lane.sample) ==
            std::vector{StepKind::prefetch, StepKind::prefetch, StepKind::copy});
    CHECK(lane.sample[0].range == lane.source);
    CHECK(lane.sample[1].range == lane.destination);
    CHECK(lane.setup.empty());
  }
}

TEST_CASE("an array prefetch covers both whole arrays in every lane") {
  Case what = unified(Bytes{8} << 20);
  what.prefetch = Prefetch::array;
  for (const Lane& lane : make_schedule(what).lanes) {
    REQUIRE(kinds(lane.sample) ==
            std::vector{StepKind::prefetch, StepKind::prefetch, StepKind::copy});
    CHECK(lane.sample[0].range == Range{0, 0, what.size});
    CHECK(lane.sample[1].range == Range{1, 0, what.size});
  }
}

TEST_CASE("a prefetch once happens before the first pass and in no sample") {
  Case what = unified(Bytes{8} << 20);
  what.prefetch = Prefetch::once;
  for (const Lane& lane : make_schedule(what).lanes) {
    CHECK(kinds(lane.setup) == std::vector{StepKind::prefetch, StepKind::prefetch});
    CHECK(kinds(lane.sample) == std::vector{StepKind::copy});
  }
}

TEST_CASE(
    "ownership is taken of one array after the other by number, each before its prefetch, and "
    "given up after the copy") {
  Case what = unified(Bytes{8} << 20);
  what.prefetch = Prefetch::array;
  what.owner_wait = OwnerWait::host;
  for (const Lane& lane : make_schedule(what).lanes) {
    REQUIRE(kinds(lane.sample) == std::vector{StepKind::own, StepKind::prefetch, StepKind::own,
                                              StepKind::prefetch, StepKind::copy,
                                              StepKind::release});
    CHECK(lane.sample[0].range.buffer == 0);
    CHECK(lane.sample[2].range.buffer == 1);
  }
  what.owner_lock = OwnerLock::record;
  CHECK(kinds(make_schedule(what).lanes[0].sample).back() == StepKind::copy);
}

TEST_CASE("slices of no bytes have no lane") {
  const Schedule schedule = make_schedule(two_gpus(4));
  REQUIRE(schedule.lanes.size() == 1);
  CHECK(schedule.lanes[0].device == 1);
  CHECK(schedule.lanes[0].destination.bytes == 4);
  CHECK(schedule.buffers.size() == 2);
}

TEST_CASE("slices are dealt to the GPUs in their order, in turns") {
  Case what = two_gpus(1 << 20);
  what.gpus = {1, 0};
  what.split = 5;
  std::vector<int> devices;
  for (const Lane& lane : make_schedule(what).lanes) devices.push_back(lane.device);
  CHECK(devices == std::vector{1, 0, 1, 0, 1});
}

TEST_CASE("a truncated schedule keeps its steps and touches the head of each lane's own slice") {
  for (const Case& what : every_policy(Bytes{64} << 20, 3)) {
    const Schedule whole = make_schedule(what), tiny = truncated(whole, 4096);
    REQUIRE(tiny.lanes.size() == whole.lanes.size());
    for (std::size_t i = 0; i < tiny.lanes.size(); ++i) {
      CHECK(kinds(tiny.lanes[i].sample) == kinds(whole.lanes[i].sample));
      for (const Step& step : tiny.lanes[i].sample) {
        if (step.kind != StepKind::copy && step.kind != StepKind::prefetch) continue;
        CHECK(step.range.bytes == 4096);
        const Range& own = step.range.buffer == whole.lanes[i].source.buffer
                               ? whole.lanes[i].source
                               : whole.lanes[i].destination;
        CHECK(step.range.offset == own.offset);
      }
    }
  }
}

TEST_CASE("memory is needed where arrays live, and wherever managed pages can be drawn to") {
  const auto needs = [](const Case& what) {
    std::map<int, Bytes> result;
    for (const MemoryNeed& need : memory_needed(what)) {
      REQUIRE(!need.site.on_host());
      result[need.site.index] = need.bytes;
    }
    return result;
  };
  const Bytes size = Bytes{8} << 20;
  CHECK(needs(two_gpus(size)) == std::map<int, Bytes>{{0, size}, {1, size}});
  CHECK(needs(at_home(two_gpus(size), 1)) == std::map<int, Bytes>{{1, 2 * size}});
  CHECK(needs(unified(size)) == std::map<int, Bytes>{{0, size}, {1, size}});
  CHECK(needs(at_home(unified(size), 0)) == std::map<int, Bytes>{{0, 2 * size}, {1, size}});
  Case stolen = unified(size);
  stolen.prefetch = Prefetch::array;
  CHECK(needs(stolen) == std::map<int, Bytes>{{0, 2 * size}, {1, 2 * size}});
}

TEST_CASE("a memory need beyond 64 bits is as large as can be, not small") {
  Case what = at_home(two_gpus(~Bytes{0} / 4 * 3), 0);
  CHECK(memory_needed(what).front().bytes == ~Bytes{0});
}

TEST_CASE("the printed steps say who waits, what is prefetched and what is copied") {
  Case what = unified(Bytes{8} << 20);
  what.owner_wait = OwnerWait::host;
  what.prefetch = Prefetch::array;
  const Schedule schedule = make_schedule(what);
  std::string text;
  for (const std::string& line : describe_steps(schedule, schedule.lanes[1])) text += line + "\n";
  CHECK(text.find("own buffer 0: the host waits for its last user") != std::string::npos);
  CHECK(text.find("prefetch buffer 0 [0, +8388608) to device 1") != std::string::npos);
  CHECK(text.find("copy buffer 1 [4194304, +4194304) <- buffer 0 [4194304, +4194304)") !=
        std::string::npos);
}

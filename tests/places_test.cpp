// SPDX-License-Identifier: MIT
// Where arrays are and which way they are copied: the tables of what runs, and that it does.
#include "measure.hpp"
#include "model/paths.hpp"
#include "model/schedule.hpp"
#include "simulation.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <sstream>

using namespace mgpu;
using Catch::Approx;

namespace {

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream in(line);
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

// What a command line on a simulated machine does. "cuda" unless the line names a backend.
Outcome run(const std::string& line, const SimOptions& options = {}) {
  Simulation simulation;
  simulation.options = options;
  return simulation(words("copy --size 64KiB --samples 3 " + line));
}

SimOptions three_gpus() {
  SimOptions options;
  options.gpus = 3;
  options.nodes = 2;
  return options;
}

SimOptions without_peers() {
  SimOptions options = three_gpus();
  options.peers = false;
  return options;
}

Case planned(const CaseSpec& spec, const Machine& machine) {
  Request request;
  request.cases = {spec};
  const PlannedCase made = make_plan(request, machine).cases.front();
  INFO((made.skip ? made.skip->reason : ""));
  REQUIRE_FALSE(made.skip);
  return made.what;
}

CaseSpec spec(std::string_view gpus, std::string_view from, std::string_view to,
              std::string_view size = "1GB") {
  CaseSpec made;
  if (!gpus.empty()) made.gpus = parse_gpus(gpus, "--gpus");
  if (!from.empty()) made.from = parse_place(from, "--from");
  if (!to.empty()) made.to = parse_place(to, "--to");
  made.size = parse_size(size, "--size");
  return made;
}

CaseResult measured(const CaseSpec& what, SimOptions options = three_gpus()) {
  options.data = false;
  SimBackend backend(options);
  const Machine machine = backend.machine();
  Request request;
  request.cases = {what};
  request.sampling.samples = 20;
  Observer silent;
  Watchdog dog(0);
  const Results results =
      measure(make_plan(request, machine), machine, request.sampling, backend, silent, dog, {});
  REQUIRE_FALSE(results.error);
  return results.cases.front();
}

std::vector<std::pair<MemoryKind, Site>> buffers(const Case& what) {
  std::vector<std::pair<MemoryKind, Site>> all;
  for (const BufferSpec& buffer : make_schedule(what).buffers)
    all.emplace_back(buffer.kind, buffer.site);
  return all;
}

}  // namespace

TEST_CASE("every way that a GPU can copy is copied and verified", "[places]") {
  const std::string line = GENERATE(
      // local, and within one GPU
      "--gpus 0", "--gpus 0,1", "--home 1", "--home 1 --engine memcpy", "--home 0 --gpus 1",
      // between two
      "--from 0 --to 1 --gpus 1", "--from 0 --to 1 --gpus 0", "--from 0 --to 1 --engine memcpy",
      "--from 0 --to 1 --gpus 0 --engine memcpy", "--from 0 --to local --gpus 1",
      "--from local --to 0 --gpus 1,2", "--from 0 --to 2 --gpus 1",
      // the host
      "--from host --to local --gpus 0,1", "--from local --to host --gpus 0,1",
      "--from host --to 1 --gpus 1 --engine memcpy",
      "--from 1 --to host:1 --gpus 1 --engine memcpy", "--from host:1 --to 0 --gpus 0",
      "--from host --to 2 --gpus 0", "--home host --gpus 0", "--memory pinned --gpus 0,1",
      "--memory pinned --from host --to 0 --gpus 0",
      "--memory pageable --from host --to 0 --gpus 0 --engine memcpy",
      // both ways
      "--bidirectional --from 0 --to 1", "--bidirectional --from 0 --to 1 --gpus 0 --engine memcpy",
      "--bidirectional --from host --to local --gpus 0,1,2",
      "--bidirectional --from local --to 0 --gpus 1,2", "--bidirectional --from 0 --to 2 --gpus 1",
      // managed
      "--unified --from host --to local --gpus 0,1", "--unified --home host:1 --gpus 0,1",
      "--unified --from 0 --to 1 --gpus 2", "--unified --home host --cold --gpus 0",
      "--unified --from 0 --to 1 --gpus 1 --bidirectional",
      "--unified --home host --engine memcpy");
  INFO(line);
  const Outcome outcome = run(line + " --json", three_gpus());
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("\"verified\": true") != std::string::npos);
}

TEST_CASE("what no machine can do is bad usage, and says what to do instead", "[places]") {
  const auto [line, instead] = GENERATE(table<std::string, std::string>({
      {"--home 0 --gpus 1 --engine memcpy", "--engine kernel"},
      {"--from 0 --to 2 --gpus 1 --engine memcpy", "--gpus 2"},
      {"--from host --to 0 --gpus 1 --engine memcpy", "--gpus 0"},
      {"--from 0 --to host --gpus 1 --engine memcpy", "--gpus 0"},
      {"--home host --gpus 0 --engine memcpy", "--engine kernel"},
      {"--memory pinned --gpus 0 --engine memcpy", "--engine kernel"},
      {"--memory pinned --from 0 --to 1", "--from host"},
      {"--memory pageable --home 0", "--from host"},
      {"--bidirectional --gpus 0", "--from and --to"},
      {"--bidirectional --home host --gpus 0", "--from and --to"},
      {"--bidirectional --from local --to 0 --gpus 0", "--from and --to"},
      {"--from host --to 0 --prefetch slice", "--unified"},
      {"--from nowhere --to 0", "write local, host, host:0"},
      {"--from host:x --to 0", "host:0"},
      {"--from 0,1 --to 0", "one GPU"},
  }));
  INFO(line);
  const Outcome outcome = run(line, three_gpus());
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  INFO(outcome.err);
  CHECK(outcome.err.find(instead) != std::string::npos);
}

TEST_CASE("what this machine cannot do is unavailable, and says what to do instead", "[places]") {
  const auto [line, instead] = GENERATE(table<std::string, std::string>({
      {"--home 0 --gpus 1", "--unified"},
      {"--from 0 --to 1 --gpus 1", "--engine memcpy"},
      {"--from local --to 0 --gpus 1", "--engine memcpy"},
      {"--from 0 --to 2 --gpus 1", "--engine memcpy"},
      {"--from host --to 0 --gpus 1", "no peer access"},
      {"--from 0 --to 1 --gpus 1 --engine memcpy --peer on", "peer"},
      {"--memory pageable --from host --to 0 --gpus 0", "--engine memcpy"},
      {"--memory pageable --gpus 0", "--memory pinned"},
      {"--from host:7 --to 0 --gpus 0", "only 0, 1"},
      {"--from 9 --to 0 --gpus 0", "visible"},
  }));
  INFO(line);
  const Outcome outcome = run(line, without_peers());
  CHECK(outcome.code == 4);
  INFO(outcome.err + outcome.out);
  CHECK((outcome.err + outcome.out).find(instead) != std::string::npos);
}

TEST_CASE("without peer access a copy engine goes through the host, marked", "[places]") {
  const Outcome outcome = run("--from 0 --to 1 --gpus 1 --engine memcpy --json", without_peers());
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("\"staged\"") != std::string::npos);
}

TEST_CASE("kernels reach pageable memory where the machine says so", "[places]") {
  SimOptions options = three_gpus();
  options.pageable_access = true;
  CHECK(run("--memory pageable --from host --to 0 --gpus 0", options).code == 0);
}

TEST_CASE("on CPUs no place is refused for its executor", "[places]") {
  const std::string line =
      GENERATE("--home 0 --gpus 1 --engine memcpy", "--from 0 --to 2 --gpus 1 --engine memcpy",
               "--memory pinned --gpus 0 --engine memcpy", "--memory pageable --gpus 0",
               "--from host:1 --to 0 --gpus 1 --engine memcpy");
  INFO(line);
  SimOptions options = three_gpus();
  options.pageable_access = true;
  Simulation simulation;
  simulation.options = options;
  simulation.edit = [](Machine& machine) { machine.backend = BackendKind::host; };
  const Outcome outcome = simulation(words("copy --backend host --size 64KiB --samples 3 " + line));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("memory is of the kind that its place and the option ask for", "[places]") {
  const Machine machine = SimBackend(three_gpus()).machine();
  using enum MemoryKind;
  const Site zero = on_device(0), near{Site::Kind::near, 0}, node{Site::Kind::node, 1};
  const auto sides = [&](CaseSpec what, MemoryKind memory) {
    what.memory = memory;
    return buffers(planned(what, machine));
  };
  using Sides = std::vector<std::pair<MemoryKind, Site>>;
  CHECK(sides(spec("0", "host", "local"), device) == Sides{{pinned, near}, {device, zero}});
  CHECK(sides(spec("0", "0", "host:1"), device) == Sides{{device, zero}, {pinned, node}});
  CHECK(sides(spec("0", "", ""), pinned) == Sides{{pinned, near}, {pinned, near}});
  CaseSpec staged = spec("0", "host", "");
  staged.engine = Engine::memcpy;
  CHECK(sides(staged, pageable) == Sides{{pageable, near}, {device, zero}});
  CHECK(sides(spec("0", "host", "0"), managed) == Sides{{managed, near}, {managed, zero}});
}

TEST_CASE("the host's memory is one allocation a slice, or one on a node that is named",
          "[places]") {
  const Machine machine = SimBackend(three_gpus()).machine();
  CHECK(buffers(planned(spec("0,1", "host", "local"), machine)).size() == 4);
  CHECK(buffers(planned(spec("0,1", "host:0", "local"), machine)).size() == 3);
  CHECK(buffers(planned(spec("0,1", "0", "local"), machine)).size() == 3);
}

TEST_CASE("the GPU that --to names copies unless --gpus says otherwise", "[places]") {
  const Machine machine = SimBackend(three_gpus()).machine();
  CHECK(planned(spec("", "0", "2"), machine).gpus == std::vector{2});
  CHECK(planned(spec("", "host", "2"), machine).gpus == std::vector{0, 1, 2});
  CHECK(planned(spec("0", "0", "2"), machine).gpus == std::vector{0});
}

TEST_CASE("the other way mirrors the role of each transfer", "[places]") {
  const Machine machine = SimBackend(three_gpus()).machine();
  const auto executors = [&](CaseSpec what) {
    what.bidirectional = true;
    std::vector<std::pair<int, bool>> all;
    for (const Lane& lane : make_schedule(planned(what, machine)).lanes)
      all.emplace_back(lane.device, lane.reverse);
    return all;
  };
  using Executors = std::vector<std::pair<int, bool>>;
  CHECK(executors(spec("1", "0", "1")) == Executors{{1, false}, {0, true}});  // both read
  CHECK(executors(spec("0", "0", "1")) == Executors{{0, false}, {1, true}});  // both write
  CHECK(executors(spec("2", "0", "1")) == Executors{{2, false}, {2, true}});
  CHECK(executors(spec("0", "host", "local")) == Executors{{0, false}, {0, true}});
  CHECK(executors(spec("1,2", "local", "0")) ==
        Executors{{1, false}, {2, false}, {0, true}, {0, true}});
}

TEST_CASE("both ways are counted, and each is told apart", "[places]") {
  CaseSpec what = spec("", "0", "1", "400MB");
  what.bidirectional = true;
  const CaseResult result = measured(what);
  CHECK(result.bytes_copied == 800'000'000);
  CHECK(result.basis == Basis::copied);
  REQUIRE(result.per_direction.size() == 2);
  for (const DirectionResult& way : result.per_direction) {
    CHECK(way.bytes == 400'000'000);
    CHECK(way.rate == Approx(400e9).epsilon(0.02));  // the simulated link, each way
  }
  REQUIRE(result.per_device.size() == 2);  // GPU 0 copies the other way
  CHECK(result.per_device[1].index == 0);
  CHECK(result.rates.copied.median == Approx(800e9).epsilon(0.02));
}

TEST_CASE("a byte of one direction never passes for one of the other", "[places]") {
  CaseSpec what = spec("", "0", "1", "1MiB");
  what.bidirectional = true;
  const Schedule schedule = make_schedule(planned(what, SimBackend(three_gpus()).machine()));
  CHECK(schedule.lanes[0].base == 0);
  CHECK(schedule.lanes[1].base == 1 << 20);
  Fault swapped;
  swapped.call = Fault::Call::copy;
  swapped.act = Fault::Act::flip;
  swapped.nth = 8;  // behind the probes of both pairs: the last pass of the warm-up
  swapped.offset = 5;
  Simulation simulation;
  simulation.faults = {swapped};
  const Outcome outcome = simulation(
      words("copy --from 0 --to 1 --bidirectional --size 1MiB --samples 3 --threads single"));
  CHECK(outcome.code == 6);
  CHECK(outcome.out.find("at offset 5 (0x5)") != std::string::npos);
}

TEST_CASE("a share of peak is of what limits the bytes", "[places]") {
  const auto of = [](std::string_view gpus, std::string_view from, std::string_view to) {
    return measured(spec(gpus, from, to, "4GB"));
  };
  const CaseResult local = of("0", "", "");
  CHECK(local.bottleneck == Bottleneck::memory);
  CHECK(local.basis == Basis::moved);
  CHECK(*local.of_peak == Approx(4e12 / 4.8e12).epsilon(0.01));
  const CaseResult peer = of("1", "0", "1");
  CHECK(peer.bottleneck == Bottleneck::nvlink);
  CHECK(*peer.of_peak == Approx(400e9 / 450e9).epsilon(0.01));
  CHECK(*peer.per_device[0].rate == Approx(400e9).epsilon(0.01));  // payload over the link
  const CaseResult up = of("0", "host", "local");
  CHECK(up.bottleneck == Bottleneck::pcie);
  CHECK(*up.of_peak == Approx(50e9 / 64e9).epsilon(0.01));
  // From the host to another GPU the bytes cross PCI Express first, which is slower.
  CHECK(of("0", "host", "1").bottleneck == Bottleneck::pcie);
}

TEST_CASE("GPUs behind a switch share the links of the one they all copy to", "[places]") {
  const Machine machine = SimBackend(three_gpus()).machine();
  const Case what = planned(spec("1,2", "local", "0", "900MB"), machine);
  const auto limit = limit_of(what, make_schedule(what).lanes, machine);
  REQUIRE(limit);
  CHECK(limit->ns == Approx(900e6 / 450e9 * 1e9));
  CHECK(limit->by == Bottleneck::nvlink);
}

TEST_CASE("a peak that is not known makes no share of it", "[places]") {
  Machine machine = SimBackend(three_gpus()).machine();
  const Case what = planned(spec("1", "0", "1"), machine);
  CHECK(limit_of(what, make_schedule(what).lanes, machine));
  machine.links.clear();
  CHECK_FALSE(limit_of(what, make_schedule(what).lanes, machine));
}

TEST_CASE("threads spin only where the CPUs near their GPU suffice", "[places]") {
  const Machine machine = SimBackend(three_gpus()).machine();  // four CPUs a node
  CaseSpec what = spec("0", "", "");
  what.split = 4;
  CHECK(planned(what, machine).wait == Wait::spin);
  what.split = 5;
  CHECK(planned(what, machine).wait == Wait::block);
  Request request;
  request.affinity = Affinity::none;
  request.cases = {what};
  CHECK(make_plan(request, machine).cases[0].what.wait == Wait::spin);  // eight in all
}

TEST_CASE("the report tells which CPUs threads were bound to, and that none was", "[places]") {
  const Outcome bound = run("--gpus 1 --json", three_gpus());
  CHECK(bound.out.find("\"cpus\": [4,5,6,7]") != std::string::npos);
  CHECK(bound.out.find("\"affinity\": \"near\"") != std::string::npos);
  Simulation nowhere;
  nowhere.edit = [](Machine& machine) { machine.devices[0].cpus.clear(); };
  const Outcome unbound = nowhere(words("copy --gpus 0 --size 64KiB --samples 3"));
  CHECK(unbound.code == 0);
  CHECK(unbound.err.find("not pinned") != std::string::npos);
  CHECK(run("--gpus 1 --no-affinity --json", three_gpus()).out.find("\"affinity\": \"none\"") !=
        std::string::npos);
}

TEST_CASE("host memory counts against the host in the guard", "[places]") {
  SimOptions options = three_gpus();
  options.host_memory = 1'000'000;
  Simulation simulation;
  simulation.options = options;
  const Outcome outcome =
      simulation(words("copy --from host --to local --gpus 0 --size 2MB --samples 3"));
  CHECK(outcome.code == 5);
  CHECK((outcome.err + outcome.out).find("not enough memory on the host") != std::string::npos);
}

TEST_CASE("places and directions are axes of a sweep", "[places]") {
  Simulation simulation;
  simulation.options = three_gpus();
  const Outcome outcome = simulation(
      words("sweep --gpus 1 --from 0,host,local --to local --size 1MiB --samples 3 --format csv"));
  CHECK(outcome.code == 0);
  for (const std::string place : {",0,local,", ",host,local,", ",local,local,"})
    CHECK(outcome.out.find(place) != std::string::npos);
}

TEST_CASE("a plan sums what is needed of one memory", "[places]") {
  const Outcome outcome = run("--from host --to local --gpus 0,2 --dry-run", three_gpus());
  CHECK(outcome.code == 0);
  // GPUs 0 and 2 are near node 0.
  CHECK(outcome.out.find("64 KiB on NUMA node 0") != std::string::npos);
}

// SPDX-License-Identifier: MIT
#include "model/matrix.hpp"

#include "command_line.hpp"
#include "machines.hpp"
#include "model/health.hpp"
#include "report/report.hpp"
#include "simulation.hpp"
#include "topology.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <set>

namespace mgpu {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

Request measuring(const std::string& more = "") {
  return request("topo --measure" + (more.empty() ? "" : " " + more));
}

std::vector<Cell> cells_of(const Machine& machine, const std::string& more = "") {
  return matrix_cells(measuring(more), machine);
}

long count(const std::vector<Cell>& cells, CellKind what) {
  return std::ranges::count(cells, what, &Cell::what);
}

std::vector<std::string> commands_of(const std::vector<Cell>& cells, CellKind what) {
  std::vector<std::string> commands;
  for (const Cell& cell : cells)
    if (cell.what == what) commands.push_back(cell.command);
  return commands;
}

double seconds(const Machine& machine, const std::string& more = "") {
  const Request what = measuring(more);
  const auto cells = matrix_cells(what, machine);
  return matrix_estimate_ns(cells, matrix_entries(cells, what, machine)) / 1e9;
}

/// Arguments of a run that is short to simulate.
std::vector<std::string> topo(std::vector<std::string> more = {}) {
  std::vector<std::string> args = {"topo", "--measure", "--size", "1MiB", "--seconds", "0.0005"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

json link_of(const json& document, const json& from, const json& to) {
  for (const json& link : document["links"])
    if (link["from"] == from && link["to"] == to) return link;
  FAIL("no link");
  return {};
}

json measured_of(const json& link, const std::string& what, const json& engine) {
  for (const json& one : link["measured"])
    if (one["what"] == what && one["engine"] == engine) return one;
  FAIL("not measured: " << what);
  return {};
}

/// The first copies of a run are those of its probes: two a pair.
Fault wrong_probe(int pair) {
  Fault fault;
  fault.act = Fault::Act::flip;
  fault.nth = 2 * pair + 1;
  return fault;
}

}  // namespace

TEST_CASE("each ordered pair is read and written by each engine, and joined once for both ways",
          "[matrix]") {
  const auto cells = cells_of(nvswitch(4));
  CHECK(count(cells, CellKind::local) == 4 * 2);
  CHECK(count(cells, CellKind::read) == 12 * 2);
  CHECK(count(cells, CellKind::write) == 12 * 2);
  CHECK(count(cells, CellKind::both) == 6 * 2);
  CHECK(count(cells, CellKind::one_to_all) == 0);
  CHECK(count(cells, CellKind::latency) == 16 + 4 * 2);  // with the host by two NUMA nodes
  CHECK(count(cells_of(nvswitch(4), "--engine memcpy"), CellKind::read) == 12);
  CHECK(count(cells_of(nvswitch(4), "--gpus 3,1"), CellKind::read) == 2 * 2);
}

TEST_CASE("the host is measured by NUMA node where there are several", "[matrix]") {
  const auto two = cells_of(nvswitch(2));
  CHECK(count(two, CellKind::host_to_device) == 2 * 2 * 2);
  CHECK(commands_of(two, CellKind::host_both).back() ==
        "mgpu copy --gpus 1 --from host:1 --bidirectional --size 64MiB --engine memcpy");
  const auto one = cells_of(one_gpu());
  CHECK(commands_of(one, CellKind::device_to_host) ==
        std::vector<std::string>{"mgpu copy --gpus 0 --to host --size 64MiB --engine kernel",
                                 "mgpu copy --gpus 0 --to host --size 64MiB --engine memcpy"});
  CHECK(count(cells_of(cpu_groups(), "--backend host"), CellKind::host_to_device) == 0);
}

TEST_CASE("all adds one device with all others, from three on", "[matrix]") {
  const Request all = request("topo --measure=all --engine kernel");
  CHECK(commands_of(matrix_cells(all, nvswitch(4)), CellKind::one_to_all).at(1) ==
        "mgpu copy --gpus 0,2,3 --from 1 --size 64MiB/gpu --engine kernel");
  CHECK(commands_of(matrix_cells(all, nvswitch(4)), CellKind::all_to_one).at(3) ==
        "mgpu copy --gpus 0,1,2 --to 3 --size 64MiB/gpu --engine kernel");
  CHECK(count(matrix_cells(all, nvswitch(2)), CellKind::one_to_all) == 0);
}

TEST_CASE("the command of a cell is the case that the cell is", "[matrix]") {
  for (const Machine& machine :
       {nvswitch(4), pcie_two_nodes(), one_without_peers(), cpu_groups()}) {
    const Request what = request(machine.backend == BackendKind::host
                                     ? "topo --measure=all --backend host --host-devices 2"
                                     : "topo --measure=all");
    const auto cells = matrix_cells(what, machine);
    const Plan plan = matrix_plan(cells, what, machine);
    auto planned = plan.cases.begin();
    for (const Cell& cell : cells) {
      if (!cell.engine) continue;
      INFO(cell.command);
      const Request alone = request(cell.command.substr(5));
      const Plan same = make_plan(alone, machine);
      CHECK(case_key(same.cases.at(0).what, machine) == case_key(planned->what, machine));
      CHECK(same.cases[0].what.gpus == planned->what.gpus);
      CHECK(same.cases[0].skip.has_value() == planned->skip.has_value());
      ++planned;
    }
    CHECK(planned == plan.cases.end());
  }
}

TEST_CASE("without access the kernel's cells are left out, and memcpy is staged", "[matrix]") {
  const auto cells = cells_of(one_without_peers());
  int left_out = 0;
  for (const Cell& cell : cells) {
    const bool stranger = cell.from == 2 || cell.to == 2;
    const bool pair = cell.from != cell.to && cell.from != host_end && cell.to != host_end;
    INFO(cell.command);
    CHECK(!cell.reason.empty() == (pair && stranger && cell.engine != Engine::memcpy));
    CHECK((cell.spec.peer == Peer::off) == (pair && stranger && cell.engine.has_value()));
    left_out += !cell.reason.empty();
  }
  CHECK(left_out == 4 * 2 + 2 + 4);  // read and write, both, latency
}

TEST_CASE("a pair whose probe failed is as one without access", "[matrix]") {
  Machine machine = nvswitch(2);
  for (Link& link : machine.links)
    if (link.from == 1 && link.to == 0) link.proved = false;
  for (const Cell& cell : cells_of(machine, "--engine kernel")) {
    const bool refuted = cell.from == 1 && cell.to == 0;
    CHECK(!cell.reason.empty() == (refuted || cell.what == CellKind::both));
  }
}

TEST_CASE("eight GPUs take less than 90 seconds", "[matrix]") {
  CHECK(seconds(nvswitch(8)) < 90);
  CHECK(seconds(nvswitch(8)) > 30);
  CHECK(seconds(one_gpu()) < 5);
  CHECK(seconds(nvswitch(8), "--engine kernel") < seconds(nvswitch(8)) - 10);
}

TEST_CASE("what is far below its like is told, and marked in the matrix", "[matrix]") {
  Machine machine = nvswitch(4);
  for (Link& link : machine.links) {
    if (link.from == host_end || link.to == host_end) continue;
    const bool slow = link.from == 2 && link.to == 0;
    link.measured = {{"read", "kernel", slow ? 300e9 : 400e9, {}, {}, "", {}, ""},
                     {"latency", "", {}, slow ? 1'200.0 : 800.0, {}, "", {}, ""}};
  }
  CHECK(health_of(machine) ==
        std::vector<std::string>{"GPU 2 -> GPU 0: latency takes 1200 ns, 67% of the best of its "
                                 "like (2 of 2 figures are below 80%)"});
  Report report;
  report.kind = ReportKind::topology;
  report.machine = machine;
  const std::string text = render(Format::text, report);
  CHECK_THAT(text, ContainsSubstring("   2  300*"));
  CHECK_THAT(text, ContainsSubstring(" * under 80% of the best of its like\n"));
  SECTION("links of another kind are no like") {
    for (Link& link : machine.links)
      if (link.from == 2 && link.to == 0) link.kind = LinkKind::sys;
    CHECK(health_of(machine).empty());
  }
}

TEST_CASE("rates are those of the devices' time, each with its peak and its command", "[matrix]") {
  const Outcome outcome = Simulation{}(topo({"--json"}));
  REQUIRE(outcome.code == 0);
  const json document = json::parse(outcome.out);
  CHECK(document["kind"] == "topology");
  CHECK(document["complete"] == true);
  // The mark is there one launch before the copy.
  const auto rate = [](double bytes_per_us) {
    return 1048576.0 / (std::ceil(1048576.0 * 1000 / bytes_per_us) + 4'000) * 1e9;
  };
  const json pair = link_of(document, 0, 1);
  CHECK(pair["proved"] == "yes");
  for (const char* what : {"read", "write"})
    for (const char* engine : {"kernel", "memcpy"})
      CHECK(measured_of(pair, what, engine)["copied_bytes_per_s"].get<double>() ==
            Approx(rate(400'000)).epsilon(1e-9));
  CHECK(measured_of(pair, "read", "kernel")["peak_bytes_per_s"] == 450e9);
  CHECK(measured_of(pair, "read", "kernel")["command"] ==
        "mgpu copy --gpus 0 --from 1 --size 1MiB --engine kernel");
  CHECK(measured_of(pair, "both", "kernel") ==
        measured_of(link_of(document, 1, 0), "both", "kernel"));
  CHECK(measured_of(pair, "both", "memcpy")["peak_bytes_per_s"] == 900e9);
  CHECK(measured_of(pair, "latency", nullptr)["latency_ns"] == 800);
  CHECK(measured_of(link_of(document, 1, 1), "latency", nullptr)["latency_ns"] == 300);
  CHECK(
      measured_of(link_of(document, 1, 1), "local", "kernel")["copied_bytes_per_s"].get<double>() ==
      Approx(rate(2'000'000)).epsilon(1e-9));
  CHECK(measured_of(link_of(document, 1, nullptr), "latency", nullptr)["latency_ns"] == 1'200);
  CHECK(measured_of(link_of(document, nullptr, 1), "host_to_device", "memcpy")["copied_bytes_per_s"]
            .get<double>() == Approx(rate(50'000)).epsilon(1e-9));
  CHECK(document["health"].empty());
  CHECK(Simulation{}(topo()).out == Simulation{}(topo()).out);
}

TEST_CASE("each pair is named before its probe, whatever stderr is", "[matrix]") {
  const Outcome outcome = Simulation{}(topo());
  CHECK_THAT(outcome.err, ContainsSubstring("mgpu: probing GPU 0 -> GPU 1\n"));
  CHECK_THAT(outcome.err, ContainsSubstring("mgpu: probing GPU 1 -> GPU 0\n"));
  CHECK(Simulation{}(topo({"--quiet"})).err.empty());
  CHECK(Simulation{}({"topo"}).err.empty());
}

TEST_CASE("a probe that fails ends with 6, once all else was measured", "[matrix]") {
  Simulation simulation;
  simulation.options.gpus = 3;
  simulation.faults = {wrong_probe(1)};  // 0 -> 2
  const Outcome outcome = simulation(topo({"--json"}));
  CHECK(outcome.code == 6);
  const json document = json::parse(outcome.out);
  CHECK(document["error"]["kind"] == "verification");
  CHECK_THAT(document["error"]["message"].get<std::string>(),
             ContainsSubstring("0 -> 2") && ContainsSubstring("IOMMU and ACS"));
  CHECK(document["complete"] == true);
  const json failed = link_of(document, 0, 2);
  CHECK(failed["proved"] == "no");
  CHECK(measured_of(failed, "read", "kernel")["copied_bytes_per_s"].is_null());
  CHECK(measured_of(failed, "read", "kernel")["reason"] == "the probe of GPU 0 -> GPU 2 failed");
  CHECK(measured_of(failed, "read", "memcpy")["copied_bytes_per_s"] > 0);
  CHECK(measured_of(failed, "latency", nullptr)["latency_ns"].is_null());
  CHECK(link_of(document, 2, 0)["proved"] == "yes");
  CHECK(measured_of(link_of(document, 2, 0), "read", "kernel")["copied_bytes_per_s"] > 0);
  CHECK(measured_of(link_of(document, 2, 1), "latency", nullptr)["latency_ns"] == 800);
  CHECK_THAT(document["health"].dump(), ContainsSubstring("GPU 0 claims access to GPU 2"));
}

TEST_CASE("pairs that claim no access are not probed, and cost no exit code", "[matrix]") {
  Simulation simulation;
  simulation.options.peers = false;
  simulation.edit = [](Machine& machine) {
    for (Link& link : machine.links) link.claimed = {false, false, false, "not supported"};
  };
  const Outcome outcome = simulation(topo({"--json"}));
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("probing") == std::string::npos);
  CHECK_THAT(outcome.err, ContainsSubstring("2 pairs of 2 GPUs without peer access"));
  const json link = link_of(json::parse(outcome.out), 0, 1);
  CHECK(link["proved"].is_null());
  CHECK(measured_of(link, "read", "memcpy")["copied_bytes_per_s"] > 0);
  CHECK(measured_of(link, "write", "kernel")["reason"] ==
        "GPU 0 claims no access to the memory of GPU 1");
}

TEST_CASE("wrong data in a cell ends with 6, and the other cells are there", "[matrix]") {
  Simulation simulation;
  Fault fault;
  fault.act = Fault::Act::zero;
  fault.nth = 4 + 1;  // behind the probes
  fault.times = 3;
  simulation.faults = {fault};
  const Outcome outcome = simulation(topo({"--json"}));
  CHECK(outcome.code == 6);
  const json document = json::parse(outcome.out);
  CHECK_THAT(document["error"]["message"].get<std::string>(),
             ContainsSubstring("local by kernel, GPU 0 -> GPU 0: wrong data"));
  const json local = link_of(document, 0, 0);
  CHECK(measured_of(local, "local", "kernel")["copied_bytes_per_s"].is_null());
  CHECK_THAT(measured_of(local, "local", "kernel")["reason"].get<std::string>(),
             ContainsSubstring("wrong data"));
  CHECK(measured_of(local, "local", "memcpy")["copied_bytes_per_s"] > 0);
}

TEST_CASE("a hang leaves with 7, and what was measured before it is there", "[matrix]") {
  Simulation simulation;
  Fault hang;
  hang.act = Fault::Act::hang;
  SECTION("in a probe") {
    hang.call = Fault::Call::connect;
    hang.nth = 2;
    simulation.faults = {hang};
    const Outcome outcome = simulation(topo({"--json", "--timeout", "0.5"}));
    CHECK(outcome.left_with == 7);
    CHECK_THAT(outcome.err, ContainsSubstring("in probing peer access: GPU 1 -> GPU 0"));
  }
  SECTION("in a copy") {
    hang.call = Fault::Call::sync;
    hang.nth = 400;
    simulation.faults = {hang};
    TemporaryDirectory directory;
    const Outcome outcome = simulation(topo({"--timeout", "0.5", "--format", "csv"}));
    CHECK(outcome.left_with == 7);
    CHECK_THAT(outcome.out, ContainsSubstring(",local,kernel,,"));
  }
}

TEST_CASE("an interrupted run keeps what was finished", "[matrix]") {
  struct Stopping final : Observer {
    std::stop_source source;
    std::size_t cells = 0;
    void progress(const Progress& now) override {
      if (now.cases > 1 && now.current == 3) source.request_stop();
    }
  } observer;
  SimBackend backend;
  Request what = measuring("--size 1MiB --seconds 0.0005");
  Report report;
  report.kind = ReportKind::topology;
  report.machine = backend.machine();
  Watchdog dog(0);
  measure_topology(what, report, backend, observer, dog, observer.source.get_token());
  CHECK_FALSE(report.complete);
  std::size_t rates = 0, latencies = 0;
  for (const Link& link : report.machine.links)
    for (const Measured& one : link.measured) {
      rates += one.copied_rate.has_value();
      latencies += one.latency_ns.has_value();
    }
  CHECK(latencies == 6);
  CHECK(rates == 3);
}

TEST_CASE("a run that is stopped at once proves and measures nothing", "[matrix]") {
  SimBackend backend;
  Report report;
  report.kind = ReportKind::topology;
  report.machine = backend.machine();
  const Machine before = report.machine;
  Observer observer;
  Watchdog dog(0);
  std::stop_source stop;
  stop.request_stop();
  measure_topology(measuring(), report, backend, observer, dog, stop.get_token());
  CHECK_FALSE(report.complete);
  CHECK(report.machine == before);
}

TEST_CASE("a dry run prints the cells and the time, and touches no device", "[matrix]") {
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  const Outcome outcome = simulation(topo({"--dry-run"}));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("mgpu topo: 26 cells of copies planned") &&
                              ContainsSubstring("about") &&
                              ContainsSubstring("   mgpu copy --gpus 0 --from 1 --size 1MiB"));
  for (const std::string& line : log) CHECK(line == "machine");
  const json plan = json::parse(simulation(topo({"--dry-run", "--json"})).out);
  CHECK(plan["kind"] == "plan");
  CHECK(plan["cases"].size() == 26);
  CHECK(plan["estimate_ns"] > 1e9);
  CHECK(plan["cases"][0]["command"] == "mgpu copy --gpus 0 --size 1MiB --engine kernel");
}

TEST_CASE("a plan can be made for a recorded machine", "[matrix]") {
  TemporaryDirectory directory;
  const std::string file = directory.file("m.json");
  Simulation simulation;
  std::ofstream(file) << simulation({"topo", "--json"}).out;
  Simulation elsewhere;  // a login node
  elsewhere.options.gpus = 0;
  const std::vector<std::string> args = {"copy",   "--dry-run", "--gpus", "0,1",
                                         "--from", "1",         "--json"};
  std::vector<std::string> there = args;
  there.insert(there.end(), {"--machine", file});
  const Outcome planned = elsewhere(there);
  CHECK(planned.code == 0);
  CHECK(json::parse(planned.out)["cases"] == json::parse(simulation(args).out)["cases"]);
  CHECK(elsewhere({"sweep", "--machine", file, "--dry-run", "--size", "1MiB,2MiB"}).code == 0);
  CHECK(elsewhere({"topo", "--machine", file, "--measure", "--dry-run"}).code == 0);
  simulation.input = contents(file);
  CHECK(simulation({"copy", "--machine", "-", "--dry-run"}).code == 0);
  CHECK(elsewhere({"copy", "--dry-run", "--machine", file, "--gpus", "5"}).code == 4);

  const Outcome measured = elsewhere({"copy", "--machine", file});
  CHECK(measured.code == 2);
  CHECK_THAT(measured.err, ContainsSubstring("add --dry-run"));
  std::ofstream(directory.file("run.json")) << simulation({"copy", "--json", "--size", "1MiB"}).out;
  const Outcome foreign = elsewhere({"copy", "--dry-run", "--machine", directory.file("run.json")});
  CHECK(foreign.code == 2);
  CHECK_THAT(foreign.err, ContainsSubstring("mgpu topo --json"));
  CHECK(elsewhere({"copy", "--dry-run", "--machine", file, "-o", file}).code == 2);
}

TEST_CASE("recorded fixtures can be planned for", "[matrix]") {
  TemporaryDirectory directory;
  for (const Machine& machine : {one_gpu(), nvswitch(8), nvlink_mesh(), pcie_two_nodes(),
                                 dead_link(), nvml_missing(), one_without_peers(), cpu_groups()}) {
    Report report;
    report.kind = ReportKind::topology;
    report.started = report.ended = "2026-11-30T12:00:00Z";
    report.machine = machine;
    const std::string file = directory.file("topo.json");
    std::ofstream(file) << render(Format::json, report);
    const Outcome outcome =
        Simulation{}({"topo", "--measure=all", "--dry-run", "--machine", file, "--json"});
    CHECK(outcome.code == 0);
    const auto cells = matrix_cells(request("topo --measure=all"), machine);
    CHECK(std::cmp_equal(
        json::parse(outcome.out)["cases"].size(),
        std::ranges::count_if(cells, [](const Cell& c) { return c.engine.has_value(); })));
  }
}

TEST_CASE("the word of --measure is taken only behind =", "[matrix]") {
  CHECK(request("topo --measure").measure == Measure::pairs);
  CHECK(request("topo --measure=all --gpus 0").measure == Measure::all);
  CHECK_FALSE(request("topo").measure);
  CHECK(refusal("topo --measure all"));
  CHECK(refusal("topo --measure=some"));
  CHECK(refusal("topo --measure="));
  CHECK(refusal("topo --measure --measure=all"));
  for (const std::string option : {"--gpus 0", "--size 1MiB", "--engine kernel", "--no-verify",
                                   "--dry-run", "--seconds 1", "--machine a.json"})
    CHECK(holds(refusal("topo " + option).value_or(""), "--measure"));
  CHECK(request("topo --measure").sampling.seconds == 0.1);
  CHECK(request("copy").sampling.seconds == 5);
}

TEST_CASE("a topology is drawn by Graphviz, and only a topology", "[matrix]") {
  CHECK(request("topo -o a.dot").outputs.at(0).format == Format::dot);
  CHECK(request("topo -o a.svg").outputs.at(0).format == Format::svg);
  CHECK(request("show a.json -o b.dot").outputs.at(0).format == Format::dot);
  CHECK(refusal("copy -o a.dot"));
  CHECK(refusal("topo -o a.gp"));
  if (std::system("dot -V > /dev/null 2>&1") != 0) SKIP("no Graphviz here");
  TemporaryDirectory directory;
  const std::string dot = directory.file("a.dot"), svg = directory.file("a.svg"),
                    saved = directory.file("a.json"), again = directory.file("b.svg");
  CHECK(Simulation{}(topo({"-o", dot, "-o", svg, "-o", saved})).code == 0);
  CHECK_THAT(contents(dot), ContainsSubstring("graph topology {") && ContainsSubstring("latency"));
  CHECK_THAT(contents(svg), ContainsSubstring("<svg") && ContainsSubstring("18 NVLinks"));
  CHECK(Simulation{}({"show", saved, "-o", again}).code == 0);
  CHECK(contents(again) == contents(svg));
}

TEST_CASE("without Graphviz a picture of a topology fails before anything runs", "[matrix]") {
  const char* path = std::getenv("PATH");
  const std::string saved = path ? path : "";
  TemporaryDirectory directory;
  setenv("PATH", directory.path.c_str(), 1);
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  const Outcome outcome = simulation({"topo", "-o", directory.file("a.svg")});
  setenv("PATH", saved.c_str(), 1);
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, ContainsSubstring("package graphviz"));
  CHECK(log.empty());
}

TEST_CASE("topo tells the state of each device and makes no context", "[matrix]") {
  struct Telling final : SimBackend {
    std::optional<Telemetry> telemetry(int device) override {
      Telemetry state;
      state.temperature_c = 30 + device;
      return state;
    }
  } backend;
  Machine machine = backend.machine();
  Watchdog dog(0);
  describe_states(machine, backend, dog);
  CHECK(machine.devices[1].state->temperature_c == 31);
  CHECK(backend.opened().empty());
}

}  // namespace mgpu

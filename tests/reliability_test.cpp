// SPDX-License-Identifier: MIT
// Faults of each class at each step, told as docs/reliability.md says. The same command lines run
// on simulated devices, which one thread drives, and on CPUs, which have threads.
#include "backend/host_facts.hpp"
#include "backend/nvml.hpp"
#include "fake_nvml.hpp"
#include "memory_guard.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

using Call = Fault::Call;
using Act = Fault::Act;
using Args = std::vector<std::string>;

Args copy(const Args& more = {}) {
  Args args = {"copy", "--size", "1MiB", "--samples", "20"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// One command line on what `make` gives, with faults.
Outcome run_on(std::unique_ptr<Backend> inner, const std::vector<Fault>& faults, const Args& args) {
  Outcome outcome;
  FaultyBackend* backend = nullptr;
  Console console;
  console.out = [&](std::string_view bytes) {
    outcome.out += bytes;
    return 0;
  };
  console.err = [&](std::string_view bytes) { outcome.err += bytes; };
  console.leave = [&](int code) {
    outcome.left_with = code;
    backend->release();
  };
  const auto make = [&](std::optional<int>) {
    auto faulty = std::make_unique<FaultyBackend>(std::move(inner), faults);
    backend = faulty.get();
    return faulty;
  };
  const BackendRow rows[] = {{BackendKind::cuda, true, make}};
  outcome.code = run_app(args, console, rows);
  return outcome;
}

Fault fault_at(Call call, ErrorKind kind = ErrorKind::runtime) {
  Fault fault;
  fault.call = call;
  fault.kind = kind;
  return fault;
}

std::string text_of(const json& document, const char* key) {
  return document["cases"][0][key].get<std::string>();
}

}  // namespace

TEST_CASE("every call that fails ends the run with the exit code of its kind and a whole document",
          "[reliability]") {
  struct Place {
    Call call;
    bool of_a_device = true;
  };
  const Place places[] = {
      {Call::open, false}, {Call::free_memory}, {Call::allocate}, {Call::open_worker}, {Call::fill},
      {Call::check},       {Call::begin},       {Call::advise},   {Call::prefetch},    {Call::copy},
      {Call::mark},        {Call::wait_for},    {Call::sync},     {Call::anchor},      {Call::at}};
  const bool threaded = GENERATE(false, true);
  for (const Place& place : places)
    for (const ErrorKind kind : {ErrorKind::runtime, ErrorKind::memory, ErrorKind::unavailable}) {
      if (threaded && place.call == Call::advise) continue;  // CPUs take none
      Fault fault = fault_at(place.call, kind);
      if (place.of_a_device && place.call != Call::free_memory && place.call != Call::allocate)
        fault.device = 1;
      if (place.call == Call::free_memory)
        fault.times = 2;  // it is asked again without what is kept
      Args args = copy({"--unified", "--home", "1", "--gpus", "0,1", "--prefetch", "slice",
                        "--owner-wait", "event", "--split", "4", "--json", "--quiet"});
      if (place.call == Call::advise) args.insert(args.end(), {"--advise", "preferred"});
      const Outcome outcome =
          run_on(threaded ? make_host_backend(2) : std::make_unique<SimBackend>(), {fault}, args);
      INFO("call " << static_cast<int>(place.call) << ", " << name(kind) << ", threads "
                   << threaded);
      // Marks are free on CPUs, where an anchor has nothing to do.
      CHECK(outcome.code == exit_code(kind));
      const json document = json::parse(outcome.out);
      CHECK(document["exit_code"] == exit_code(kind));
      CHECK(document["error"]["kind"] == std::string(name(kind)));
      if (fault.device) CHECK(document["error"]["device"] == 1);
      CHECK(document["cases"][0]["outcome"] == "failed");
      CHECK_THAT(text_of(document, "reason"), ContainsSubstring("injected fault"));
      CHECK_THAT(outcome.err, ContainsSubstring("mgpu: error: injected fault"));
    }
}

TEST_CASE("a driver that cannot start ends with 3 and shows the host all the same",
          "[reliability]") {
  const Outcome outcome = run_on(std::make_unique<SimBackend>(),
                                 {fault_at(Call::machine, ErrorKind::no_gpu)}, copy({"--json"}));
  CHECK(outcome.code == 3);
  const json document = json::parse(outcome.out);
  CHECK(document["error"]["kind"] == "no_gpu");
  CHECK(document["cases"].empty());
  CHECK_FALSE(document["host"]["name"].get<std::string>().empty());
}

TEST_CASE(
    "a device lost in one of two workers is named, with its UUID, and nothing is lost or hangs",
    "[reliability]") {
  const bool threaded = GENERATE(false, true);
  const auto call = GENERATE(Call::copy, Call::sync, Call::wait_for);
  const Args args = copy(
      {"--unified", "--home", "0", "--gpus", "0,1", "--owner-wait", "host", "--json", "--quiet"});
  Fault lost = fault_at(call);
  lost.device = 1;
  lost.nth = 12;
  lost.lost = true;
  const Outcome outcome =
      run_on(threaded ? make_host_backend(2) : std::make_unique<SimBackend>(), {lost}, args);
  CHECK(outcome.code == 1);
  const json document = json::parse(outcome.out);
  CHECK(document["error"]["device"] == 1);
  CHECK(document["cases"][0]["samples"] > 0);
  CHECK(document["cases"][0]["samples"] < 20);
  if (!threaded)
    CHECK_THAT(outcome.err, ContainsSubstring("; device 1 is " +
                                              document["devices"][1]["uuid"].get<std::string>()));
}

TEST_CASE("a lost device keeps the cases before it, and those behind it are not run",
          "[reliability]") {
  Fault lost = fault_at(Call::sync);
  lost.device = 1;
  lost.nth = 100;
  lost.lost = true;
  const Outcome outcome =
      run_on(make_host_backend(2), {lost},
             {"sweep", "--size", "64KiB..1MiB", "--samples", "20", "--json", "--quiet"});
  CHECK(outcome.code == 1);
  const json cases = json::parse(outcome.out)["cases"];
  REQUIRE(cases.size() == 5);
  CHECK(cases[0]["outcome"] == "measured");
  CHECK(cases[0]["verified"] == true);
  CHECK(cases[4]["outcome"] == "skipped");
  CHECK(cases[4]["reason"] == "not run");
}

TEST_CASE("memory that another process took in between ends with 5: need, have and who",
          "[reliability]") {
  struct Shared : SimBackend {
    using SimBackend::SimBackend;
    std::vector<MemoryHolder> memory_holders(int device) override {
      if (device == 0) return {};
      return {{1234, Bytes{43'050'000'000}}, {99, std::nullopt}};
    }
  };
  SECTION("before the guard looked") {
    const Outcome outcome = run_on(std::make_unique<Shared>(), {},
                                   {"copy", "--size", "500TiB/gpu", "--gpus", "1", "--json"});
    CHECK(outcome.code == 5);
    CHECK_THAT(outcome.err, ContainsSubstring("not enough memory on GPU 1: need ") &&
                                ContainsSubstring(", have ") &&
                                ContainsSubstring("; other processes hold: 1234 (40.1 GiB), 99\n"));
    CHECK(json::parse(outcome.out)["error"]["kind"] == "memory");
  }
  SECTION("after it") {
    Fault refused = fault_at(Call::allocate, ErrorKind::memory);
    refused.device = 1;
    const Outcome outcome = run_on(std::make_unique<Shared>(), {refused}, copy({"--gpus", "0,1"}));
    CHECK(outcome.code == 5);
    CHECK_THAT(outcome.err, ContainsSubstring("; other processes hold: 1234 (40.1 GiB), 99\n"));
  }
  SECTION("where nobody else is known") {
    const Outcome outcome =
        run_on(std::make_unique<Shared>(), {}, {"copy", "--size", "500TiB/gpu", "--gpus", "0"});
    CHECK(outcome.code == 5);
    CHECK_THAT(outcome.err, !ContainsSubstring("other processes"));
  }
}

TEST_CASE("a cgroup's limit is what the host has, and sizes are told in GiB", "[reliability]") {
  Machine machine = SimBackend().machine();
  Request request;
  CaseSpec spec;
  spec.gpus = parse_gpus("0", "--gpus");
  spec.size = parse_size("8GiB", "--size");
  spec.from = parse_place("host", "--from");
  request.cases = {spec};
  const Case what = make_plan(request, machine).cases[0].what;
  const CgroupMemory cgroup{"4294967296\n", "1073741824\n", ""};
  const auto free = [&](const Site& site) {
    return site.on_host() ? available_memory("MemAvailable: 67108864 kB\n", {&cgroup, 1})
                          : Bytes{1} << 40;
  };
  try {
    check_memory(what, machine, free, true);
    FAIL("there are 3 GiB");
  } catch (const Error& error) {
    CHECK(error.kind == ErrorKind::memory);
    CHECK_THAT(error.what(),
               ContainsSubstring("need 8.00 GiB, have 2.70 GiB (90% of what is free)"));
  }
}

TEST_CASE("what a need or what is free adds up to never wraps", "[reliability]") {
  const Machine machine = SimBackend().machine();
  Request request;
  CaseSpec spec;
  spec.gpus = parse_gpus("0,1", "--gpus");
  spec.size = Size{~Bytes{0} - 4096, false};
  spec.from = spec.to = parse_place("1", "--home");
  request.cases = {spec};
  const Case what = make_plan(request, machine).cases[0].what;
  const auto everything = [](const Site&) { return ~Bytes{0}; };
  CHECK_THROWS_AS(check_memory(what, machine, everything, false), Error);
  CHECK_THROWS_AS(check_memory(what, machine, everything, true), Error);
}

TEST_CASE("peer access that is refused is a note and a staged copy, and an error where it must be",
          "[reliability]") {
  const Args peers = {"--from", "0", "--to", "1", "--engine", "memcpy", "--json"};
  Fault refused = fault_at(Call::connect, ErrorKind::unavailable);
  refused.times = 100;
  const Outcome staged = run_on(std::make_unique<SimBackend>(), {refused}, copy(peers));
  CHECK(staged.code == 0);
  CHECK_THAT(staged.err, ContainsSubstring("mgpu: note: injected fault"));
  const json result = json::parse(staged.out)["cases"][0];
  CHECK(result["marks"].dump().find("\"staged\"") != std::string::npos);
  CHECK(result["verified"] == true);
  Args on = copy(peers);
  on.insert(on.end(), {"--peer", "on"});
  CHECK(run_on(std::make_unique<SimBackend>(), {refused}, on).code == 4);
  Args kernel = copy({"--from", "0", "--to", "1", "--gpus", "1"});
  const Outcome without = run_on(std::make_unique<SimBackend>(), {refused}, kernel);
  CHECK(without.code == 4);
  CHECK_THAT(without.err, ContainsSubstring("--engine memcpy"));
}

TEST_CASE("wrong data of three kinds is told apart in text and JSON", "[reliability]") {
  struct Kind {
    Act act;
    int nth;
    Args more;
    const char* word;
  };
  const Kind kinds[] = {{Act::skip, 2 + 20 + 20 + 1, {}, "never_written"},
                        {Act::zero, 2 + 20 + 20 + 1, {}, "zeroed"},
                        {Act::skip, 5, {"--verify", "every"}, "stale"},
                        {Act::flip, 2 + 20 + 20 + 1, {}, "corrupt"}};
  for (const Kind& kind : kinds) {
    Simulation simulation;
    Fault fault;
    fault.act = kind.act;
    fault.nth = kind.nth;
    fault.device = 0;
    simulation.faults = {fault};
    Args args = copy({"--gpus", "0"});
    args.insert(args.end(), kind.more.begin(), kind.more.end());
    INFO(kind.word);
    const Outcome text = simulation(args);
    CHECK(text.code == 6);
    std::string label = kind.word;
    std::ranges::replace(label, '_', '-');
    CHECK_THAT(text.out + text.err, ContainsSubstring("(" + label + ")"));
    args.emplace_back("--json");
    const json mismatch = json::parse(simulation(args).out)["cases"][0]["verification"]["mismatch"];
    CHECK(mismatch["kind"] == kind.word);
    CHECK(mismatch["offset"] == 0);
    // Some bytes are right by chance.
    if (kind.act == Act::flip)
      CHECK(mismatch["count"] == 1);
    else
      CHECK(mismatch["count"] > 1'000'000);
  }
}

TEST_CASE("sizes that are no multiple of anything are copied whole by one, two and three devices",
          "[reliability]") {
  for (const char* gpus : {"0", "0,1", "0,1,2"})
    for (const char* size : {"1", "3", "255", "257", "1000007"})
      for (const char* access : {"4", "8", "16"}) {
        Simulation simulation;
        simulation.options.gpus = 3;
        const Outcome outcome = simulation({"copy", "--gpus", gpus, "--size", size, "--access",
                                            access, "--samples", "2", "--json"});
        INFO(gpus << " " << size);
        CHECK(outcome.code == 0);
        const json result = json::parse(outcome.out)["cases"][0];
        CHECK(result["bytes_copied"] == std::stoll(size));
        CHECK(result["verification"]["bytes"] == std::stoll(size));
        CHECK(result["verified"] == true);
      }
}

TEST_CASE("an array beyond 32 bits is planned, copied and counted to its last byte",
          "[reliability]") {
  Simulation simulation;
  simulation.options.data = false;
  for (const char* size : {"4294967297", "4294967296"}) {
    const Outcome outcome =
        simulation({"copy", "--size", size, "--samples", "2", "--split", "3", "--json"});
    CHECK(outcome.code == 0);
    const json result = json::parse(outcome.out)["cases"][0];
    CHECK(result["bytes_copied"] == std::stoll(size));
    CHECK(result["bytes_moved"] == 2 * std::stoll(size));
    CHECK(result["verification"]["bytes"] == std::stoll(size));
  }
  const Outcome overflow = simulation({"copy", "--size", "18446744073709551616"});
  CHECK(overflow.code == 2);
  CHECK(overflow.out.empty());
}

TEST_CASE("managed memory that a driver refuses is unavailable, whatever it claimed",
          "[reliability]") {
  Fault refused = fault_at(Call::allocate, ErrorKind::unavailable);
  const Outcome outcome =
      run_on(std::make_unique<SimBackend>(), {refused}, copy({"--unified", "--json"}));
  CHECK(outcome.code == 4);
  CHECK(json::parse(outcome.out)["cases"][0]["case"]["memory"] == "managed");  // no fallback
}

TEST_CASE("advice and prefetch are never given where a GPU lacks concurrent managed access",
          "[reliability]") {
  std::vector<std::string> log;
  Simulation simulation;
  simulation.options.concurrent_managed = {true, false};
  simulation.options.log = &log;
  const Outcome dropped = simulation(copy({"--unified", "--json"}));
  CHECK(dropped.code == 0);
  CHECK_THAT(dropped.out, ContainsSubstring("prefetch-unsupported"));
  for (const std::string& line : log) {
    CHECK_FALSE(line.starts_with("prefetch"));
    CHECK_FALSE(line.starts_with("advise"));
  }
  for (const Args& asked :
       {Args{"--prefetch", "slice"}, {"--advise", "preferred"}, {"--oversubscribe"}}) {
    Args args = copy({"--unified"});
    args.insert(args.end(), asked.begin(), asked.end());
    const Outcome refused = simulation(args);
    INFO(asked[0]);
    CHECK(refused.code == 4);
    CHECK_THAT(refused.err, ContainsSubstring("GPU 1 has concurrentManagedAccess=0"));
  }
}

TEST_CASE("NVML's rows are matched by UUID, whatever its order, and what it lacks is absent",
          "[reliability]") {
  const NvmlLibrary library(MGPU_FAKE_NVML);
  FakeNvml& fake = *library.find<FakeNvml*()>("fake_nvml")();
  fake = {};
  fake.gpus = {
      {"GPU-b", 1200}, {"GPU-none", 1300}, {"GPU-a", 1100}, {"GPU-quiet", 0}, {"MIG-m", 0, true}};
  const Nvml nvml(MGPU_FAKE_NVML);
  REQUIRE(nvml.state() == "available");
  CHECK(nvml.telemetry("GPU-a")->sm_mhz == 1100);
  CHECK(nvml.telemetry("GPU-b")->sm_mhz == 1200);
  CHECK_FALSE(nvml.telemetry("GPU-c"));
  const auto quiet = nvml.telemetry("GPU-quiet");
  REQUIRE(quiet);
  CHECK_FALSE(quiet->sm_mhz);
  CHECK_FALSE(quiet->power_w);
  CHECK(nvml.identify("m").mig);
  CHECK_FALSE(nvml.identify("a").mig);
}

TEST_CASE("processes that hold a GPU's memory are told once each, the largest first, but for us",
          "[reliability]") {
  const NvmlLibrary library(MGPU_FAKE_NVML);
  FakeNvml& fake = *library.find<FakeNvml*()>("fake_nvml")();
  fake = {};
  const auto self = static_cast<unsigned>(getpid());
  // No process has these numbers: they are above the kernel's largest.
  constexpr unsigned first = 1U << 30;
  fake.gpus = {
      {"GPU-a",
       0,
       false,
       {{first, 10, 1, 0}, {self, 99}, {first + 1, ~0ULL}, {first + 2, 30}, {first, 5, 2, 0}}}};
  for (unsigned i = 3; i < 50; ++i) fake.gpus[0].processes.push_back({first + i, 1});
  const Nvml nvml(MGPU_FAKE_NVML);
  const auto holders = nvml.memory_holders("GPU-a");
  REQUIRE(holders.size() == 50);
  CHECK(holders[0].pid == first + 2);
  CHECK(holders[0].bytes == 30);
  CHECK(holders[1].pid == first);
  CHECK(holders[1].bytes == 15);
  CHECK(holders.back().pid == first + 1);
  CHECK_FALSE(holders.back().bytes);
  CHECK(nvml.memory_holders("GPU-b").empty());
  CHECK(Nvml("libmgpu-has-no-such-library.so.1").memory_holders("GPU-a").empty());
}

TEST_CASE("NVML that refuses to start is unavailable, with its own words", "[reliability]") {
  const NvmlLibrary library(MGPU_FAKE_NVML);
  FakeNvml& fake = *library.find<FakeNvml*()>("fake_nvml")();
  fake = {};
  fake.init = 18;
  CHECK(Nvml(MGPU_FAKE_NVML).state() == "unavailable: Driver/library version mismatch");
  fake.init = 999;
  const Nvml unknown(MGPU_FAKE_NVML);
  CHECK(unknown.state() == "unavailable: Unknown Error");
  CHECK_FALSE(unknown.telemetry("GPU-a"));
  fake = {};
}

TEST_CASE("without NVML a copy and the topology are as they are, and exit 0", "[reliability]") {
  Simulation simulation;
  simulation.edit = [](Machine& machine) {
    machine.driver.nvml = "unavailable: libnvidia-ml.so.1: cannot open shared object file";
    machine.links.clear();
  };
  CHECK(simulation(copy()).code == 0);
  const Outcome topo = simulation({"topo"});
  CHECK(topo.code == 0);
  CHECK_THAT(topo.out + topo.err, ContainsSubstring("NVML unavailable"));
}

TEST_CASE("another program's text is no result, and nothing is printed for it", "[reliability]") {
  Simulation simulation;
  for (const char* text : {"Failed to run topology matrix\n", "\tGPU0\tGPU1\nGPU0\t X \tNV18\n",
                           "{}", "null", "\xff\xfe", "[1,2", "\x1b[4mGPU0\x1b[0m"}) {
    simulation.input = text;
    const Outcome outcome = simulation({"show", "-"});
    INFO(text);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a NUMA node that is not known is null, not node 0", "[reliability]") {
  Simulation simulation;
  simulation.edit = [](Machine& machine) { machine.devices[0].numa.reset(); };
  const json document = json::parse(simulation({"topo", "--json"}).out);
  CHECK(document["devices"][0]["numa"].is_null());
  CHECK(document["devices"][1]["numa"] == 0);
}

TEST_CASE("what CUDA 13 took away is not used, and what it changed is in one file",
          "[reliability]") {
  // The members of cudaDeviceProp that are gone, and the calls whose arguments differ.
  const std::regex gone(
      R"(\.(clockRate|memoryClockRate|kernelExecTimeoutEnabled|computeMode|singleToDoublePrecisionPerfRatio|cooperativeMultiDeviceLaunch|maxTexture1DLinear)\b)"),
      changed(R"(\bcuda(MemPrefetchAsync|MemAdvise)\w*\s*\()");
  std::set<std::string> calling;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(MGPU_SOURCE_DIR) + "/src/backend")) {
    const std::string text = contents(entry.path().string());
    INFO(entry.path().string());
    CHECK_FALSE(std::regex_search(text, gone));
    if (std::regex_search(text, changed)) calling.insert(entry.path().filename().string());
  }
  CHECK(calling.size() == 1);
}

TEST_CASE("each fault of docs/reliability.md has a test that exists", "[reliability]") {
  const std::string root = MGPU_SOURCE_DIR;
  std::set<std::string> tests;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/tests")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = contents(entry.path().string());
    for (std::size_t at = 0; (at = text.find("TEST_CASE(", at)) != text.npos;) {
      at += std::string("TEST_CASE(").size();
      std::string test;  // one literal, or several that follow each other
      while ((at = text.find_first_not_of(" \n", at)) != text.npos && text[at] == '"') {
        const std::size_t end = text.find('"', at + 1);
        test += text.substr(at + 1, end - at - 1);
        at = end + 1;
      }
      tests.insert(test);
    }
  }
  std::ifstream file(root + "/docs/reliability.md");
  int rows = 0;
  std::size_t counted = 0;
  for (std::string line; std::getline(file, line);) {
    if (std::smatch match; std::regex_search(line, match, std::regex(R"((\d+) kinds of fault)")))
      counted = std::stoul(match[1]);
    if (!line.starts_with("| ") || line == "| fault | what the user sees | test |") continue;
    REQUIRE(line.ends_with(" |"));
    const std::size_t begin = line.rfind(" | ") + 3;
    const std::string test = line.substr(begin, line.size() - begin - 2);
    ++rows;
    INFO(test);
    CHECK(tests.contains(test));
  }
  CHECK(rows > 60);
  CHECK(counted == static_cast<std::size_t>(rows));
}

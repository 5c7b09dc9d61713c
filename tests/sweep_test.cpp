// SPDX-License-Identifier: MIT
#include "model/sweep.hpp"

#include "model/plan.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

Axis sizes(std::initializer_list<Bytes> bytes) {
  Axis axis;
  for (const Bytes size : bytes)
    axis.emplace_back([size](CaseSpec& spec) { spec.size = Size{size, false}; });
  return axis;
}

Axis engines() {
  return {[](CaseSpec& spec) { spec.engine = Engine::kernel; },
          [](CaseSpec& spec) { spec.engine = Engine::memcpy; }};
}

std::vector<std::string> sweep(std::vector<std::string> more) {
  std::vector<std::string> args = {"sweep", "--samples", "20"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::vector<json> lines_of(const std::string& path) {
  std::vector<json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

std::multiset<std::string> keys_of(const std::vector<json>& lines) {
  std::multiset<std::string> keys;
  for (const json& line : lines) keys.insert(line["cases"][0]["key"].get<std::string>());
  return keys;
}

}  // namespace

TEST_CASE("the first axis is the outermost, the last the innermost") {
  const auto cases = product({CaseSpec{}}, {engines(), sizes({1, 2, 3})});
  REQUIRE(cases.size() == 6);
  CHECK(cases[0].engine == Engine::kernel);
  CHECK(cases[2].engine == Engine::kernel);
  CHECK(cases[3].engine == Engine::memcpy);
  CHECK(cases[0].size->bytes == 1);
  CHECK(cases[5].size->bytes == 3);
}

TEST_CASE("a value listed twice counts once") {
  CHECK(product({CaseSpec{}}, {sizes({1, 2, 1, 2})}).size() == 2);
}

TEST_CASE("the issue's table has six scenarios by three policies, the sixth on all GPUs") {
  const Machine machine = SimBackend().machine();
  const auto cases = preset_cases(Preset::issue_2615, machine);
  REQUIRE(cases.size() == 18);
  Request request;
  request.command = Command::sweep;
  request.preset = Preset::issue_2615;
  const Plan plan = make_plan(request, machine);
  for (const PlannedCase& planned : plan.cases) {
    CHECK_FALSE(planned.skip);
    CHECK(planned.what.size == 4'000'000'000);
    CHECK(planned.what.access == 4);
    CHECK(planned.what.threads == Threads::task);
    CHECK(planned.what.to == Place{Place::Kind::device, 0});
  }
  CHECK(plan.cases.back().what.gpus == std::vector{0, 1});
  CHECK(plan.cases.back().what.owner_wait == OwnerWait::none);
  CHECK(plan.cases[15].what.prefetch == Prefetch::array);
  CHECK(plan.cases[15].what.prefetch_repeats == 2);
}

TEST_CASE("with one GPU the rows of a preset that need a second one are skipped with the reason") {
  SimOptions one;
  one.gpus = 1;
  Request request;
  request.command = Command::sweep;
  request.preset = Preset::issue_2615;
  int skipped = 0;
  for (const PlannedCase& planned : make_plan(request, SimBackend(one).machine()).cases)
    if (planned.skip) {
      ++skipped;
      CHECK(planned.skip->kind == ErrorKind::unavailable);
      CHECK(planned.skip->reason.find("GPU 1") != std::string::npos);
    }
  CHECK(skipped == 6);
}

TEST_CASE("scaling takes one to all GPUs, weak and strong") {
  SimOptions four;
  four.gpus = 4;
  const auto cases = preset_cases(Preset::scaling, SimBackend(four).machine());
  REQUIRE(cases.size() == 8);
  CHECK(cases[3].gpus.size() == 4);
  CHECK(cases[3].size->per_gpu);
  CHECK_FALSE(cases[7].size->per_gpu);
}

TEST_CASE("explicit options win over a preset's") {
  const auto cases = product(preset_cases(Preset::issue_2615, SimBackend().machine()),
                             {Axis{[](CaseSpec& spec) { spec.access = 16; }}, sizes({1000})});
  REQUIRE(cases.size() == 18);
  for (const CaseSpec& spec : cases) {
    CHECK(spec.access == 16);
    CHECK(spec.size->bytes == 1000);
  }
}

TEST_CASE("a sweep measures every combination and appends a line for each") {
  TemporaryDirectory directory;
  const Outcome outcome =
      Simulation{}(sweep({"--size", "1MiB..4MiB", "--engine", "kernel,memcpy", "-o",
                          directory.file("run.jsonl"), "-o", directory.file("run.csv"), "--json"}));
  CHECK(outcome.code == 0);
  const json document = json::parse(outcome.out);
  REQUIRE(document["cases"].size() == 6);
  CHECK(document["cases"][0]["case"]["engine"] == "kernel");
  CHECK(document["cases"][0]["case"]["size_bytes"] == 1 << 20);
  CHECK(document["cases"][5]["case"]["engine"] == "memcpy");
  CHECK(document["cases"][5]["case"]["size_bytes"] == 4 << 20);
  CHECK(lines_of(directory.file("run.jsonl")).size() == 6);
  const std::string csv = contents(directory.file("run.csv"));
  CHECK(std::ranges::count(csv, '\n') == 1 + 6 * 3);
}

TEST_CASE("combinations that cannot run are rows with the reason, and count nothing") {
  const Outcome outcome = Simulation{}(sweep(
      {"--size", "4MiB", "--memory", "device,managed", "--prefetch", "none,slice", "--json"}));
  CHECK(outcome.code == 0);
  const json document = json::parse(outcome.out);
  REQUIRE(document["cases"].size() == 4);
  CHECK(document["cases"][1]["outcome"] == "skipped");
  CHECK_THAT(document["cases"][1]["reason"].get<std::string>(),
             ContainsSubstring("--prefetch slice"));
}

TEST_CASE("a sweep of nothing but impossible rows ends as copy would") {
  const Outcome usage = Simulation{}(sweep({"--size", "4MiB", "--prefetch", "slice,array"}));
  CHECK(usage.code == 2);
  CHECK(usage.out.empty());
  CHECK(Simulation{}(sweep({"--size", "4MiB", "--gpus", "8", "--gpus", "9"})).code == 4);
}

TEST_CASE("one failing case is a FAIL row, all others complete, and the exit code is 6") {
  Simulation simulation;
  Fault flip;
  flip.act = Fault::Act::flip;
  flip.device = 0;
  flip.nth = 2;
  simulation.faults = {flip};
  const auto args = sweep({"--size", "1MiB..8MiB"});
  const Outcome outcome = simulation(args);
  CHECK(outcome.code == 6);
  CHECK_THAT(outcome.out, ContainsSubstring("FAIL"));
  auto with_json = args;
  with_json.emplace_back("--json");
  const json document = json::parse(simulation(with_json).out);
  CHECK(document["exit_code"] == 6);
  CHECK(document["error"]["kind"] == "verification");
  int measured = 0;
  for (const json& result : document["cases"]) measured += result["outcome"] == "measured";
  CHECK(measured == 3);
}

TEST_CASE("a lost device leaves rows that were not run, and --resume finishes them") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  const auto args = sweep({"--size", "1MiB..16MiB", "--resume", file, "--json"});
  Simulation broken;
  Fault lost;
  lost.call = Fault::Call::sync;
  lost.nth = 120;
  lost.lost = true;
  broken.faults = {lost};
  const Outcome first = broken(args);
  CHECK(first.code == 1);
  const json document = json::parse(first.out);
  REQUIRE(document["cases"].size() == 5);
  CHECK(document["cases"][4]["reason"] == "not run");
  const std::size_t before = lines_of(file).size();
  CHECK(before < 5);

  const Outcome second = Simulation{}(args);
  CHECK(second.code == 0);
  const json whole = json::parse(second.out);
  REQUIRE(whole["cases"].size() == 5);
  for (const json& result : whole["cases"]) CHECK(result["outcome"] == "measured");
}

TEST_CASE("a resumed sweep measures what is missing alone, and shows both in the plan's order") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  Simulation{}(sweep({"--size", "2MiB,8MiB", "-o", file}));
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  const Outcome outcome = simulation(sweep({"--size", "1MiB..8MiB", "--resume", file, "--json"}));
  const json document = json::parse(outcome.out);
  REQUIRE(document["cases"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(document["cases"][i]["case"]["size_bytes"] == Bytes{1} << (20 + i));
  CHECK(lines_of(file).size() == 4);
  const auto keys = keys_of(lines_of(file));
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == 4);  // none twice
  CHECK(std::ranges::none_of(log, [](const std::string& line) {
    return line.find("8388608") != line.npos && line.starts_with("allocate");
  }));
}

TEST_CASE(
    "a file that holds no more than the fragment of a killed run is resumed and appended to") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  const auto args = sweep({"--size", "1MiB,2MiB", "--resume", file});
  for (const char* left : {"", "{\"sch", "{\"schema\":1,\"kind\":\"tri"}) {
    std::ofstream(file, std::ios::trunc) << left;
    INFO(left);
    CHECK(Simulation{}(args).code == 0);
    CHECK(lines_of(file).size() == 2);
  }
  const std::string foreign = "notes without a line feed";
  std::ofstream(file, std::ios::trunc) << foreign;
  CHECK(Simulation{}(args).code == 2);
  CHECK(Simulation{}({"copy", "--size", "1MiB", "--samples", "2", "-o", file, "--append"}).code ==
        2);
  CHECK(contents(file) == foreign);
}

TEST_CASE("the results of other devices are refused unless they may be measured again") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  Simulation{}(sweep({"--size", "2MiB,4MiB", "-o", file}));
  Simulation other;
  other.edit = [](Machine& machine) { machine.devices[0].uuid = "GPU-ffffffff-0000"; };
  const Outcome refused = other(sweep({"--size", "2MiB,4MiB", "--resume", file}));
  CHECK(refused.code == 2);
  CHECK(refused.out.empty());
  CHECK(lines_of(file).size() == 2);
}

TEST_CASE("device memory of one size is allocated once for all cases of a sweep") {
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  simulation(
      sweep({"--gpus", "0", "--size", "1MiB", "--engine", "kernel,memcpy", "--access", "4,8,16"}));
  CHECK(std::ranges::count_if(
            log, [](const std::string& line) { return line.starts_with("allocate"); }) == 2);
}

TEST_CASE("a sweep holds no memory that no later case takes") {
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  simulation(
      sweep({"--gpus", "0", "--size", "1MiB,4MiB", "--split", "1,2", "--engine", "kernel,memcpy"}));
  // Two sizes by two arrays, whole and then in halves, and never both: what was whole is freed
  // before the last of the halves is allocated.
  int held = 0, most = 0;
  for (const std::string& line : log) {
    held += line.starts_with("allocate") ? 1 : line.starts_with("free buffer") ? -1 : 0;
    most = std::max(most, held);
  }
  CHECK(held == 0);
  CHECK(most == 8);
}

TEST_CASE("a dry run of a sweep prints every case and measures none") {
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  const Outcome outcome = simulation(sweep({"--size", "1MiB..8MiB", "--dry-run", "--json"}));
  CHECK(outcome.code == 0);
  CHECK(json::parse(outcome.out)["cases"].size() == 4);
  for (const std::string& line : log) CHECK(line.starts_with("machine"));
}

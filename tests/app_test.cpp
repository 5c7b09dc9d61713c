// SPDX-License-Identifier: MIT
#include "app.hpp"

#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

std::vector<std::string> copy(std::vector<std::string> more = {}) {
  std::vector<std::string> args = {"copy", "--size", "1MiB", "--samples", "20"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

}  // namespace

TEST_CASE("a copy prints its report on stdout and nothing on stderr") {
  const Outcome outcome = Simulation{}(copy());
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("mgpu copy: 20 samples, 2 GPUs"));
  CHECK_THAT(outcome.out, ContainsSubstring("Histogram: frequency by time"));
  CHECK(outcome.err.empty());
}

TEST_CASE("the same simulated run gives the same bytes, but for the times of day") {
  CHECK(Simulation{}(copy()).out == Simulation{}(copy()).out);
}

TEST_CASE("a JSON document tells the command, the case, every sample and the verdict") {
  const Outcome outcome = Simulation{}(copy({"--json"}));
  const json document = json::parse(outcome.out);
  CHECK(document["schema"] == 1);
  CHECK(document["kind"] == "trials");
  CHECK(document["complete"] == true);
  CHECK(document["exit_code"] == 0);
  CHECK(document["command"][1] == "copy");
  CHECK(document["cases"][0]["samples_ns"].size() == 20);
  CHECK(document["cases"][0]["bytes_copied"] == 1048576);
  CHECK(document["cases"][0]["verified"] == true);
}

TEST_CASE("bad usage prints nothing on stdout and exits 2, also when found while planning") {
  for (const auto& more :
       std::vector<std::vector<std::string>>{{"--gpus", "0,0"},
                                             {"--gpus", "1-0"},
                                             {"--gpus", ""},
                                             {"--gpus", "0,,1"},
                                             {"--split", "1000"},
                                             {"--memory", "device", "--prefetch", "array"},
                                             {"--size", "0"},
                                             {"--size", "4G"},
                                             {"--seconds", "nan"},
                                             {"--gpus", "0,GPU-00000000"}}) {
    const Outcome outcome = Simulation{}(copy(more));
    INFO(more[0] << " " << more[1]);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, ContainsSubstring("mgpu: error: "));
  }
}

TEST_CASE("a GPU that is not there exits 4 and the JSON document says so") {
  const Outcome outcome = Simulation{}(copy({"--gpus", "9", "--json"}));
  CHECK(outcome.code == 4);
  const json document = json::parse(outcome.out);
  CHECK(document["exit_code"] == 4);
  CHECK(document["error"]["kind"] == "unavailable");
  CHECK(document["cases"].empty());
}

TEST_CASE("without a usable GPU copy exits 3, and topo too but shows the host") {
  Simulation simulation;
  simulation.options.gpus = 0;
  const Outcome failed = simulation(copy());
  CHECK(failed.code == 3);
  CHECK(failed.out.empty());
  const Outcome topo = simulation({"topo"});
  CHECK(topo.code == 3);
  CHECK_FALSE(topo.out.empty());
}

TEST_CASE("too large an array exits 5 with need and have, before anything is allocated") {
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  const Outcome outcome = simulation(copy({"--size", "500TiB"}));
  CHECK(outcome.code == 2);  // --size twice
  const Outcome large = simulation({"copy", "--size", "500TiB"});
  CHECK(large.code == 5);
  CHECK_THAT(large.err, ContainsSubstring("need 250 TiB") || ContainsSubstring("need 500 TiB"));
  for (const std::string& line : log) CHECK_FALSE(line.starts_with("allocate"));
}

TEST_CASE("one flipped byte exits 6 and the report keeps the samples and the place") {
  Simulation simulation;
  Fault flip;
  flip.act = Fault::Act::flip;
  flip.device = 1;
  flip.nth = 2 + 20 + 20 + 1;
  flip.offset = 3;
  simulation.faults = {flip};
  const Outcome outcome = simulation(copy({"--json"}));
  CHECK(outcome.code == 6);
  const json document = json::parse(outcome.out);
  const json mismatch = document["cases"][0]["verification"]["mismatch"];
  CHECK(mismatch["offset"] == 524288 + 3);
  CHECK(mismatch["count"] == 1);
  CHECK(mismatch["device"] == 1);
  CHECK(document["cases"][0]["samples"] == 20);
  CHECK(document["error"]["kind"] == "verification");
  const Outcome text = simulation(copy());
  CHECK_THAT(text.out + text.err, ContainsSubstring("524,291") || ContainsSubstring("524291"));
}

TEST_CASE("a hang past the timeout writes what there is and leaves with 7") {
  Simulation simulation;
  Fault hang;
  hang.call = Fault::Call::sync;
  hang.act = Fault::Act::hang;
  hang.nth = 12;
  simulation.faults = {hang};
  TemporaryDirectory directory;
  const Outcome outcome = simulation(copy(
      {"--timeout", "0.5", "-o", directory.file("run.json"), "-o", directory.file("run.jsonl")}));
  CHECK(outcome.left_with == 7);
  // The simulated process goes on once it has been left, and writes a second line.
  const std::string lines = contents(directory.file("run.jsonl"));
  const json document = json::parse(lines.substr(0, lines.find('\n')));
  CHECK(document["complete"] == false);
  CHECK(document["exit_code"] == 7);
  CHECK(document["cases"][0]["samples"] > 0);
}

TEST_CASE("output files follow their extension and hold what stdout would") {
  TemporaryDirectory directory;
  const std::string json_file = directory.file("run.json"), text_file = directory.file("run.txt"),
                    csv_file = directory.file("run.csv"), markdown_file = directory.file("run.md");
  const Outcome outcome =
      Simulation{}(copy({"-o", json_file, "-o", text_file, "-o", csv_file, "-o", markdown_file}));
  CHECK(outcome.code == 0);
  CHECK(contents(text_file) == outcome.out);
  CHECK(json::parse(contents(json_file))["cases"].size() == 1);
  CHECK_FALSE(contents(csv_file).empty());
  CHECK(contents(markdown_file).find('|') != std::string::npos);
  CHECK(directory.files() == 4);  // no temporary file is left
}

TEST_CASE("output files never carry colour, a terminal does") {
  TemporaryDirectory directory;
  Simulation simulation;
  simulation.terminal = true;
  const Outcome outcome = simulation(copy({"-o", directory.file("run.txt")}));
  CHECK(outcome.out.find('\x1b') != std::string::npos);
  CHECK(contents(directory.file("run.txt")).find('\x1b') == std::string::npos);
  CHECK(simulation(copy({"--color", "never"})).out.find('\x1b') == std::string::npos);
}

TEST_CASE("a JSON Lines file gains a line a run, and only where that is asked for") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  CHECK(Simulation{}(copy({"-o", file})).code == 0);
  const std::string once = contents(file);
  CHECK(std::ranges::count(once, '\n') == 1);

  const Outcome refused = Simulation{}(copy({"-o", file}));
  CHECK(refused.code == 2);
  CHECK(refused.out.empty());
  CHECK(contents(file) == once);

  CHECK(Simulation{}(copy({"-o", file, "--append"})).code == 0);
  const std::string twice = contents(file);
  CHECK(std::ranges::count(twice, '\n') == 2);
  CHECK(twice.starts_with(once));

  CHECK(Simulation{}(copy({"-o", file, "--force"})).code == 0);
  CHECK(std::ranges::count(contents(file), '\n') == 1);
}

TEST_CASE("a fragment that a killed run left is overwritten by the next line") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  CHECK(Simulation{}(copy({"-o", file})).code == 0);
  const std::string once = contents(file);
  std::ofstream(file, std::ios::app) << once.substr(0, 100);
  CHECK(Simulation{}(copy({"-o", file, "--append"})).code == 0);
  const std::string repaired = contents(file);
  CHECK(std::ranges::count(repaired, '\n') == 2);
  CHECK(repaired.starts_with(once));
}

TEST_CASE("an output that cannot be written fails before anything is measured") {
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  const Outcome outcome = simulation(copy({"-o", "/nonexistent/run.json"}));
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, ContainsSubstring("/nonexistent/run.json"));
  CHECK(log.empty());
}

TEST_CASE("a full stdout is an error, a closed one is quiet") {
  Simulation simulation;
  simulation.out_errno = ENOSPC;
  const Outcome full = simulation(copy());
  CHECK(full.code == 1);
  CHECK_THAT(full.err, ContainsSubstring("cannot write to stdout"));
  simulation.out_errno = EPIPE;
  const Outcome closed = simulation(copy());
  CHECK(closed.code == 0);
  CHECK(closed.err.empty());
}

TEST_CASE("a dry run prints the steps and touches no device") {
  Simulation simulation;
  std::vector<std::string> log;
  simulation.options.log = &log;
  const Outcome outcome =
      simulation(copy({"--unified", "--prefetch", "array", "--owner-wait", "host", "--dry-run"}));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("the host waits for its last user"));
  for (const std::string& line : log) CHECK(line.starts_with("machine"));
  const json plan = json::parse(simulation(copy({"--dry-run", "--json"})).out);
  CHECK(plan["kind"] == "plan");
  CHECK(plan["cases"][0]["outcome"] == "planned");
}

TEST_CASE("a saved result is shown again with the same text") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.json");
  const Outcome first = Simulation{}(copy({"-o", file}));
  const Outcome again = Simulation{}({"show", file});
  CHECK(again.code == 0);
  CHECK(again.out == first.out);
  const Outcome as_json = Simulation{}({"show", file, "--json"});
  CHECK(as_json.out == contents(file));
}

TEST_CASE("show reads stdin by -, and refuses what is not ours with the place") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.json");
  const Outcome first = Simulation{}(copy({"-o", file}));
  Simulation simulation;
  simulation.input = contents(file);
  CHECK(simulation({"show", "-"}).out == first.out);
  for (const std::string bad : {"", "{", "[]", "{\"schema\":1}", "hello"}) {
    simulation.input = bad;
    const Outcome refused = simulation({"show", "-"});
    INFO(bad);
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
  }
  CHECK(simulation({"show", directory.file("missing.json")}).code == 2);
  CHECK(simulation({"show", directory.path.string()}).code == 2);
}

TEST_CASE("rounds of one case in a file are shown as the cases they are") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  Simulation{}(copy({"-o", file}));
  Simulation{}(copy({"-o", file, "--append"}));
  const Outcome shown = Simulation{}({"show", file, "--json"});
  CHECK(json::parse(shown.out)["cases"].size() == 2);
}

TEST_CASE("notes go to stderr and into the document, and --quiet keeps them there") {
  const Outcome loud = Simulation{}(copy({"--owner-wait", "host", "--json"}));
  CHECK_THAT(loud.err, ContainsSubstring("mgpu: note: --owner-wait changes nothing here"));
  CHECK(json::parse(loud.out)["warnings"].size() == 1);
  CHECK(Simulation{}(copy({"--owner-wait", "host", "--quiet"})).err.empty());
}

TEST_CASE("version and help need no backend") {
  Console console;
  std::string out;
  console.out = [&](std::string_view bytes) {
    out += bytes;
    return 0;
  };
  console.err = [](std::string_view) {};
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--version"}, {"--help"}, {"copy", "--help"}, {"help", "copy"}}) {
    out.clear();
    CHECK(run_app(args, console, {}) == 0);
    CHECK_FALSE(out.empty());
  }
  CHECK(run_app({}, console, {}) == 2);
}

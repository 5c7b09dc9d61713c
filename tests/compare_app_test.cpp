// SPDX-License-Identifier: MIT
// Saved results compared and enforced: whole command lines, their output and exit codes.
#include "report/report.hpp"
#include "sample_comparison.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

std::string saved(const TemporaryDirectory& directory, const std::string& name,
                  const std::string& text) {
  const std::string file = directory.file(name);
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

std::string saved(const TemporaryDirectory& directory, const std::string& name, Report report) {
  for (CaseResult& result : report.cases) result.key = case_key(result.what, report.machine);
  return saved(directory, name, render(name.ends_with("l") ? Format::jsonl : Format::json, report));
}

/// 30 samples of a millisecond, 0.3% of noise.
Report millisecond(unsigned seed = 1) {
  return run_of(Noise(seed).independent(30, 0.003));
}

std::vector<std::string> copy(std::vector<std::string> more) {
  std::vector<std::string> args = {"copy", "--size", "1MiB", "--samples", "20"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

/// Memory that takes most of a sample.
Simulation usual() {
  Simulation simulation;
  simulation.options.local = 10'000;
  return simulation;
}

/// The same machine with memory half as fast.
Simulation slow() {
  Simulation simulation = usual();
  simulation.options.local /= 2;
  return simulation;
}

/// Whether each element that is opened is closed in its turn; no text of ours has < or > in it.
bool is_well_formed(std::string_view xml) {
  std::vector<std::string> open;
  for (std::size_t at = xml.find('<'); at != xml.npos; at = xml.find('<', at)) {
    const std::size_t end = xml.find('>', at);
    if (end == xml.npos) return false;
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    const std::string element(
        tag.substr(tag.starts_with('/'), tag.find_first_of(" />", 1) - tag.starts_with('/')));
    if (std::ranges::count(tag, '"') % 2 != 0 || tag.find('<') != tag.npos) return false;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != element) return false;
      open.pop_back();
    } else if (!tag.starts_with('?') && !tag.ends_with('/')) {
      open.push_back(element);
    }
    at = end;
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a file compared with itself is the same for every case", "[compare]") {
  TemporaryDirectory directory;
  const std::string file = directory.file("sweep.jsonl");
  REQUIRE(Simulation{}({"sweep", "--size", "1MiB,2MiB", "--engine", "kernel,memcpy", "--samples",
                        "3", "-o", file})
              .code == 0);
  const Outcome outcome = Simulation{}({"compare", file, file, "--json"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  const json document = json::parse(outcome.out);
  CHECK(document["kind"] == "comparison");
  CHECK(document["error"].is_null());
  REQUIRE(document["rows"].size() == 4);
  for (const json& row : document["rows"]) {
    CHECK(row["verdict"] == "same");
    CHECK(row["ratio"] == 1);
    CHECK(row["reason"] == "equal samples");
  }
  CHECK(document["unmatched"].empty());
}

TEST_CASE("more than the tolerance is slower or faster, and exit 8 is of slower alone",
          "[compare]") {
  TemporaryDirectory directory;
  const std::string base = saved(directory, "base.json", millisecond());
  const auto verdict = [&](double factor, std::vector<std::string> more = {}) {
    Report now = millisecond(2);
    now.cases[0].samples_ns = scaled(now.cases[0].samples_ns, factor);
    now.cases[0].summary = summarize(now.cases[0].samples_ns);
    std::vector<std::string> args = {"compare", base, saved(directory, "new.json", now), "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = Simulation{}(args);
    const json document = json::parse(outcome.out);
    CHECK(document["exit_code"] == outcome.code);
    CHECK(document["error"].is_null() == (outcome.code == 0));
    return std::pair(document["rows"][0]["verdict"].get<std::string>(), outcome.code);
  };
  CHECK(verdict(1.1) == std::pair(std::string("slower"), 8));
  CHECK(verdict(0.9) == std::pair(std::string("faster"), 0));
  CHECK(verdict(1.02) == std::pair(std::string("same"), 0));
  CHECK(verdict(1.02, {"--tolerance", "1%"}) == std::pair(std::string("slower"), 8));
  CHECK(verdict(1.1, {"--tolerance", "20"}) == std::pair(std::string("same"), 0));
  CHECK(verdict(1.1, {"--metric", "min"}) == std::pair(std::string("slower"), 8));
}

TEST_CASE("what differs but prevents no verdict is printed", "[compare]") {
  TemporaryDirectory directory;
  Report now = millisecond(2);
  now.machine.driver.version = "590.1";
  const std::string base = saved(directory, "base.json", millisecond()),
                    other = saved(directory, "new.json", now);
  const Outcome outcome = Simulation{}({"compare", base, other});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("same") &&
                              ContainsSubstring("driver: unknown in base, 590.1 in new"));
}

TEST_CASE("another model of GPU is not comparable but by force", "[compare]") {
  TemporaryDirectory directory;
  Report now = millisecond(2);
  now.machine.devices[0].name = "NVIDIA H100";
  const std::string base = saved(directory, "base.json", millisecond()),
                    other = saved(directory, "new.json", now);
  const Outcome outcome = Simulation{}({"compare", base, other});
  CHECK(outcome.code == 9);
  CHECK_THAT(outcome.out, ContainsSubstring("other devices"));
  CHECK_THAT(outcome.err, ContainsSubstring("nothing in"));
  const Outcome forced = Simulation{}({"compare", base, other, "--force"});
  CHECK(forced.code == 0);
  CHECK_THAT(forced.out, ContainsSubstring("compared by position"));
}

TEST_CASE("a file that is empty, cut off or not ours is named with the place", "[compare]") {
  TemporaryDirectory directory;
  const std::string good = saved(directory, "good.json", millisecond());
  const std::string whole = contents(good);
  const std::pair<std::string, std::string> bad[] = {
      {saved(directory, "empty.json", std::string()), "empty.json: the file is empty"},
      {saved(directory, "cut.json", whole.substr(0, whole.size() / 2)), "cut.json:"},
      {saved(directory, "foreign.json", std::string("{\"a\": 1}\n")),
       "foreign.json:1: not a result of mgpu"},
      {saved(directory, "text.json", std::string("mgpu copy\n")), "text.json:1:1: not JSON"},
      {directory.file("missing.json"), "missing.json: cannot be read"},
  };
  for (const auto& [file, place] : bad) {
    for (const std::vector<std::string>& args : {std::vector<std::string>{"compare", good, file},
                                                 {"compare", file, good},
                                                 copy({"--baseline", file})}) {
      const Outcome outcome = Simulation{}(args);
      INFO(file);
      CHECK(outcome.code == 2);
      CHECK(outcome.out.empty());
      CHECK_THAT(outcome.err, ContainsSubstring(place));
    }
  }
  Report topology;
  topology.kind = ReportKind::topology;
  const Outcome outcome =
      Simulation{}({"compare", good, saved(directory, "topo.json", std::move(topology))});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("topo.json: holds a topology"));
}

TEST_CASE("a line cut off at the end of a .jsonl is left out with a note", "[compare]") {
  TemporaryDirectory directory;
  const std::string line = render(Format::jsonl, millisecond());
  const std::string whole = saved(directory, "whole.jsonl", line),
                    cut = saved(directory, "cut.jsonl", line + line.substr(0, line.size() / 2));
  const Outcome outcome = Simulation{}({"compare", whole, cut, "--json"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("cut.jsonl:2: the last line is cut off"));
  const json document = json::parse(outcome.out);
  CHECK(document["rows"][0]["verdict"] == "same");
  CHECK(document["warnings"].size() == 1);
}

TEST_CASE("a comparison goes into files of every format and is shown again", "[compare]") {
  TemporaryDirectory directory;
  Report now = run_of(scaled(Noise(2).independent(30, 0.003), 1.1));
  now.cases.push_back(run_of(Noise(3).independent(30, 0.003), 0, 4096).cases[0]);
  const std::string base = saved(directory, "base.json", millisecond()),
                    other = saved(directory, "new.json", now), verdict = directory.file("v.json"),
                    xml = directory.file("v.xml"), csv = directory.file("v.csv"),
                    markdown = directory.file("v.md");
  const Outcome outcome =
      Simulation{}({"compare", base, other, "-o", verdict, "-o", xml, "-o", csv, "-o", markdown});
  CHECK(outcome.code == 8);
  CHECK_THAT(outcome.err, ContainsSubstring("slower than") && ContainsSubstring("1 of 1 case"));
  CHECK(Simulation{}({"show", verdict}).out == outcome.out);
  CHECK(Simulation{}({"show", verdict, "--format", "markdown"}).out == contents(markdown));
  CHECK_THAT(contents(markdown), ContainsSubstring("| slower |"));

  const std::string junit = contents(xml);
  CHECK(is_well_formed(junit));
  CHECK_THAT(junit, ContainsSubstring("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\"") &&
                        ContainsSubstring("<failure message=\"slower:"));
  const std::string table = contents(csv);
  CHECK(std::ranges::count(table, '\n') == 3);
  CHECK_THAT(table, ContainsSubstring(",side,key,gpus,") && ContainsSubstring(",both,") &&
                        ContainsSubstring(",new,"));
}

TEST_CASE("JUnit's XML is a file of what was measured", "[compare]") {
  TemporaryDirectory directory;
  CHECK(Simulation{}(copy({"--format", "xml"})).code == 2);
  CHECK(Simulation{}(copy({"--dry-run", "-o", directory.file("a.xml")})).code == 2);
  // What ends a run fails a test, or an earlier file would stand for it.
  const std::string file = directory.file("run.xml");
  REQUIRE(Simulation{}(copy({"-o", file})).code == 0);
  CHECK_THAT(contents(file), ContainsSubstring("tests=\"1\" failures=\"0\""));
  REQUIRE(Simulation{}(copy({"--gpus", "7", "-o", file})).code == 4);
  CHECK_THAT(contents(file), ContainsSubstring("tests=\"1\" failures=\"1\""));
}

TEST_CASE("compare takes two files, and neither is written", "[compare]") {
  TemporaryDirectory directory;
  const std::string file = saved(directory, "base.json", millisecond());
  CHECK(Simulation{}({"compare", file}).code == 2);
  CHECK(Simulation{}({"compare", file, file, file}).code == 2);
  CHECK(Simulation{}({"compare", file, file, "-o", file}).code == 2);
  CHECK(Simulation{}({"compare", file, file, "-o", directory.file("a.svg")}).code == 2);
  CHECK(Simulation{}(copy({"--baseline", file, "-o", file})).code == 2);
  CHECK(Simulation{}(copy({"--tolerance", "3"})).code == 2);
  CHECK(Simulation{}(copy({"--metric", "min"})).code == 2);
}

TEST_CASE("a rate that is reached exits 0, another 8 with both numbers behind the result",
          "[compare]") {
  TemporaryDirectory directory;
  const std::string lines = directory.file("run.jsonl"), xml = directory.file("run.xml");
  const Outcome met = Simulation{}(copy({"--expect", "1GB/s", "--expect", "copied:1MB/s"}));
  CHECK(met.code == 0);
  CHECK(met.err.empty());
  CHECK_THAT(met.out, ContainsSubstring(" expect: at least 1.00 GB/s moved, got ") &&
                          ContainsSubstring(": met\n"));

  const Outcome missed = Simulation{}(
      copy({"--expect", "1GB/s", "--expect", "moved:900TB/s", "--json", "-o", lines, "-o", xml}));
  CHECK(missed.code == 8);
  CHECK_THAT(missed.err, ContainsSubstring("at least 900 TB/s moved, got "));
  const json document = json::parse(missed.out);
  CHECK(document["exit_code"] == 8);
  CHECK(document["error"]["kind"] == "slower");
  const json expect = document["cases"][0]["expect"];
  CHECK(expect["wanted"] == 900e12);
  CHECK(expect["met"] == false);
  CHECK(expect["got"] == document["cases"][0]["rates"]["moved"]["median"]);
  CHECK(json::parse(contents(lines))["exit_code"] == 8);
  CHECK(is_well_formed(contents(xml)));
  CHECK_THAT(contents(xml), ContainsSubstring("failures=\"1\""));
}

TEST_CASE("an expected rate is for the cases of its size, and of no other", "[compare]") {
  const auto sweep = [](const std::string& wanted) {
    return Simulation{}(
        {"sweep", "--size", "1MiB,2MiB", "--samples", "3", "--expect", wanted, "--json"});
  };
  const Outcome outcome = sweep("2MiB:moved:900TB/s");
  CHECK(outcome.code == 8);
  const json cases = json::parse(outcome.out)["cases"];
  CHECK(cases[0]["expect"].is_null());
  CHECK(cases[1]["expect"]["met"] == false);
  CHECK(json::parse(sweep("1MiB/gpu:900TB/s").out)["cases"][1]["expect"]["met"] == false);
  const Outcome none = sweep("3MiB:1GB/s");
  CHECK(none.code == 2);
  CHECK(none.out.empty());
  CHECK_THAT(none.err, ContainsSubstring("3MiB:1GB/s"));
}

TEST_CASE("where a link is crossed an expected rate must say what it counts", "[compare]") {
  const auto peer = [](const std::string& wanted) {
    return Simulation{}(copy({"--from", "1", "--to", "0", "--expect", wanted}));
  };
  const Outcome outcome = peer("1MB/s");
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring("copied: for payload"));
  CHECK(peer("copied:1MB/s").code == 0);
  CHECK(peer("moved:1MB/s").code == 0);
}

TEST_CASE("an expected rate that is none is refused", "[compare]") {
  for (const std::string text :
       {"", "fast", "300GB", "300G/s", "copied:", "copied:moved:1GB/s", "1MiB:2MiB:1GB/s",
        "copied:1MiB:1GB/s", "0GB/s", "-1GB/s", ":1GB/s", "sideways:1GB/s"}) {
    INFO(text);
    CHECK(Simulation{}(copy({"--expect", text})).code == 2);
  }
}

TEST_CASE("a case that failed meets no expectation, and its failure is the graver", "[compare]") {
  Simulation simulation;
  Fault flip;
  flip.act = Fault::Act::flip;
  flip.nth = 3;
  simulation.faults = {flip};
  const Outcome outcome = simulation(copy({"--expect", "1MB/s", "--verify", "every", "--json"}));
  CHECK(outcome.code == 6);
  CHECK(json::parse(outcome.out)["cases"][0]["expect"]["met"] == false);
}

TEST_CASE("a skipped row is not slow, but an expectation wants a measured one", "[compare]") {
  // Managed memory is all that the second GPU lacks.
  Simulation simulation;
  simulation.options.managed = {true, false};
  const auto sweep = [&](const std::string& wanted) {
    return simulation({"sweep", "--memory", "device,managed", "--gpus", "1", "--size", "1MiB,2MiB",
                       "--split", "1,2", "--samples", "3", "--json", "--expect", wanted});
  };
  const Outcome some = sweep("1MB/s");
  CHECK(some.code == 0);
  const json cases = json::parse(some.out)["cases"];
  CHECK(std::ranges::count_if(cases, [](const json& one) {
          return one["outcome"] == "skipped" && one["expect"].is_null();
        }) == 4);

  // One GPU has 1 MiB, both have 2 MiB.
  const auto growing = [&](const std::string& wanted) {
    return simulation({"sweep", "--unified", "--gpus", "0", "--gpus", "0,1", "--size", "1MiB/gpu",
                       "--samples", "3", "--expect", wanted});
  };
  CHECK(growing("1MiB:1MB/s").code == 0);
  const Outcome none = growing("2MiB:1MB/s");
  CHECK(none.code == 8);
  CHECK_THAT(none.err, ContainsSubstring("no case that it is for was measured"));
}

TEST_CASE("a run as fast as its baseline exits 0, a slower one 8 with both medians", "[compare]") {
  TemporaryDirectory directory;
  const std::string base = directory.file("base.json"), xml = directory.file("now.xml");
  REQUIRE(usual()(copy({"-o", base})).code == 0);
  const Outcome same = usual()(copy({"--baseline", base}));
  CHECK(same.code == 0);
  CHECK_THAT(same.out, ContainsSubstring(" baseline: same, ratio 1.000"));

  const Outcome slower = slow()(copy({"--baseline", base, "--json", "-o", xml}));
  CHECK(slower.code == 8);
  CHECK_THAT(slower.err,
             ContainsSubstring("slower than the baseline") && ContainsSubstring(" against "));
  const json found = json::parse(slower.out)["cases"][0]["baseline"];
  CHECK(found["verdict"] == "slower");
  CHECK(found["met"] == false);
  CHECK(found["ratio"].get<double>() > 1.2);
  CHECK(is_well_formed(contents(xml)));
  CHECK_THAT(contents(xml), ContainsSubstring("<failure message=\"slower, ratio"));
  CHECK(slow()(copy({"--baseline", base, "--tolerance", "200"})).code == 0);
}

TEST_CASE("a baseline of other cases exits 9 with the result", "[compare]") {
  TemporaryDirectory directory;
  const std::string base = directory.file("base.json");
  REQUIRE(Simulation{}(copy({"-o", base})).code == 0);
  const Outcome outcome =
      Simulation{}({"copy", "--size", "2MiB", "--samples", "3", "--baseline", base, "--json"});
  CHECK(outcome.code == 9);
  CHECK(json::parse(outcome.out)["cases"][0]["samples"] == 3);
  CHECK_THAT(outcome.err, ContainsSubstring("it lacks 1 of 1 cases") &&
                              ContainsSubstring("nothing is comparable"));
}

TEST_CASE("a sweep is compared row by row, and tables show the verdicts", "[compare]") {
  TemporaryDirectory directory;
  const std::string base = directory.file("base.jsonl"), markdown = directory.file("now.md");
  const std::vector<std::string> sweep = {"sweep", "--size", "1MiB,2MiB", "--samples", "5"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> args = sweep;
    args.insert(args.end(), more.begin(), more.end());
    return args;
  };
  REQUIRE(usual()(with({"-o", base})).code == 0);
  const Outcome outcome = slow()(with({"--baseline", base, "-o", markdown}));
  CHECK(outcome.code == 8);
  CHECK_THAT(outcome.err, ContainsSubstring("; and 1 more"));
  CHECK_THAT(outcome.out, ContainsSubstring("baseline") && ContainsSubstring("slower 1."));
  CHECK_THAT(contents(markdown), ContainsSubstring("| slower 1."));
}

// SPDX-License-Identifier: MIT
// Saved results shown again: rounds as one trial, files side by side.
#include "command_line.hpp"
#include "report/report.hpp"
#include "sample_report.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

/// The sample on GPUs with other samples.
Report report_of(std::vector<double> samples) {
  Report report = sample_report();
  CaseResult& result = report.cases.front();
  result.samples = static_cast<std::int64_t>(samples.size());
  result.summary = summarize(samples);
  result.samples_ns = std::move(samples);
  result.causes.clear();
  return report;
}

std::vector<double> steps(double first, double step, int count) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(first + step * i);
  return samples;
}

std::string saved(const TemporaryDirectory& directory, const std::string& name,
                  const std::vector<Report>& reports) {
  const std::string file = directory.file(name);
  std::ofstream out(file, std::ios::binary);
  for (const Report& report : reports)
    out << render(reports.size() > 1 ? Format::jsonl : Format::json, report);
  return file;
}

/// The bars and the footer of each histogram.
std::vector<std::string> histograms(const std::string& text) {
  std::vector<std::string> lines, found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (line.find("Histogram: ") == std::string::npos) continue;
    REQUIRE(lines.size() >= 3);
    found.insert(found.end(), lines.end() - 3, lines.end());
  }
  return found;
}

std::string show(const std::vector<std::string>& files) {
  std::vector<std::string> args = {"show"};
  args.insert(args.end(), files.begin(), files.end());
  const Outcome outcome = Simulation{}(args);
  CHECK(outcome.code == 0);
  return outcome.out;
}

}  // namespace

TEST_CASE("a saved trial of two samples has the histogram of BenchmarkTools' own test", "[show]") {
  TemporaryDirectory directory;
  CHECK(histograms(show({saved(directory, "a.json", {report_of({1.0, 1.01})})})) ==
        std::vector<std::string>{"  █                                                       █  ",
                                 "  █▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█ ▁",
                                 "  1 ns           Histogram: frequency by time       1.01 ns <"});
}

TEST_CASE("a saved trial with a long tail has its histogram with a logarithmic scale", "[show]") {
  TemporaryDirectory directory;
  std::vector<double> samples = steps(100'000, 1, 96);
  for (const double ms : {1, 2, 3, 4}) samples.push_back(ms * 1e6);
  CHECK(histograms(show({saved(directory, "b.json", {report_of(samples)})})) ==
        std::vector<std::string>{
            "  █                                                              ",
            "  █▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄ ▄",
            "  100 μs        Histogram: log(frequency) by time          3 ms <"});
}

TEST_CASE("the rounds of a case in a file are one trial, and their number is told", "[show]") {
  TemporaryDirectory directory;
  const Report first = report_of(steps(100'000, 10, 20)),
               second = report_of(steps(120'000, 10, 30)),
               third = report_of(steps(140'000, 10, 10));
  const std::string file = saved(directory, "rounds.jsonl", {second, first, third});
  const std::string text = show({file});
  CHECK_THAT(text, ContainsSubstring("mgpu copy: 60 samples in 3 rounds, 2 GPUs"));
  CHECK_THAT(text, ContainsSubstring("Range (min … max):  100.000 μs … 140.090 μs"));
  CHECK_THAT(text, ContainsSubstring("rounds: medians 100.095 μs … 140.045 μs"));
  CHECK(histograms(text).size() == 3);
  CHECK_THAT(show({file, "--format", "markdown"}), ContainsSubstring("| 60 (3 rounds) |"));
  // Programs get what was saved.
  CHECK(json::parse(show({file, "--json"}))["cases"].size() == 3);
  CHECK(show({file, "--format", "jsonl"}) == contents(file));
}

TEST_CASE("a round without a check leaves the trial unchecked, a failed round stays apart",
          "[show]") {
  TemporaryDirectory directory;
  Report unchecked = report_of(steps(100'000, 10, 20)), checked = unchecked, failed = unchecked;
  unchecked.cases[0].verified.reset();
  unchecked.cases[0].verification = {};
  const std::string text = show({saved(directory, "a.jsonl", {checked, unchecked})});
  CHECK_THAT(text, ContainsSubstring("not verified"));
  failed.cases[0].outcome = OutcomeKind::failed;
  failed.cases[0].reason = "wrong data";
  const std::string both = show({saved(directory, "b.jsonl", {checked, failed, checked})});
  CHECK_THAT(
      both, ContainsSubstring("40 samples in 2 rounds") && ContainsSubstring("failed: wrong data"));
}

TEST_CASE("trials of one case from several files share the axis of their histograms", "[show]") {
  TemporaryDirectory directory;
  const std::string fast = saved(directory, "fast.json", {report_of(steps(100'000, 100, 50))}),
                    wide = saved(directory, "wide.json", {report_of(steps(90'000, 4'000, 50))});
  const std::string text = show({fast, wide});
  CHECK_THAT(text, ContainsSubstring(" file: " + fast) && ContainsSubstring(" file: " + wide));
  const auto lines = histograms(text);
  REQUIRE(lines.size() == 6);
  CHECK(lines[2] == lines[5]);
  CHECK_THAT(lines[2], ContainsSubstring("  90 μs ") && ContainsSubstring("286 μs <"));
  // Alone the first one spans its own samples.
  CHECK_THAT(histograms(show({fast})).at(2), ContainsSubstring("105 μs <"));
}

TEST_CASE("several files are one table, each case's rows together", "[show]") {
  TemporaryDirectory directory;
  const auto sweep = [&](const std::string& name) {
    const std::string file = directory.file(name);
    REQUIRE(Simulation{}({"sweep", "--size", "1MiB,2MiB", "--samples", "3", "-o", file}).code == 0);
    return file;
  };
  const std::string a = sweep("a.jsonl"), b = sweep("b.jsonl");
  const std::string text = show({a, b});
  CHECK_THAT(text, ContainsSubstring("mgpu sweep: 4 cases") && ContainsSubstring("  file  "));
  std::vector<std::size_t> places;
  for (const std::string row : {" 1*", " 2*", " 3*", " 4*"}) {
    const std::size_t line = text.find("\n" + row);
    REQUIRE(line != std::string::npos);
    places.push_back(text.find(row == " 1*" || row == " 3*" ? a : b, line) - line);
  }
  CHECK(std::ranges::max(places) < 40);
  CHECK_THAT(text, ContainsSubstring("rows of one case share an axis"));
  CHECK_THAT(show({a, b, "--format", "markdown"}), ContainsSubstring("| " + a + " |"));
  const std::string script = directory.file("both.gp");
  show({a, b, "-o", script});
  CHECK_THAT(contents(script), ContainsSubstring(a) && ContainsSubstring(b));
}

TEST_CASE("a saved run without a case says so, and why", "[show]") {
  TemporaryDirectory directory;
  const std::string file = directory.file("none.json");
  CHECK(Simulation{}({"copy", "--gpus", "9", "-o", file}).code == 4);
  const Outcome shown = Simulation{}({"show", file});
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, ContainsSubstring("error: ") && ContainsSubstring("GPU 9"));

  json document = json::parse(contents(file));
  document["error"] = nullptr;
  std::ofstream(file) << document;
  CHECK_THAT(Simulation{}({"show", file}).out, ContainsSubstring("no case was measured"));
}

TEST_CASE("bytes of devices are in one unit, exact where that is short", "[show]") {
  TemporaryDirectory directory;
  const auto table_of = [&](Bytes first, Bytes second) {
    Report report = report_of({1e6, 2e6});
    report.cases[0].per_device[0].bytes = first;
    report.cases[0].per_device[1].bytes = second;
    return show({saved(directory, "bytes.json", {report})});
  };
  CHECK_THAT(table_of(2'000'000'000, 1'500'000'000),
             ContainsSubstring("  2 GB  ") && ContainsSubstring("  1.5 GB  "));
  CHECK_THAT(table_of(Bytes{1906} << 20, 2'001'436'672),
             ContainsSubstring("  1.86 GiB  ") && !ContainsSubstring("MiB"));
  CHECK_THAT(table_of(4096, 0), ContainsSubstring("  4 KiB  ") && ContainsSubstring("  0 B  "));
}

TEST_CASE("results of two backends are no fleet, and a fleet is none to merge", "[show]") {
  TemporaryDirectory directory;
  const std::string gpus = directory.file("gpus.jsonl"), cpus = directory.file("cpus.jsonl"),
                    fleet = directory.file("fleet.json");
  REQUIRE(Simulation{}({"copy", "--size", "1MiB", "--samples", "3", "-o", gpus}).code == 0);
  Simulation host;
  host.edit = [](Machine& machine) { machine.backend = BackendKind::host; };
  REQUIRE(
      host({"copy", "--size", "1MiB", "--backend", "host", "--samples", "3", "-o", cpus}).code ==
      0);
  const Outcome mixed = Simulation{}({"merge", gpus, cpus, "-o", fleet});
  CHECK(mixed.code == 2);
  CHECK_THAT(mixed.err, ContainsSubstring(gpus + " holds trials of the backend cuda, " + cpus +
                                          " of host: merge"));
  CHECK_FALSE(std::filesystem::exists(fleet));
  REQUIRE(Simulation{}({"merge", gpus, "-o", fleet}).code == 0);
  const Outcome again = Simulation{}({"merge", fleet});
  CHECK(again.code == 2);
  CHECK_THAT(again.err,
             ContainsSubstring(fleet + ": is a fleet already: mgpu show " + fleet + " prints it"));
}

TEST_CASE("a merge is written as JUnit, and added to lines that are there", "[show]") {
  TemporaryDirectory directory;
  const std::string run = directory.file("run.jsonl"), tests = directory.file("fleet.xml"),
                    lines = directory.file("fleet.jsonl");
  REQUIRE(Simulation{}({"copy", "--size", "1MiB", "--samples", "3", "-o", run}).code == 0);
  for (int i = 0; i < 2; ++i)
    REQUIRE(
        Simulation{}({"merge", run, "-o", tests, "-o", lines, i ? "--append" : "--quiet"}).code ==
        0);
  CHECK_THAT(contents(tests), ContainsSubstring("<testsuite name=\"mgpu merge\" tests=\"2\""));
  const std::string text = contents(lines);
  CHECK(std::ranges::count(text, '\n') == 2);
}

TEST_CASE("merge writes JUnit and adds to a file, compare writes JUnit and adds to none",
          "[show]") {
  CHECK(request("merge a.jsonl -o b.xml").outputs.at(0).format == Format::xml);
  CHECK(request("merge a.jsonl -o b.jsonl --append").append);
  CHECK(request("merge a.jsonl -o b.jsonl --force").force);
  CHECK(request("compare a.jsonl b.jsonl -o c.xml --force").force);
  CHECK(holds(refusal("compare a.jsonl b.jsonl --append").value_or(""), "unknown option"));
  CHECK(holds(refusal("merge a.jsonl -o b.svg").value_or(""), ".md .xml, or"));
  CHECK_FALSE(holds(immediate("merge --help"), "by position"));
}

TEST_CASE("an input that cannot be read leaves no output behind", "[show]") {
  TemporaryDirectory directory;
  const std::string bad = directory.file("bad.json");
  std::ofstream(bad) << "{";
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"show", bad}, {"compare", bad, bad}, {"merge", bad}}) {
    std::vector<std::string> args = command;
    args.insert(args.end(), {"-o", directory.file("out.jsonl")});
    INFO(command.front());
    CHECK(Simulation{}(args).code == 2);
    CHECK(directory.files() == 1);
  }
}

// SPDX-License-Identifier: MIT
#include "report/report.hpp"
#include "sample_fleet.hpp"
#include "sample_report.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

using Json = nlohmann::ordered_json;

Json document(const Report& report) {
  return Json::parse(render(Format::json, report));
}

std::vector<Report> read(const std::string& text) {
  std::vector<std::string> notes;
  const auto reports = read_reports(text, "run.json", notes);
  CHECK(notes.empty());
  return reports;
}

/// What the reader says of a text that it refuses.
std::string refusal(const std::string& text) {
  std::vector<std::string> notes;
  try {
    read_reports(text, "run.json", notes);
  } catch (const Error& error) {
    CHECK(error.kind == ErrorKind::usage);
    return error.what();
  }
  return "read";
}

/// The sample document with one value replaced.
std::string with(const std::string& pointer, const Json& value) {
  Json json = document(sample_report());
  json[Json::json_pointer(pointer)] = value;
  return json.dump(2) + "\n";
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> found;
  for (const auto& [key, value] : object.items()) found.push_back(key);
  return found;
}

Report two_cases() {
  Report report = sample_report();
  report.cases.push_back(report.cases[0]);
  report.cases[1].key = "1111111111111111";
  return report;
}

Report failed_report() {
  Report report = two_cases();
  report.complete = false;
  report.exit_code = 6;
  report.error = ErrorInfo{ErrorKind::verification, "device 1 wrote wrong data", 1};
  report.cases[0].outcome = OutcomeKind::failed;
  report.cases[0].error_kind = ErrorKind::verification;
  report.cases[0].verified = false;
  report.cases[0].verification.mismatch = Mismatch{MismatchKind::never_written, 17, 1, 2, 3, 1, 0};
  report.cases[0].what.advise = Advice::accessed_by;
  report.cases[0].what.runtime = Runtime::cudajl_5_7_nosync;
  report.cases[0].what.prefetch = Prefetch::array;
  report.cases[0].what.prefetch_repeats = 2;
  report.cases[0].per_device[1].after->event_reasons = {"sw-power-cap", "hw-slowdown"};
  report.cases[0].what.from = Place{Place::Kind::device, 1};
  report.cases[1] = CaseResult{};
  report.cases[1].outcome = OutcomeKind::skipped;
  report.cases[1].reason = "not run";
  return report;
}

/// Output and exit code of a command of the shell.
std::pair<int, std::string> run(const std::string& command) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe)) output += buffer.data();
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

}  // namespace

TEST_CASE("a document that is read and written again has the same bytes", "[json]") {
  const Report report = GENERATE(sample_report(), sample_host_report(), sample_topology(),
                                 sample_plan(), failed_report(), sample_fleet());
  const std::string json = render(Format::json, report);
  const auto again = read(json);
  REQUIRE(again.size() == 1);
  CHECK(render(Format::json, again[0]) == json);
  for (const auto format : {Format::text, Format::csv, Format::markdown})
    CHECK(render(format, again[0]) == render(format, report));
}

TEST_CASE("real documents are valid by the schema", "[json]") {
  const std::string root = MGPU_SOURCE_DIR;
  const auto folder =
      std::filesystem::temp_directory_path() / ("mgpu-json-test-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::string files;
  const auto save = [&](const std::string& file, const std::string& text) {
    std::ofstream(folder / file) << text;
    files += " '" + (folder / file).string() + "'";
  };
  const std::vector<Report> reports = {sample_report(), sample_host_report(), sample_topology(),
                                       sample_plan(),   failed_report(),      sample_fleet()};
  for (std::size_t i = 0; i < reports.size(); ++i) {
    save(std::to_string(i) + ".json", render(Format::json, reports[i]));
    save(std::to_string(i) + ".jsonl", render(Format::jsonl, reports[i]));
  }
  const std::string validate =
      "python3 '" + root + "/tests/validate.py' '" + root + "/docs/result-schema.json'";
  const auto [code, output] = run(validate + files);
  save("wrong.json", with("/cases/0/summary/new_key", 1));
  const auto [wrong_code, wrong_output] = run(validate + files);
  std::filesystem::remove_all(folder);

  if (code == 127 || code == 77) SKIP("the schema needs python3 with jsonschema: " + output);
  INFO(output);
  CHECK(code == 0);
  CHECK(wrong_code == 1);
  CHECK(wrong_output.find("/cases/0/summary: ") != std::string::npos);
}

TEST_CASE("keys and their order are the documented ones", "[json]") {
  const Json json = document(sample_report());
  CHECK(keys(json) == std::vector<std::string>{"schema", "kind", "tool", "command", "started",
                                               "ended", "complete", "exit_code", "error",
                                               "warnings", "host", "environment", "backend",
                                               "driver", "devices", "cases"});
  CHECK(keys(json["cases"][0]["case"]) == std::vector<std::string>{"gpus",
                                                                   "gpu_count",
                                                                   "memory",
                                                                   "source_memory",
                                                                   "destination_memory",
                                                                   "from",
                                                                   "to",
                                                                   "bidirectional",
                                                                   "split",
                                                                   "size_bytes",
                                                                   "size_per_gpu",
                                                                   "align",
                                                                   "engine",
                                                                   "access",
                                                                   "batch",
                                                                   "prefetch",
                                                                   "prefetch_repeats",
                                                                   "cold",
                                                                   "owner_wait",
                                                                   "owner_lock",
                                                                   "advise",
                                                                   "runtime",
                                                                   "threads",
                                                                   "peer",
                                                                   "wait",
                                                                   "affinity"});
  CHECK(keys(json["cases"][0]["counters"]) ==
        std::vector<std::string>{"h2d_bytes", "d2h_bytes", "d2d_bytes", "fault_groups", "thrashing",
                                 "throttling_ns", "remote_map_bytes", "d2d_by_cause", "pairs",
                                 "passes"});
  CHECK(keys(json["cases"][0]["causes"][0]) ==
        std::vector<std::string>{"word", "text", "cost_ns", "cost_share", "option"});
  CHECK(keys(json["cases"][0]["per_device"][0]["before"]) ==
        std::vector<std::string>{"sm_mhz", "sm_max_mhz", "memory_mhz", "memory_max_mhz", "power_w",
                                 "power_limit_w", "temperature_c", "event_reasons",
                                 "other_processes"});
  CHECK(json["schema"] == 1);
  CHECK(json["cases"][0]["case"]["size_per_gpu"] == 2'000'000'000);
}

TEST_CASE("words are snake case, marks are as they are", "[json]") {
  const Json json = document(failed_report());
  CHECK(json["cases"][0]["case"]["advise"] == "accessed_by");
  CHECK(json["cases"][0]["verification"]["mismatch"]["kind"] == "never_written");
  CHECK(json["cases"][0]["marks"] == Json::array({"L2", "verify-every"}));
  CHECK(json["cases"][0]["case"]["from"] == "1");
  CHECK(json["cases"][0]["case"]["runtime"] == "cudajl_5_7_nosync");
  CHECK(json["cases"][0]["causes"][0]["word"] == "array_prefetch");
  CHECK(json["error"]["code"] == 6);
}

TEST_CASE("what is absent is null", "[json]") {
  const Json skipped = document(failed_report())["cases"][1];
  for (const std::string key :
       {"key", "summary", "rates", "verified", "harness_ns", "counters", "modes", "baseline"}) {
    INFO(key);
    CHECK(skipped[key].is_null());
  }
  CHECK(skipped["causes"] == Json::array());
  CHECK(skipped["case"]["runtime"].is_null());
  const Json sample = document(sample_report())["cases"][0];
  CHECK(sample["causes"][1]["option"].is_null());
  CHECK(sample["counters"]["pairs"][0] == Json{{"from", nullptr}, {"to", 0}, {"bytes", 1'500'000}});
  const Json host = document(sample_host_report());
  CHECK(host["cases"][0]["per_device"][0]["after"].is_null());
  CHECK(host["devices"][0]["uuid"].is_null());
  CHECK(host["driver"]["version"].is_null());
}

TEST_CASE("numbers are exact, and never NaN or infinite", "[json]") {
  Report report = sample_report();
  CaseResult& result = report.cases[0];
  result.samples_ns = {0.1, 100'000, 1e300};
  result.harness_ns = std::numeric_limits<double>::quiet_NaN();
  result.overlap = std::numeric_limits<double>::infinity();
  result.what.size = std::numeric_limits<Bytes>::max();
  const std::string text = render(Format::json, report);
  CHECK(text.find("\"samples_ns\": [0.1,100000,1e+300]") != std::string::npos);
  const Json json = Json::parse(text);
  CHECK(json["cases"][0]["harness_ns"].is_null());
  CHECK(json["cases"][0]["overlap"].is_null());
  CHECK(read(text)[0].cases[0].what.size == std::numeric_limits<Bytes>::max());
}

TEST_CASE("an argument that is no UTF-8 still gives a document", "[json]") {
  Report report = sample_report();
  report.command = {"mgpu", "\xff", ""};
  const Json json = document(report);
  CHECK(json["command"][1] == "\xef\xbf\xbd");
  CHECK(json["command"][2] == "");
}

TEST_CASE("JSON Lines have a document a case, and read as such", "[json]") {
  const std::string lines = render(Format::jsonl, two_cases());
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
  const auto reports = read(lines);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].cases.size() == 1);
  CHECK(reports[1].cases[0].key == "1111111111111111");
  CHECK(read(lines + lines).size() == 4);
}

TEST_CASE("a last line that is cut off is ignored with a note", "[json]") {
  const std::string lines = render(Format::jsonl, two_cases());
  std::vector<std::string> notes;
  CHECK(read_reports(lines.substr(0, lines.size() - 20), "run.jsonl", notes).size() == 1);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == "run.jsonl:2: the last line is cut off and was ignored");
}

TEST_CASE("a last line that only lacks its line feed is read", "[json]") {
  std::string lines = render(Format::jsonl, two_cases());
  lines.pop_back();
  CHECK(read(lines).size() == 2);
}

TEST_CASE("a cut off line that is not the last one is refused with its number", "[json]") {
  const std::string lines = render(Format::jsonl, sample_report());
  CHECK(refusal(lines + lines.substr(0, 100) + "\n" + lines).starts_with("run.json:2:"));
}

TEST_CASE("a file that is empty, cut off or foreign is refused", "[json]") {
  const std::string json = render(Format::json, sample_report());
  CHECK(refusal("") == "run.json: the file is empty");
  CHECK(refusal(" \n\n") == "run.json: the file is empty");
  CHECK(refusal(json.substr(0, json.size() / 2)).find("cut off") != std::string::npos);
  CHECK(refusal("{\n  \"schema\": nope\n}\n").starts_with("run.json:2:"));
  CHECK(refusal("hello\n") == "run.json:1:1: not JSON");
  CHECK(refusal("[1, 2]\n") == "run.json:1: not a result of mgpu");
  CHECK(refusal("{\"schema\": 1}\n") == "run.json:1: not a result of mgpu");
  CHECK(refusal(with("/tool/name", "nvbandwidth")) == "run.json: not a result of mgpu");
  CHECK(refusal(json + json).starts_with("run.json:"));
  CHECK(refusal(json + "x").starts_with("run.json:"));
  const std::string lines = render(Format::jsonl, sample_report());
  CHECK(refusal(lines + std::string("\0\n", 2) + lines) == "run.json:2:1: not JSON");
  CHECK(refusal(json.substr(0, json.size() - 1) + std::string("\0{}", 3)).ends_with("not JSON"));
}

TEST_CASE("a newer schema is refused and says so", "[json]") {
  const std::string said = refusal(with("/schema", 2));
  CHECK(said.find("newer mgpu") != std::string::npos);
  CHECK(said.find("schema 2") != std::string::npos);
  CHECK(refusal(with("/schema", 0)) == "run.json: /schema: there is no schema 0");
}

TEST_CASE("a value of the wrong type is refused with its place", "[json]") {
  const auto [pointer, value] = GENERATE(table<std::string, Json>({
      {"/cases/0/summary/median", "fast"},
      {"/cases/0/summary/min", nullptr},
      {"/cases/0/samples_ns/3", "x"},
      {"/cases/0/samples_ns/3", -1},
      {"/cases/0/samples_ns/3", 0},
      {"/cases/0/case/gpus/1", 2},
      {"/cases/0/case/gpus/0", -1},
      {"/cases/0/case/batch", -1},
      {"/cases/0/verification/passes", -1},
      {"/cases/0/per_device/1/slices", -1},
      {"/cases/0/bytes_copied", -1},
      {"/cases/0/samples", 1.5},
      {"/cases/0/samples", 3},  // fewer than are stored
      {"/cases/0/case/split", 1e10},
      {"/cases/0/case/split", 10'000'000'000},
      {"/cases/0/case/size_bytes", -1},
      {"/cases/0/case/engine", "teleport"},
      {"/cases/0/case/engine", nullptr},
      {"/cases/0/case/from", "7x"},
      {"/cases/0/case/from", "-1"},
      {"/cases/0/case/cold", 0},
      {"/cases/0/per_device/1/index", 2},
      {"/cases/0/per_device/1/index", -1},
      {"/cases/0/marks/0", "shiny"},
      {"/cases/0/case/runtime", "cudajl-5.4"},
      {"/cases/0/counters/d2d_by_cause/user", nullptr},
      {"/cases/0/counters/pairs/1/to", "host"},
      {"/cases/0/causes/0/word", "bad_luck"},
      {"/cases/0/modes/low_share", "most"},
      {"/cases/0/per_device/0/after/event_reasons", nullptr},
      {"/devices/1/ordinal", 0},
      {"/devices/1/name", 7},
      {"/cases", nullptr},
      {"/kind", "armada"},
      {"/host/slurm/SLURM_JOB_ID", 1},
  }));
  INFO(pointer);
  CHECK(refusal(with(pointer, value)).starts_with("run.json: " + pointer));
}

TEST_CASE("a key that is missing is named", "[json]") {
  Json json = document(sample_report());
  json["cases"][0]["case"].erase("size_bytes");
  CHECK(refusal(json.dump(2)) == "run.json: /cases/0/case/size_bytes: is missing");
}

TEST_CASE("unknown keys are passed over, and an absent feature's key may be missing", "[json]") {
  Json json = document(sample_report());
  json["future"] = {{"a", 1}};
  json["cases"][0]["summary"]["mode"] = 3;
  json["cases"][0].erase("counters");
  json["cases"][0].erase("harness_ns");
  json["cases"][0].erase("modes");
  json["cases"][0]["case"].erase("prefetch_repeats");
  json["cases"][0]["per_device"][0].erase("before");
  const CaseResult result = read(json.dump(2)).at(0).cases.at(0);
  CHECK(result.samples == 100);
  CHECK(result.what.prefetch_repeats == 1);
}

TEST_CASE("a link that names no device is refused", "[json]") {
  Json json = document(sample_topology());
  json["links"][0]["to"] = 2;
  CHECK(refusal(json.dump(2)).starts_with("run.json: /links"));
}

TEST_CASE("hostile nesting and numbers are refused, not followed", "[json]") {
  CHECK(refusal(std::string(1'000'000, '[')).starts_with("run.json"));
  CHECK(refusal(with("/future", 1)
                    .insert(1, "\"deep\":" + std::string(100, '[') + std::string(100, ']') +
                                   ",")) == "run.json: nested deeper than 32 levels");
  std::string huge = with("/cases/0/harness_ns", 12345);
  const std::size_t place = huge.find("12345");
  const auto line =
      std::count(huge.begin(), huge.begin() + static_cast<std::ptrdiff_t>(place), '\n');
  CHECK(refusal(huge.replace(place, 5, "1e999"))
            .starts_with("run.json:" + std::to_string(line + 1) + ":"));
}

TEST_CASE("times of day are such, and in UTC", "[json]") {
  for (const std::string good : {"2025-11-30T12:00:00Z", "2024-02-29T23:59:60.125Z"})
    CHECK(read(with("/started", good)).size() == 1);
  for (const std::string bad :
       {"yesterday", "2025-11-30", "2025-11-30T12:00:00", "2025-11-30T12:00:00+01:00",
        "2025-02-29T12:00:00Z", "2025-13-01T12:00:00Z", "2025-11-31T12:00:00Z",
        "2025-11-30T24:00:00Z", "2025-11-30T12:00:00.Z", "2025-11-30T12:00:00.1aZ"}) {
    INFO(bad);
    CHECK(refusal(with("/started", bad)).starts_with("run.json: /started: "));
  }
  CHECK(refusal(with("/host/rank", -1)).starts_with("run.json: /host"));
}

TEST_CASE("efficiencies are one object, null where there is neither", "[json]") {
  Report report = sample_report();
  CHECK(document(report)["cases"][0]["efficiency"].is_null());
  report.cases[0].weak_efficiency = 0.75;
  CHECK(document(report)["cases"][0]["efficiency"] == Json({{"weak", 0.75}, {"strong", nullptr}}));
  const CaseResult result = read(document(report).dump(2)).at(0).cases.at(0);
  CHECK(result.weak_efficiency == 0.75);
  CHECK_FALSE(result.strong_efficiency);
}

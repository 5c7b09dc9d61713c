// SPDX-License-Identifier: MIT
#include "report/report.hpp"
#include "sample_comparison.hpp"
#include "sample_fleet.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>

using namespace mgpu;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

using Json = nlohmann::ordered_json;
using Places = std::map<std::size_t, Outlier>;

/// Which values are outliers.
Places found_in(const std::vector<double>& values, double floor) {
  const Outliers outliers = find_outliers(values, floor);
  Places places;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (outliers.found[i]) places[i] = *outliers.found[i];
  return places;
}

std::vector<std::string> hosts(const Fleet& fleet) {
  std::vector<std::string> names;
  for (const FleetNode& node : fleet.nodes) names.push_back(node.host);
  return names;
}

/// What the reader says of the sample with one value replaced.
std::string refusal(const std::string& pointer, const Json& value) {
  Json json = Json::parse(render(Format::json, sample_fleet()));
  json[Json::json_pointer(pointer)] = value;
  std::vector<std::string> notes;
  try {
    read_reports(json.dump(2), "fleet.json", notes);
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("a floor of 10% finds the planted 15% and 60% among 8000 GPUs, and nothing else",
          "[fleet]") {
  Samples values = Noise(1).independent(8000, 0.01);
  const double middle = median(values);
  values[17] = 1.05 * middle;
  values[4711] = 1.15 * middle;
  values[7999] = 1.60 * middle;
  CHECK(found_in(values, 0.10) == Places{{4711, Outlier::slow}, {7999, Outlier::slow}});
  const Outliers outliers = find_outliers(values, 0.10);
  CHECK(outliers.threshold == Approx(0.10 * outliers.median));
  CHECK(outliers.mad == Approx(0.00674 * middle).epsilon(0.05));
}

TEST_CASE("the more GPUs, the further out is an outlier", "[fleet]") {
  const auto multiple_of = [](std::size_t n) {
    std::vector<double> values(n);
    std::iota(values.begin(), values.end(), 1e6);
    const Outliers outliers = find_outliers(values, 0);
    return *outliers.threshold / (1.4826 * outliers.mad);
  };
  CHECK(multiple_of(8) == Approx(3.5));
  CHECK(multiple_of(1000) == Approx(4.4172).epsilon(0.001));  // z(1 - 5e-6)
  CHECK(multiple_of(8000) == Approx(4.8481).epsilon(0.001));  // z(1 - 6.25e-7)
}

TEST_CASE("slow GPUs do not hide each other where a tenth of the fleet is slow", "[fleet]") {
  Samples values = Noise(2).independent(200, 0.01);
  for (std::size_t i = 0; i < 20; ++i) values[10 * i] *= 1.3;
  const Places found = found_in(values, 0.05);
  CHECK(found.size() == 20);
  CHECK(std::ranges::all_of(
      found, [](const auto& one) { return one.first % 10 == 0 && one.second == Outlier::slow; }));
}

TEST_CASE("of fewer than four values none is judged", "[fleet]") {
  CHECK(found_in({1, 1, 9}, 0.05).empty());
  CHECK_FALSE(find_outliers(std::vector<double>{1, 1, 9}, 0.05).threshold);
  CHECK(found_in({1, 1, 1, 9}, 0.05) == Places{{3, Outlier::slow}});
}

TEST_CASE("equal values have no outlier, and one beyond the floor is one", "[fleet]") {
  CHECK(found_in(std::vector<double>(100, 5.0), 0).empty());
  std::vector<double> values(100, 100.0);
  values[3] = 104;
  CHECK(found_in(values, 0.05).empty());
  values[3] = 106;
  values[4] = 94;
  CHECK(found_in(values, 0.05) == Places{{3, Outlier::slow}, {4, Outlier::fast}});
}

TEST_CASE("lists of hosts are written as Slurm reads them", "[fleet]") {
  using Names = std::vector<std::string>;
  const std::vector<std::pair<Names, std::string>> lists = {
      {{}, ""},
      {{""}, ""},
      {{"node003"}, "node003"},
      {{"node017", "node003", "node018", "node019"}, "node[003,017-019]"},
      {{"node9", "node10", "node8"}, "node[8-9],node10"},
      {{"n01", "n1", "n2"}, "n01,n[1-2]"},
      {{"node003", "node003"}, "node003"},
      {{"login", "gpu-a", "login"}, "gpu-a,login"},
      {{"rack1-node02", "rack1-node01", "rack2-node01"}, "rack1-node[01-02],rack2-node01"},
      {{"node1.site", "node2.site"}, "node1.site,node2.site"},
      {{"a2", "login", "a1"}, "a[1-2],login"},
      {{"7", "8"}, "[7-8]"},
      {{"x000000000000000000001", "x000000000000000000002"},
       "x000[000000000000000001-000000000000000002]"},
      {{"n099", "n100", "n101"}, "n[099-101]"},
  };
  for (const auto& [names, list] : lists) CHECK(host_list(names) == list);
}

TEST_CASE("numbers in names of hosts count by their value", "[fleet]") {
  const HostOrder before;
  CHECK(before("node2", "node10"));
  CHECK_FALSE(before("node10", "node2"));
  CHECK(before("rack2-node1", "rack10-node0"));
  CHECK(before("node", "node1"));
  CHECK(before("node02", "node2"));  // equal numbers: some order, and only one
  CHECK_FALSE(before("node2", "node02"));
  CHECK_FALSE(before("node2", "node2"));
}

TEST_CASE("a fleet has its nodes in order, each with what its GPUs took", "[fleet]") {
  const Fleet fleet = *sample_fleet().fleet;
  CHECK(hosts(fleet) == std::vector<std::string>{"node2", "node10", "node12"});
  REQUIRE(fleet.cases.size() == 1);
  CHECK(fleet.cases[0].gpus == 8);
  CHECK(fleet.cases[0].nodes == 2);
  CHECK(fleet.cases[0].min_ns == 1.5e6);
  CHECK(fleet.cases[0].median_ns == 2.0e6);
  CHECK(fleet.cases[0].max_ns == 3.2e6);
  CHECK(fleet.cases[0].threshold == Approx(0.10));
  REQUIRE(fleet.gpus.size() == 8);
  const FleetGpu& slow = fleet.gpus[6];
  CHECK(slow.host == "node10");
  CHECK(slow.rank == 2);
  CHECK(slow.ordinal == 2);
  CHECK(slow.outlier == Outlier::slow);
  CHECK(slow.ratio == Approx(1.6));
  CHECK(slow.min_ns == Approx(3.168e6));
  CHECK(slow.rate == Approx(2e9 / 3.2e-3));
  CHECK(fleet.gpus[1].outlier == Outlier::fast);
  CHECK(fleet.nodes[0].ranks == std::vector<int>{0});
  CHECK(fleet.nodes[0].slow == 0);
  CHECK(fleet.nodes[1].slow == 1);
  CHECK(fleet.nodes[1].gpus == 4);
  REQUIRE(fleet.nodes[1].cases.size() == 1);
  CHECK(fleet.nodes[1].cases[0].median_ns == Approx(2.005e6));
}

TEST_CASE("nodes with a slow GPU or a failure are to be excluded", "[fleet]") {
  CHECK(sample_fleet().fleet->exclude == "node[10,12]");
  CHECK(fleet_of({node_of("a", {1, 1, 1, 1})}).exclude.empty());
  CHECK(fleet_of({node_of("a", {10, 10, 10, 5})}).exclude.empty());  // fast
}

TEST_CASE("what failed, was cut short or ended with an error is told once", "[fleet]") {
  Report failed = node_of("a", {1e6, 1e6});
  failed.cases.push_back(failed.cases[0]);
  for (CaseResult& result : failed.cases) {
    result.outcome = OutcomeKind::failed;
    result.error_kind = ErrorKind::verification;
    result.reason = "device 1 wrote wrong data";
  }
  failed.error = ErrorInfo{ErrorKind::verification, "verification failed in 2 cases", 1};
  Report late = node_of("b", {1e6});
  late.error = ErrorInfo{ErrorKind::timeout, "GPU 0 did not answer", 0};
  late.complete = false;
  Report cut = node_of("c", {1e6});
  cut.complete = false;
  cut.exit_code = 143;
  Report skipped = node_of("d", {1e6});
  skipped.cases[0].outcome = OutcomeKind::skipped;
  Report ended = node_of("e", {1e6});
  ended.complete = false;
  ended.exit_code = 1;
  const Fleet fleet = fleet_of({failed, late, cut, skipped, ended, ended});
  using Texts = std::vector<std::string>;
  CHECK(fleet.nodes[0].failures == Texts{"verification: device 1 wrote wrong data"});
  CHECK(fleet.nodes[1].failures == Texts{"timeout: GPU 0 did not answer"});
  CHECK(fleet.nodes[2].failures.empty());  // by a signal
  CHECK(fleet.nodes[3].failures.empty());
  CHECK(fleet.nodes[4].failures == Texts{"cut short, exit code 1"});
  CHECK(fleet.exclude == "a,b,e");
  // Wrong data has no time.
  CHECK(fleet.nodes[0].gpus == 0);
  CHECK(fleet.nodes[3].gpus == 0);
  CHECK(fleet.nodes[2].gpus == 1);
}

TEST_CASE("a signal hides no failure", "[fleet]") {
  Report failed = node_of("a", {1e6});
  failed.cases[0].outcome = OutcomeKind::failed;
  failed.cases[0].error_kind = ErrorKind::verification;
  failed.cases[0].reason = "wrong data";
  failed.complete = false;
  failed.exit_code = 130;
  CHECK(fleet_of({failed}).nodes[0].failures ==
        std::vector<std::string>{"verification: wrong data"});
}

TEST_CASE("a node that fell silent is to be excluded, also where it told nothing", "[fleet]") {
  FleetBuilder builder;
  builder.add(node_of("a", {1e6}));
  builder.failed("b", "rank 1 fell silent");
  builder.failed("b", "rank 1 fell silent");
  builder.failed("a", "rank 0 fell silent");
  builder.failed("", "rank 2 fell silent");
  const Fleet fleet = builder.finish(5);
  CHECK(hosts(fleet) == std::vector<std::string>{"a", "b"});
  CHECK(fleet.nodes[0].gpus == 1);
  CHECK(fleet.nodes[0].failures == std::vector<std::string>{"rank 0 fell silent"});
  CHECK(fleet.nodes[1].failures == std::vector<std::string>{"rank 1 fell silent"});
  CHECK(fleet.exclude == "a,b");
}

TEST_CASE("missing ranks come in order, known by host or not, and exclude no node", "[fleet]") {
  FleetBuilder builder;
  builder.add(node_of("a", {1e6}, 0));
  builder.missing({7, "", ""});
  builder.missing({3, "b", "00ff12ab34cd56ef"});
  const Fleet fleet = builder.finish(5);
  REQUIRE(fleet.missing.size() == 2);
  CHECK(fleet.missing[0].rank == 3);
  CHECK(fleet.missing[1].rank == 7);
  CHECK(fleet.exclude.empty());
}

TEST_CASE("results of one case of one GPU are rounds of it", "[fleet]") {
  const Fleet fleet =
      fleet_of({node_of("a", {1.0e6}), node_of("a", {1.4e6}), node_of("a", {1.1e6})});
  REQUIRE(fleet.gpus.size() == 1);
  CHECK(fleet.gpus[0].rounds == 3);
  CHECK(fleet.gpus[0].median_ns == 1.1e6);
  CHECK(fleet.gpus[0].min_ns == 0.99e6);
  CHECK(fleet.gpus[0].max_ns == Approx(1.414e6));
  CHECK(fleet.gpus[0].rate == Approx(2e9 / 1.1e-3));
  CHECK(fleet.nodes[0].gpus == 1);
}

TEST_CASE("a GPU is itself whichever rank uses it; devices without a UUID are their rank's",
          "[fleet]") {
  CHECK(fleet_of({node_of("a", {1e6}, 0), node_of("a", {1e6}, 1)}).gpus.size() == 1);
  const auto without_uuid = [](int rank) {
    Report report = node_of("a", {1e6}, rank);
    report.machine.devices[0].uuid.clear();
    return report;
  };
  const Fleet fleet = fleet_of({without_uuid(1), without_uuid(0), without_uuid(1)});
  REQUIRE(fleet.gpus.size() == 2);
  CHECK(fleet.gpus[0].rank == 0);
  CHECK(fleet.gpus[1].rank == 1);
  CHECK(fleet.gpus[1].rounds == 2);
  CHECK(fleet.nodes[0].gpus == 2);
  CHECK(fleet.nodes[0].ranks == std::vector<int>{0, 1});
}

TEST_CASE("GPUs are compared with those of their model alone", "[fleet]") {
  std::vector<Report> nodes;
  for (const std::string host : {"a", "b", "c", "d"}) {
    nodes.push_back(node_of(host, {1e6, 3e6}));
    nodes.back().machine.devices[1].name = "NVIDIA L40S";
  }
  const Fleet fleet = fleet_of(nodes);
  REQUIRE(fleet.cases.size() == 2);
  CHECK(fleet.cases[0].key == fleet.cases[1].key);
  CHECK(fleet.cases[0].name == "NVIDIA H200");
  CHECK(fleet.cases[1].name == "NVIDIA L40S");
  CHECK(fleet.cases[1].gpus == 4);
  CHECK(fleet.nodes[0].gpus == 2);
  CHECK(fleet.nodes[0].cases.size() == 2);
  for (const FleetGpu& gpu : fleet.gpus) CHECK_FALSE(gpu.outlier);
}

TEST_CASE("a GPU that copies less is not fast, and an idle one is none", "[fleet]") {
  Report uneven = node_of("a", {1e6, 1e6, 1e6, 0.5e6, 1e6});
  uneven.cases[0].per_device[3].bytes /= 2;
  uneven.cases[0].per_device[4].bytes = 0;
  const Fleet fleet = fleet_of({uneven});
  REQUIRE(fleet.gpus.size() == 4);
  CHECK(fleet.gpus[3].ratio == 1);
  CHECK_FALSE(fleet.gpus[3].outlier);
  CHECK(fleet.gpus[3].median_ns == 0.5e6);
  CHECK(fleet.cases[0].min_ns == 1e6);
}

TEST_CASE("without device times the samples stand for a GPU that copies alone", "[fleet]") {
  Report alone = node_of("a", {1e6}), together = node_of("b", {1e6, 1e6});
  for (Report* report : {&alone, &together})
    for (DeviceResult& part : report->cases[0].per_device) part.device_ns.reset();
  const Fleet fleet = fleet_of({alone, together});
  REQUIRE(fleet.gpus.size() == 1);
  CHECK(fleet.gpus[0].host == "a");
  CHECK(fleet.gpus[0].median_ns == 2.1e6);
  CHECK(fleet.gpus[0].min_ns == 2.1e6);
  CHECK_FALSE(fleet.cases[0].device_times);
  CHECK(fleet_of({node_of("a", {1e6})}).cases[0].device_times);
}

TEST_CASE("rates count what the case counts", "[fleet]") {
  Report node = node_of("a", {1e6});
  node.cases[0].basis = Basis::copied;
  CHECK(fleet_of({node}).gpus[0].rate == Approx(1e12));
  CHECK(fleet_of({node}).cases[0].basis == Basis::copied);
}

TEST_CASE("the JSON of a fleet has the documented keys", "[fleet]") {
  const Json json = Json::parse(render(Format::json, sample_fleet()));
  CHECK(json["kind"] == "fleet");
  CHECK(json["outlier_percent"] == 10);
  CHECK(json["exclude"] == "node[10,12]");
  CHECK(json["nodes"].size() == 3);
  CHECK(json["nodes"][2]["failures"][0] == "verification: device 1 wrote wrong data");
  CHECK(json["missing"][0] == Json{{"rank", 3}, {"host", "node11"}, {"last_case", nullptr}});
  CHECK(json["gpus"][6]["outlier"] == "slow");
  CHECK(json["gpus"][6]["uuid"] == "GPU-00000002-node10");
  CHECK(json["gpus"][0]["outlier"].is_null());
  CHECK(json["distribution"][0]["case"]["split"] == 4);
  CHECK(json["distribution"][0]["device_times"] == true);
  CHECK_FALSE(json.contains("cases"));
}

TEST_CASE("a fleet is one line of JSON Lines, and reads as such", "[fleet]") {
  const std::string line = render(Format::jsonl, sample_fleet());
  CHECK(std::ranges::count(line, '\n') == 1);
  std::vector<std::string> notes;
  const auto reports = read_reports(line, "fleet.jsonl", notes);
  REQUIRE(reports.size() == 1);
  CHECK(render(Format::jsonl, reports[0]) == line);
}

TEST_CASE("a fleet that makes no sense is refused with its place", "[fleet]") {
  const auto [pointer, value] = GENERATE(table<std::string, Json>({
      {"/gpus/3/key", "0000000000000000"},
      {"/gpus/3/name", "NVIDIA L40S"},
      {"/gpus/3/ordinal", -1},
      {"/gpus/3/rank", -1},
      {"/gpus/3/rounds", 0},
      {"/gpus/3/median_ns", 0},
      {"/gpus/3/ratio", -1},
      {"/gpus/3/ratio", 1e308},
      {"/distribution/0/median_ns", 0},
      {"/gpus/3/outlier", "odd"},
      {"/nodes/1/ranks/0", -1},
      {"/nodes/1/cases/0/key", "x"},
      {"/missing/0/rank", -1},
      {"/distribution/0/case/split", -1},
      {"/distribution", Json::array()},
      {"/exclude", 7},
  }));
  INFO(pointer);
  CHECK(refusal(pointer, value).starts_with("fleet.json: /"));
}

TEST_CASE("a fleet as CSV is a row a GPU", "[fleet]") {
  const std::string csv = render(Format::csv, sample_fleet());
  CHECK(std::ranges::count(csv, '\n') == 9);
  CHECK(
      csv.starts_with("started,backend,key,host,rank,ordinal,uuid,pci,name,bytes,rounds,min_ns,"
                      "median_ns,max_ns,rate_bytes_per_s,ratio,outlier,gpus,gpu_count,memory,"));
  CHECK_THAT(csv, ContainsSubstring(",node10,2,2,GPU-00000002-node10,00000000:12:00.0,NVIDIA H200,"
                                    "1000000000,1,3168000,3200000,3232000,625000000000,1.6,slow,"));
}

TEST_CASE("in JUnit's XML a slow GPU, a failure and a missing rank fail", "[fleet]") {
  const std::string xml = render(Format::xml, sample_fleet());
  CHECK_THAT(xml, ContainsSubstring("tests=\"10\" failures=\"3\" errors=\"0\" skipped=\"0\""));
  CHECK_THAT(xml, ContainsSubstring("name=\"node10 rank 2 GPU 2 (GPU-00000002-node10): "));
  CHECK_THAT(xml, ContainsSubstring("<failure message=\"slow: median 3.200 ms, +60.0% from the "
                                    "fleet's, threshold 10.0%\"/>"));
  CHECK_THAT(xml, ContainsSubstring("<failure message=\"verification: device 1 wrote wrong data"));
  CHECK_THAT(xml, ContainsSubstring("name=\"rank 3 on node11\""));
  Report few = sample_fleet();
  few.fleet = fleet_of({node_of("a", {1e6, 2e6})});
  CHECK_THAT(render(Format::xml, few),
             ContainsSubstring("failures=\"0\" errors=\"0\" skipped=\"2\""));
}

TEST_CASE("a fleet has no picture", "[fleet]") {
  for (const Format format : {Format::gp, Format::dot})
    CHECK_THROWS_AS(render(format, sample_fleet()), Error);
  try {
    render(Format::gp, sample_fleet());
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("csv"));
  }
}

TEST_CASE("a host that no list of nodes could name excludes no other", "[fleet]") {
  const Fleet fleet = fleet_of({node_of("node[1-2]", {1e6, 1e6, 1e6, 3e6}), node_of("a,b", {1e6}),
                                node_of("node3", {1e6, 1e6, 1e6, 3e6})});
  CHECK(fleet.exclude == "node3");
  CHECK_THAT(fleet.nodes.back().failures.at(0), ContainsSubstring("cannot stand in a list"));
}

TEST_CASE("what cannot be the time of a copy is refused", "[fleet]") {
  for (const double ns : {5e-324, 1e300}) {
    FleetBuilder builder;
    CHECK_THROWS_AS(builder.add(node_of("a", {1e6, ns})), Error);
  }
}

// SPDX-License-Identifier: MIT
#include "report/report.hpp"
#include "sample_report.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

using namespace mgpu;

namespace {

/// Rows of fields, by RFC 4180.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& field = rows.back().back();
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      field += text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && c == ',')
      rows.back().emplace_back();
    else if (!quoted && c == '\n')
      rows.emplace_back(1);
    else
      field += c;
  }
  rows.pop_back();
  return rows;
}

std::vector<std::map<std::string, std::string>> records(const Report& report) {
  const auto rows = parse_csv(render(Format::csv, report));
  std::vector<std::map<std::string, std::string>> found;
  for (std::size_t row = 1; row < rows.size(); ++row) {
    REQUIRE(rows[row].size() == rows[0].size());
    auto& record = found.emplace_back();
    for (std::size_t i = 0; i < rows[0].size(); ++i) record[rows[0][i]] = rows[row][i];
  }
  return found;
}

std::string header(const Report& report) {
  const std::string text = render(Format::csv, report);
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("a case is a row for all devices, then one for each", "[csv]") {
  const auto rows = records(sample_report());
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("device") == "all");
  CHECK(rows[0].at("key") == "00ff12ab34cd56ef");
  CHECK(rows[0].at("gpus") == "0 1");
  CHECK(rows[0].at("size_bytes") == "4000000000");
  CHECK(rows[0].at("median_ns") == "100049.5");
  CHECK(rows[0].at("max_ns") == "4000000");
  CHECK(rows[0].at("moved_median_bytes_per_s") == "3980000000000");
  CHECK(rows[0].at("copied_min_bytes_per_s") == "1433000000000");
  CHECK(rows[0].at("verified") == "true");
  CHECK(rows[0].at("verification_passes") == "105");
  CHECK(rows[0].at("mismatch_offset").empty());
  CHECK(rows[0].at("marks") == "L2 verify-every");
  CHECK(rows[0].at("causes") == "array_prefetch imbalance");
  CHECK(rows[0].at("counters_d2d_bytes") == "9140000000");
  CHECK(rows[0].at("d2d_by_cause_user") == "8400000000");
  CHECK(rows[0].at("counters_passes") == "4");
  CHECK(rows[0].at("modes_low_share") == "0.96");
  CHECK(rows[0].at("modes_high_centre_ns") == "2500000");
  CHECK(rows[1].at("device") == "0");
  CHECK(rows[2].at("device") == "1");
  CHECK(rows[2].at("uuid") == "GPU-77b2d1aa-90e2-4cf1-8a11-000000000002");
  CHECK(rows[2].at("key") == rows[0].at("key"));
  CHECK(rows[2].at("device_ns") == "99501.5");
  CHECK(rows[2].at("device_min_ns") == "98001");
  CHECK(rows[2].at("device_max_ns") == "1200000.5");
  CHECK(rows[2].at("of_peak") == "0.8375");
  CHECK(rows[2].at("before_power_w") == "118.25");
  CHECK(rows[2].at("after_sm_max_mhz") == "1980");
  CHECK(rows[2].at("after_event_reasons").empty());
  CHECK(rows[2].at("median_ns").empty());
}

TEST_CASE("columns do not depend on what was measured, and each is there once", "[csv]") {
  Report skipped = sample_report();
  skipped.cases = {CaseResult{}};
  Report none = sample_report();
  none.cases.clear();
  CHECK(header(skipped) == header(sample_report()));
  CHECK(header(none) == header(sample_report()));
  const auto names = parse_csv(header(sample_report()) + "\n").front();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("what a case does not have is empty, not zero", "[csv]") {
  Report report = sample_report();
  report.cases = {CaseResult{}};
  const auto rows = records(report);
  REQUIRE(rows.size() == 1);
  for (const std::string column : {"median_ns", "moved_median_bytes_per_s", "harness_ns", "of_peak",
                                   "verified", "mismatch_kind", "counters_h2d_bytes",
                                   "counters_passes", "modes_low_share", "causes", "runtime"}) {
    INFO(column);
    CHECK(rows[0].at(column).empty());
  }
}

TEST_CASE("what holds a device's clocks down is one cell, with blanks between", "[csv]") {
  Report report = sample_report();
  report.cases[0].per_device[1].after->event_reasons = {"sw-power-cap", "hw-slowdown"};
  const auto rows = records(report);
  CHECK(rows[2].at("after_event_reasons") == "sw-power-cap hw-slowdown");
  CHECK(rows[2].at("before_event_reasons").empty());
}

TEST_CASE("commas, quotes and line feeds survive", "[csv]") {
  Report report = sample_report();
  report.cases[0].reason = "one, \"two\"\nthree";
  CHECK(records(report)[0].at("reason") == "one, \"two\"\nthree");
}

TEST_CASE("control characters of foreign files become question marks", "[csv]") {
  Report report = sample_report();
  report.cases[0].reason = "a\x1b[31mb\nc\r";
  CHECK(records(report)[0].at("reason") == "a?[31mb\nc?");
}

TEST_CASE("a topology is a row a device", "[csv]") {
  const auto rows = records(sample_topology());
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].at("device") == "1");
  CHECK(rows[1].at("memory_peak_bytes_per_s") == "4800000000000");
  CHECK(rows[1].at("cpus") == "2 3");
}

TEST_CASE("a plan is a row a case, and one for each place that needs memory", "[csv]") {
  const auto rows = records(sample_plan());
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].at("outcome") == "planned");
  CHECK(rows[1].at("need_bytes") == "4000000000");
  CHECK(rows[3].at("device") == "host");
  CHECK(rows[4].at("outcome") == "skipped");
  CHECK(rows[4].at("reason") == "GPU 1 has no managed memory, use --memory device");
}

TEST_CASE("both efficiencies have columns", "[csv]") {
  Report report = sample_report();
  CHECK(records(report)[0].at("efficiency_weak").empty());
  report.cases[0].strong_efficiency = 0.5;
  CHECK(records(report)[0].at("efficiency_strong") == "0.5");
}

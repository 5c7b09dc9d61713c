// SPDX-License-Identifier: MIT
#include "model/sweep.hpp"
#include "report/report.hpp"
#include "run.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>
#include <vector>

using namespace mgpu;

namespace {

/// A measured case of `size` bytes, a slice a device, its median known to the nanosecond.
CaseResult measured(std::vector<int> gpus, Bytes size, double median) {
  CaseResult result;
  result.what.split = static_cast<int>(gpus.size());
  result.what.gpus = std::move(gpus);
  result.what.size = size;
  result.samples = 10;
  result.summary.median = result.summary.median_low = result.summary.median_high = median;
  return result;
}

/// Of the last case of a JSON document.
std::optional<double> weak_efficiency_in(const std::string& document) {
  std::vector<std::string> notes;
  return read_reports(document, "run.json", notes).at(0).cases.back().weak_efficiency;
}

}  // namespace

TEST_CASE("weak efficiency is one device's median over that of N with N times the bytes",
          "[efficiency]") {
  std::vector cases = {measured({0}, 1000, 80), measured({0, 1}, 2000, 100),
                       measured({0, 1, 2, 3}, 4000, 160)};
  fill_efficiencies(cases);
  CHECK_FALSE(cases[0].weak_efficiency);
  CHECK(cases[1].weak_efficiency == 0.8);
  CHECK(cases[2].weak_efficiency == 0.5);
  CHECK_FALSE(cases[1].strong_efficiency);
}

TEST_CASE("strong efficiency is one device's median over N times that of N with the same bytes",
          "[efficiency]") {
  std::vector cases = {measured({0, 1}, 1000, 50), measured({0, 1, 2, 3}, 1000, 40),
                       measured({0}, 1000, 80)};
  fill_efficiencies(cases);
  CHECK(cases[0].strong_efficiency == 0.8);
  CHECK(cases[1].strong_efficiency == 0.5);
  CHECK_FALSE(cases[0].weak_efficiency);
}

TEST_CASE("an efficiency needs a measured case with otherwise equal options", "[efficiency]") {
  std::vector cases = {measured({0}, 1000, 80), measured({0, 1}, 2000, 100)};
  const auto weak = [&] {
    fill_efficiencies(cases);
    return cases[1].weak_efficiency.has_value();
  };
  REQUIRE(weak());
  SECTION("other engine") {
    cases[0].what.engine = Engine::memcpy;
  }
  SECTION("other memory") {
    cases[0].what.memory = MemoryKind::managed;
  }
  SECTION("other split") {
    cases[0].what.split = 3;
  }
  SECTION("one slice against several a device") {
    cases[1].what.split = 4;
  }
  SECTION("device that is none of the two") {
    cases[0].what.gpus = {2};
  }
  SECTION("other size") {
    cases[0].what.size = 1001;
  }
  SECTION("skipped") {
    cases[0].outcome = OutcomeKind::skipped;
  }
  SECTION("failed") {
    cases[1].outcome = OutcomeKind::failed;
  }
  CHECK_FALSE(weak());
}

TEST_CASE("the same number of slices on one device and on two is one option", "[efficiency]") {
  std::vector cases = {measured({0}, 1000, 80), measured({0, 1}, 2000, 100)};
  cases[0].what.split = cases[1].what.split = 4;
  cases[0].what.wait = Wait::spin;  // follows from the CPUs that are left
  fill_efficiencies(cases);
  CHECK(cases[1].weak_efficiency == 0.8);
}

TEST_CASE("an efficiency is against the first of the devices that was measured alone",
          "[efficiency]") {
  std::vector cases = {measured({0}, 1000, 80), measured({1}, 1000, 60), measured({1}, 1000, 10),
                       measured({2, 1, 0}, 3000, 100)};
  fill_efficiencies(cases);
  CHECK(cases[3].weak_efficiency == 0.6);
}

TEST_CASE("of one slice and as many as the devices together, the case that came first counts",
          "[efficiency]") {
  std::vector cases = {measured({0}, 1000, 80), measured({0}, 1000, 60),
                       measured({0, 1}, 2000, 100)};
  const std::size_t as_many = GENERATE(0, 1);
  cases[as_many].what.split = 2;
  fill_efficiencies(cases);
  CHECK(cases[2].weak_efficiency == 0.8);
  // Another number of slices is another option, whichever comes first.
  cases[0].what.split = 3;
  fill_efficiencies(cases);
  CHECK(cases[2].weak_efficiency == 0.6);
}

TEST_CASE("an efficiency that no longer holds is cleared", "[efficiency]") {
  std::vector cases = {measured({0, 1}, 2000, 100)};
  cases[0].weak_efficiency = cases[0].strong_efficiency = 1;
  fill_efficiencies(cases);
  CHECK_FALSE(cases[0].weak_efficiency);
  CHECK_FALSE(cases[0].strong_efficiency);
}

TEST_CASE("a run writes efficiencies to its files after every case, and to stdout at its end",
          "[efficiency]") {
  TemporaryDirectory directory;
  Request request;
  request.command = Command::sweep;
  request.format = Format::json;
  const bool with_file = GENERATE(true, false);
  if (with_file) request.outputs = {{Format::json, directory.file("run.json")}};
  std::string out;
  Console console;
  console.out = [&](std::string_view bytes) {
    out += bytes;
    return 0;
  };
  Run run(request, console);
  run.report().machine.devices = {Device{}, Device{}};
  run.report().machine.devices[1].ordinal = 1;
  run.open();
  run.keep(0, measured({0}, 1000, 80));
  run.expect({1});
  run.finished(measured({0, 1}, 2000, 100), true);
  if (with_file) CHECK(weak_efficiency_in(contents(directory.file("run.json"))) == 0.8);
  CHECK(run.publish() == 0);
  CHECK(weak_efficiency_in(out) == 0.8);
}

TEST_CASE("each size has its best cases, ties within the interval together", "[efficiency]") {
  std::vector cases = {measured({0}, 1000, 50), measured({0}, 2000, 90), measured({1}, 1000, 52),
                       measured({2}, 1000, 200), measured({1}, 2000, 80)};
  cases[0].summary.median_high = 51;
  cases[2].summary.median_low = 51;
  const std::vector<BestOfSize> sizes = best_of_sizes(cases);
  REQUIRE(sizes.size() == 2);
  CHECK(sizes[0].size == 1000);
  CHECK(sizes[0].best == std::vector<std::size_t>{0, 2});
  CHECK(sizes[0].slowest == 4);
  CHECK(sizes[1].size == 2000);
  CHECK(sizes[1].best == std::vector<std::size_t>{4});
  CHECK(sizes[1].slowest == 1.125);

  cases[2].summary.median_low = 51.5;
  CHECK(best_of_sizes(cases)[0].best == std::vector<std::size_t>{0});
}

TEST_CASE("sizes are in the order of their first measured cases", "[efficiency]") {
  std::vector cases = {measured({0}, 3000, 1), measured({0}, 2000, 5), measured({0}, 1000, 5),
                       measured({1}, 3000, 7), measured({1}, 2000, 4)};
  cases[0].samples = 0;
  std::vector<Bytes> sizes;
  for (const BestOfSize& of : best_of_sizes(cases)) sizes.push_back(of.size);
  CHECK(sizes == std::vector<Bytes>{2000, 1000, 3000});
}

TEST_CASE("what was not measured is never the best nor the slowest", "[efficiency]") {
  std::vector cases = {measured({0}, 1000, 1), measured({0}, 1000, 50), measured({0}, 1000, 900)};
  cases[0].outcome = OutcomeKind::skipped;
  cases[2].outcome = OutcomeKind::failed;
  const std::vector<BestOfSize> sizes = best_of_sizes(cases);
  REQUIRE(sizes.size() == 1);
  CHECK(sizes[0].best == std::vector<std::size_t>{1});
  CHECK(sizes[0].slowest == 1);
  CHECK(best_of_sizes({}).empty());
}

// SPDX-License-Identifier: MIT
#include "model/comparison.hpp"

#include "model/comparison_fields.hpp"
#include "sample_comparison.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <set>

using namespace mgpu;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Reports = std::vector<Report>;

namespace {

ComparisonRow row_of(const Reports& base, const Reports& current,
                     const CompareOptions& options = {}) {
  const Comparison comparison = compare(base, current, options);
  REQUIRE(comparison.rows.size() == 1);
  return comparison.rows.front();
}

ComparisonRow row_of(const Samples& base, const Samples& current,
                     const CompareOptions& options = {}) {
  return row_of(Reports{run_of(base)}, Reports{run_of(current)}, options);
}

std::vector<Samples> rounds(Noise& noise, std::size_t count, double sd_between) {
  std::vector<Samples> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(scaled(noise.independent(20, 0.003), std::exp(sd_between * noise())));
  return all;
}

std::vector<Samples> scaled(std::vector<Samples> all, double factor) {
  for (Samples& samples : all) samples = mgpu::scaled(samples, factor);
  return all;
}

Reports on_host(Reports reports) {
  for (Report& report : reports) report.machine.backend = BackendKind::host;
  return reports;
}

Reports one_report(std::initializer_list<Bytes> sizes) {
  Noise noise(77);
  Report report = run_of({});
  report.cases.clear();
  for (const Bytes size : sizes)
    report.cases.push_back(run_of(noise.independent(30, 0.003), 0, size).cases.front());
  return {report};
}

/// How many of `pairs` pairs of series of the same kind come out as each verdict.
template <class F>
std::array<int, 4> verdicts(int pairs, double factor, const F& series) {
  std::array<int, 4> counts{};
  for (int i = 0; i < pairs; ++i) {
    const Samples base = series(), current = mgpu::scaled(series(), factor);
    ++counts[static_cast<std::size_t>(row_of(base, current).verdict)];
  }
  return counts;
}

int of(const std::array<int, 4>& counts, Verdict verdict) {
  return counts[static_cast<std::size_t>(verdict)];
}

}  // namespace

TEST_CASE("as many ranks are dropped as keep each side's error under half a per cent",
          "[compare]") {
  const auto [m, n, dropped] = GENERATE(table<std::size_t, std::size_t, int>({
      {5, 5, 0},
      {6, 6, 2},
      {7, 7, 4},
      {8, 8, 7},
      {10, 10, 16},
      {15, 15, 51},
      {20, 20, 105},
      {4, 6, 0},
      {3, 9, 0},
      {3, 10, 0},
  }));
  CAPTURE(m, n);
  CHECK(dropped_ranks(m, n) == static_cast<std::size_t>(dropped));
  CHECK(dropped_ranks(n, m) == static_cast<std::size_t>(dropped));
}

TEST_CASE("too few units have no interval, however many the other side has", "[compare]") {
  CHECK_FALSE(dropped_ranks(4, 4));
  CHECK_FALSE(dropped_ranks(4, 5));
  CHECK_FALSE(dropped_ranks(3, 8));
  CHECK_FALSE(dropped_ranks(1, 30));
  CHECK_FALSE(dropped_ranks(1, 198));
  CHECK(dropped_ranks(1, 200) == std::size_t{0});
}

TEST_CASE("beyond 25 units the normal approximation goes on where the exact count ends",
          "[compare]") {
  const auto at = [](std::size_t n) { return static_cast<double>(dropped_ranks(n, n).value()); };
  CHECK(at(26) > at(25));
  CHECK(at(26) - at(25) < 1.2 * (at(25) - at(24)) + 2);
}

TEST_CASE("ten per cent more is slower, and faster the other way round", "[compare]") {
  Noise noise(1);
  const Samples base = noise.independent(100, 0.003),
                more = scaled(noise.independent(100, 0.003), 1.1);
  const ComparisonRow slower = row_of(base, more), faster = row_of(more, base);
  CHECK(slower.verdict == Verdict::slower);
  CHECK(slower.ratio == Approx(1.1).epsilon(0.002));
  CHECK(slower.ratio_low.value() > 1.05);
  CHECK(slower.ratio_high.value() >= slower.ratio);
  CHECK(slower.reason == "10+10 batches");
  CHECK(faster.verdict == Verdict::faster);
  CHECK(faster.ratio * slower.ratio == Approx(1));
  CHECK(*faster.ratio_low * *slower.ratio_high == Approx(1));
  CHECK(*faster.ratio_high * *slower.ratio_low == Approx(1));
}

TEST_CASE("two per cent more at a tolerance of five is the same", "[compare]") {
  Noise noise(2);
  const Samples base = noise.independent(100, 0.003),
                more = scaled(noise.independent(100, 0.003), 1.02);
  CHECK(row_of(base, more).verdict == Verdict::same);
  CHECK(row_of(base, more, {Metric::median, 1, false}).verdict == Verdict::slower);
}

TEST_CASE("noise wider than the tolerance is unclear, not the same", "[compare]") {
  Noise noise(3);
  const ComparisonRow row = row_of(noise.independent(20, 0.2), noise.independent(20, 0.2));
  CHECK(row.verdict == Verdict::unclear);
  CHECK_THAT(row.reason, ContainsSubstring("wide: batches spread "));
}

TEST_CASE("a tight interval across the tolerance says so", "[compare]") {
  Noise noise(4);
  const ComparisonRow row =
      row_of(noise.independent(100, 0.003), scaled(noise.independent(100, 0.003), 1.05));
  CHECK(row.verdict == Verdict::unclear);
  CHECK_THAT(row.reason, ContainsSubstring("at the edge of the tolerance"));
}

TEST_CASE("at tolerance 0 what is not apart is unclear and told why", "[compare]") {
  Noise noise(5);
  const ComparisonRow row = row_of(noise.independent(50, 0.003), noise.independent(50, 0.003),
                                   {Metric::median, 0, false});
  CHECK(row.verdict == Verdict::unclear);
  CHECK(row.reason == "at tolerance 0 nothing is the same");
}

TEST_CASE("equal samples are the same, even a single one and on a busy host", "[compare]") {
  Reports one = on_host({run_of({1e6})});
  one[0].cases[0].run_queue_delay_ns = 1e6;
  const ComparisonRow row = row_of(one, one);
  CHECK(row.verdict == Verdict::same);
  CHECK(row.ratio == 1);
  CHECK(row.ratio_low == 1.0);
  CHECK(row.ratio_high == 1.0);
  CHECK(row.reason == "equal samples");
  CHECK(row_of(Samples{1e6}, Samples{1e6 + 1}).verdict == Verdict::unclear);
  CHECK(row_of(Samples{1e6}, Samples{1e6, 1e6}).verdict == Verdict::unclear);
}

TEST_CASE("one sample a side is unclear, with its ratio and no interval", "[compare]") {
  const ComparisonRow row = row_of(Samples{1e6}, Samples{2e6});
  CHECK(row.verdict == Verdict::unclear);
  CHECK(row.ratio == 2);
  CHECK_FALSE(row.ratio_low);
  CHECK_FALSE(row.ratio_high);
  CHECK(row.reason == "few samples: 1 and 1");
}

TEST_CASE("faster is the mirror of slower, not the same number of per cent", "[compare]") {
  const Samples base(10, 1e6), less(10, 0.951e6);  // 1 / 1.05 is 0.952
  CHECK(row_of(base, less).verdict == Verdict::faster);
  CHECK(row_of(less, base).verdict == Verdict::slower);
}

TEST_CASE("the interval holds the ratio that is shown", "[compare]") {
  Samples current(109, 1e6);
  current[20] = 5e5;  // the eleventh of a batch, where the others have ten
  const ComparisonRow row = row_of(Samples(100, 1e6), current, {Metric::min, 5, false});
  CHECK(row.ratio == 0.5);
  CHECK(row.ratio_low == 0.5);
  CHECK(row.verdict == Verdict::unclear);
}

TEST_CASE("constant samples that differ are decided", "[compare]") {
  CHECK(row_of(Samples(10, 1e6), Samples(10, 1.2e6)).verdict == Verdict::slower);
  CHECK(row_of(Samples(10, 1e6), Samples(10, 1.01e6)).verdict == Verdict::same);
}

TEST_CASE("a thinned result is compared by what is stored", "[compare]") {
  Noise noise(6);
  Reports thinned{run_of(noise.independent(500, 0.003))};
  thinned[0].cases[0].samples = 2'000'000;
  thinned[0].cases[0].marks = {Mark::thinned};
  const Reports base{run_of(noise.independent(500, 0.003))};
  CHECK(row_of(base, thinned).verdict == Verdict::same);
  for (double& ns : thinned[0].cases[0].samples_ns) ns *= 1.1;
  CHECK(row_of(base, thinned).verdict == Verdict::slower);
}

TEST_CASE("the metric decides what is compared", "[compare]") {
  Noise noise(7);
  Samples base = noise.independent(100, 0.002), skewed = noise.independent(100, 0.002);
  for (std::size_t i = 0; i < skewed.size(); i += 4) skewed[i] *= 2;
  const auto by = [&](Metric metric) { return row_of(base, skewed, {metric, 5, false}); };
  CHECK(by(Metric::median).verdict == Verdict::same);
  CHECK(by(Metric::min).verdict == Verdict::same);
  CHECK(by(Metric::mean).verdict == Verdict::slower);
  CHECK(by(Metric::min).current.ns == *std::ranges::min_element(skewed));
}

TEST_CASE("many samples have a lower minimum than few, which is no verdict", "[compare]") {
  Noise noise(8);
  int faster = 0;
  for (int i = 0; i < 200; ++i) {
    const Samples few = noise.independent(10, 0.15), many = noise.independent(1000, 0.15);
    if (row_of(few, many, {Metric::min, 5, false}).verdict == Verdict::faster) ++faster;
  }
  CHECK(faster <= 2);
}

TEST_CASE("equal correlated series give no verdict, ten per cent more mostly does", "[compare]") {
  Noise noise(9);
  const auto series = [&] { return noise.correlated(100, 0.02, 0.9); };
  const auto equal = verdicts(300, 1, series), planted = verdicts(300, 1.1, series),
             small = verdicts(300, 1.02, series);
  CHECK(of(equal, Verdict::slower) + of(equal, Verdict::faster) == 0);
  CHECK(of(planted, Verdict::slower) >= 270);
  CHECK(of(small, Verdict::slower) == 0);
}

TEST_CASE("a planted ten per cent is found in every tight pair, two per cent in none",
          "[compare]") {
  Noise noise(10);
  const auto series = [&] { return noise.independent(50, 0.005); };
  CHECK(of(verdicts(200, 1, series), Verdict::same) == 200);
  CHECK(of(verdicts(200, 1.1, series), Verdict::slower) == 200);
  CHECK(of(verdicts(200, 1.02, series), Verdict::slower) == 0);
}

TEST_CASE("a drift within both runs, and modes, give no verdict", "[compare]") {
  Noise noise(11);
  const auto drifting = [&] {
    Samples samples = noise.independent(50, 0.003);
    for (std::size_t i = 0; i < samples.size(); ++i)
      samples[i] *= 1 + 0.03 * static_cast<double>(i) / 50;
    return samples;
  };
  const auto bimodal = [&] {
    Samples samples = noise.independent(50, 0.003);
    for (double& ns : samples)
      if (noise.uniform() < 0.39) ns *= 1.08;
    return samples;
  };
  const auto drifts = verdicts(200, 1, drifting), modes = verdicts(200, 1, bimodal);
  CHECK(of(drifts, Verdict::same) == 200);
  CHECK(of(modes, Verdict::slower) + of(modes, Verdict::faster) == 0);
}

TEST_CASE("two modes are told beside the verdict", "[compare]") {
  Noise noise(12);
  Samples two = noise.independent(100, 0.002);
  for (std::size_t i = 0; i < 39; ++i) two[i * 2] *= 1.2;
  const ComparisonRow row = row_of(noise.independent(100, 0.002), two);
  CHECK_FALSE(row.base.modes);
  REQUIRE(row.current.modes);
  CHECK(row.current.modes->high_share == Approx(0.39));
}

TEST_CASE("five rounds a side are units, four are batches of their samples", "[compare]") {
  Noise noise(13);
  const auto five =
      row_of(rounds_of(rounds(noise, 5, 0.005), 0, 2), rounds_of(rounds(noise, 5, 0.005), 1, 2));
  CHECK(five.mode == Units::rounds);
  CHECK(five.base.units == 5);
  CHECK(five.alternated == true);
  CHECK(five.verdict == Verdict::same);
  CHECK(five.reason == "5+5 rounds in turns");
  const auto four =
      row_of(rounds_of(rounds(noise, 4, 0.005), 0, 2), rounds_of(rounds(noise, 5, 0.005), 1, 2));
  CHECK(four.mode == Units::batches);
  CHECK(four.base.units == 12);
  CHECK(four.current.units == 10);
  CHECK_FALSE(four.alternated);
}

TEST_CASE("rounds in turns decide on the host where one run a side does not", "[compare]") {
  Noise noise(14);
  const auto base = rounds(noise, 10, 0.01), more = scaled(rounds(noise, 10, 0.01), 1.12);
  const ComparisonRow turns =
      row_of(on_host(rounds_of(base, 0, 2)), on_host(rounds_of(more, 1, 2)));
  CHECK(turns.verdict == Verdict::slower);
  const ComparisonRow one = row_of(on_host({run_of(base[0])}), on_host({run_of(more[0])}));
  CHECK(one.verdict == Verdict::unclear);
  CHECK(one.reason == "one run a side: repeat both in turns, 10 times");
  const ComparisonRow three = row_of(on_host(rounds_of({base[0], base[1], base[2]}, 0, 2)),
                                     on_host(rounds_of({more[0], more[1], more[2]}, 1, 2)));
  CHECK(three.verdict == Verdict::unclear);
  CHECK_THAT(three.reason, ContainsSubstring("few rounds"));
  CHECK(row_of(Reports{run_of(base[0])}, Reports{run_of(more[0])}).verdict == Verdict::slower);
}

TEST_CASE("rounds that were not taken in turns keep their extremes", "[compare]") {
  Noise noise(15);
  auto base = rounds(noise, 10, 0.003), more = scaled(rounds(noise, 10, 0.003), 1.12);
  base[0] = mgpu::scaled(base[0], 1.2);  // one slow round
  CHECK(row_of(rounds_of(base, 0, 2), rounds_of(more, 1, 2)).verdict == Verdict::slower);
  const ComparisonRow blocks = row_of(rounds_of(base, 0, 1), rounds_of(more, 100, 1));
  CHECK(blocks.alternated == false);
  CHECK(blocks.verdict == Verdict::unclear);
  CHECK_THAT(blocks.reason, ContainsSubstring("not in turns"));
  // Without a time of day nothing is known of their order.
  Reports timeless = rounds_of(base, 0, 2), others = rounds_of(more, 1, 2);
  for (Reports* side : {&timeless, &others})
    for (Report& report : *side) report.started.clear();
  CHECK(row_of(timeless, others).alternated == false);
}

TEST_CASE("equal rounds in turns under a drift of the machine give no verdict", "[compare]") {
  Noise noise(16);
  for (int pair = 0; pair < 50; ++pair) {
    auto base = rounds(noise, 10, 0.01), current = rounds(noise, 10, 0.01);
    for (std::size_t i = 0; i < 10; ++i) {
      const double machine = 1 + 0.1 * static_cast<double>(i) / 10;
      base[i] = mgpu::scaled(base[i], machine);
      current[i] = mgpu::scaled(current[i], machine);
    }
    const Verdict verdict = row_of(rounds_of(base, 0, 2), rounds_of(current, 1, 2)).verdict;
    CHECK((verdict == Verdict::same || verdict == Verdict::unclear));
  }
}

TEST_CASE("threads that waited for a CPU make a row unclear", "[compare]") {
  Noise noise(17);
  const auto base = rounds(noise, 6, 0.003), more = scaled(rounds(noise, 6, 0.003), 1.2);
  const auto with_delay = [](const Reports& runs, double share) {
    Reports reports = on_host(runs);
    for (Report& report : reports) {
      CaseResult& result = report.cases[0];
      result.what.split = 2;
      result.run_queue_delay_ns = share * 2 * result.summary.mean * 20;
    }
    return reports;
  };
  const auto row = [&](double share) {
    return row_of(with_delay(rounds_of(base, 0, 2), 0.001),
                  with_delay(rounds_of(more, 1, 2), share));
  };
  CHECK(row(0.02).verdict == Verdict::slower);
  CHECK(row(0.41).verdict == Verdict::unclear);
  CHECK(row(0.41).reason == "busy: threads waited 41% for a CPU");
  CHECK(row(0.41).current.run_delay.value() == Approx(0.41));
}

TEST_CASE("single runs near the cost of an empty copy are unclear, their rounds are not",
          "[compare]") {
  Noise noise(18);
  const auto base = rounds(noise, 6, 0.003), more = scaled(rounds(noise, 6, 0.003), 1.2);
  const auto small = [](Reports reports, double harness) {
    for (Report& report : reports) report.cases[0].harness_ns = harness;
    return reports;
  };
  const Reports was{run_of(base[0])}, is{run_of(more[0])};
  CHECK(row_of(small(was, 3.0e5), small(is, 3.0e5)).verdict == Verdict::slower);
  const ComparisonRow row = row_of(small(was, 4e5), small(is, 4e5));
  CHECK(row.verdict == Verdict::unclear);
  CHECK_THAT(row.reason, ContainsSubstring("near the cost of an empty copy"));
  // One that was disturbed costs more than an empty copy does.
  CHECK(row_of(small(was, 4e5), small(is, 3.0e5)).verdict == Verdict::slower);
  CHECK(row_of(small(rounds_of(base, 0, 2), 4e5), small(rounds_of(more, 1, 2), 4e5)).verdict ==
        Verdict::slower);
}

TEST_CASE("cases match whatever their order, key in the file and ordinal of the GPU", "[compare]") {
  const Reports base = one_report({1 << 20, 2 << 20});
  Reports current = one_report({2 << 20, 1 << 20});
  current[0].machine.devices.insert(current[0].machine.devices.begin(), Device{});
  for (CaseResult& result : current[0].cases) {
    result.key = "of an older version";
    result.what.gpus = {1};
  }
  const Comparison comparison = compare(base, current);
  REQUIRE(comparison.rows.size() == 2);
  CHECK(comparison.unmatched.empty());
  CHECK(comparison.rows[0].what.size == 1 << 20);
  CHECK(comparison.rows[1].what.size == 2 << 20);
  CHECK(comparison.rows[0].key == case_key(base[0].cases[0].what, base[0].machine));
}

TEST_CASE("cases of one side alone are listed with the reason, and prevent nothing", "[compare]") {
  const Reports base = one_report({1 << 20, 2 << 20, 4 << 20});
  Reports current = one_report({1 << 20, 8 << 20, 4 << 20});
  CaseResult& skipped = current[0].cases[2];
  skipped.outcome = OutcomeKind::skipped;
  skipped.reason = "no second GPU";
  skipped.samples = 0;
  skipped.samples_ns.clear();
  const Comparison comparison = compare(base, current);
  CHECK(comparison.rows.size() == 1);
  REQUIRE(comparison.unmatched.size() == 3);
  CHECK(comparison.unmatched[0].side == Side::base);
  CHECK(comparison.unmatched[0].reason == "not in new");
  CHECK(comparison.unmatched[1].reason == "new: skipped: no second GPU");
  CHECK(comparison.unmatched[2].side == Side::current);
  CHECK(comparison.unmatched[2].what.size == 8 << 20);
  CHECK(comparison.unmatched[2].reason == "not in base");
  CHECK(exit_code(comparison) == 0);
}

TEST_CASE("another GPU model is not comparable, by force it is", "[compare]") {
  const Reports base = one_report({1 << 20});
  Reports current = one_report({1 << 20});
  current[0].machine.devices[0].name = "NVIDIA A100";
  const Comparison refused = compare(base, current);
  CHECK(refused.rows.empty());
  CHECK(exit_code(refused) == 9);
  REQUIRE(refused.unmatched.size() == 2);
  CHECK(refused.unmatched[0].reason == "other devices: NVIDIA H200, and NVIDIA A100 in new");
  const Comparison forced = compare(base, current, {Metric::median, 5, true});
  CHECK(forced.forced);
  REQUIRE(forced.rows.size() == 1);
  CHECK(forced.rows[0].verdict == Verdict::same);
  REQUIRE(forced.differences.size() == 1);
  CHECK(forced.differences[0].what == "row 1: devices");
}

TEST_CASE("by force cases are compared in their order and what differs is told", "[compare]") {
  const Comparison forced =
      compare(one_report({1 << 20, 2 << 20}), one_report({4 << 20}), {Metric::median, 5, true});
  REQUIRE(forced.rows.size() == 1);
  REQUIRE(forced.unmatched.size() == 1);
  CHECK(forced.unmatched[0].what.size == 2 << 20);
  REQUIRE_FALSE(forced.differences.empty());
  CHECK(forced.differences[0].what == "row 1: size_bytes");
  CHECK(forced.differences[0].base == "1048576");
  CHECK(forced.differences[0].current == "4194304");
}

TEST_CASE("a driver, version, host or clock that differs is told and prevents nothing",
          "[compare]") {
  const auto with_clock = [](int mhz) {
    Reports reports = one_report({1 << 20});
    DeviceResult device;
    device.after = Telemetry{};
    device.after->sm_mhz = mhz;
    reports[0].cases[0].per_device = {device};
    return reports;
  };
  const Reports base = with_clock(1980);
  Reports current = with_clock(1410);
  CHECK(compare(base, base).differences.empty());
  current[0].tool_version = "0.2.0";
  current[0].machine.driver.version = "590.1";
  current[0].machine.host.name = "node2";
  const Comparison comparison = compare(base, current);
  CHECK(row_of(base, current).verdict == Verdict::same);
  std::set<std::string> what;
  for (const Difference& difference : comparison.differences) what.insert(difference.what);
  CHECK(what == std::set<std::string>{"mgpu", "driver", "host", "SM clock"});
  const auto clock = std::ranges::find(comparison.differences, "SM clock", &Difference::what);
  CHECK(clock->base == "1980 MHz");
  CHECK(clock->current == "1410 MHz");
  const auto driver = std::ranges::find(comparison.differences, "driver", &Difference::what);
  CHECK(driver->base == "unknown");
}

TEST_CASE("slower ends with 8, nothing comparable with 9, unclear is compared", "[compare]") {
  Noise noise(19);
  const Reports base{run_of(noise.independent(50, 0.003))};
  const auto code = [&](double factor) {
    return exit_code(compare(base, Reports{run_of(scaled(noise.independent(50, 0.003), factor))}));
  };
  CHECK(code(1.2) == 8);
  CHECK(code(1) == 0);
  CHECK(code(0.8) == 0);
  CHECK(exit_code(compare(Reports{run_of({1e6})}, Reports{run_of({2e6})})) == 0);
  CHECK(exit_code(compare({}, base)) == 9);
}

TEST_CASE("what cannot be compared is refused before a logarithm is taken of it", "[compare]") {
  const Reports good{run_of({1, 2, 3})};
  CHECK_THROWS_AS(compare(good, Reports{run_of({1, 0, 3})}), Error);
  CHECK_THROWS_AS(compare(Reports{run_of({1, -1})}, good), Error);
  Reports foreign = good;
  foreign[0].cases[0].what.gpus = {1};
  CHECK_THROWS_AS(compare(foreign, good), Error);
}

TEST_CASE("a row has the keys of the document in their order", "[compare]") {
  std::string keys;
  const ComparisonRow row;
  describe(row, [&](std::string_view key, const auto&) { keys += ' ' + std::string(key); });
  CHECK(keys ==
        " key case base new metric ratio ratio_low ratio_high tolerance verdict reason mode "
        "units_base units_new alternated run_delay_base run_delay_new modes_base modes_new");
}

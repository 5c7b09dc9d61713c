// SPDX-License-Identifier: MIT
// What mgpu itself costs: a sample, a plan, a report, statistics. Run by hand; judges nothing.
#include "backend/backend.hpp"
#include "measure.hpp"
#include "model/plan.hpp"
#include "model/stats.hpp"
#include "model/sweep.hpp"
#include "report/histogram.hpp"
#include "report/report.hpp"
#include "watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {
namespace {

constexpr std::size_t repeats = 5;
constexpr double enough_ms = 2'000;  // spent on one figure: it is not repeated further
constexpr std::size_t factor = 4;    // the larger of two sizes, over the smaller
constexpr std::size_t rows = 10'000, samples = 1'000'000;

volatile std::size_t sink;  // what a step gives is used, so that none is left out

void line(std::string_view what, double figure, std::string_view unit) {
  fmt::print("{:<44} {:>12.2f} {}\n", what, figure, unit);
  std::fflush(stdout);
}

/// Milliseconds of `work`, the median of a few times, which gives something of what it made.
double cost_ms(const std::function<std::size_t()>& work) {
  std::vector<double> times;
  for (double spent = 0; times.size() < repeats && spent < enough_ms; spent += times.back()) {
    const Nanos start = steady_now();
    sink = work();
    times.push_back(static_cast<double>(steady_now() - start) / 1e6);
  }
  return median(std::move(times));
}

/// `work(n)` and `work(4 n)`, and how much longer the second takes: 4 is linear, 16 quadratic.
void growth(const std::string& what, std::size_t n,
            const std::function<std::size_t(std::size_t)>& work) {
  const double once = cost_ms([&] { return work(n); });
  const double more = cost_ms([&] { return work(factor * n); });
  line(what, once, "ms");
  line(fmt::format("{}, {} times as many", what, factor), more, "ms");
  const auto size = static_cast<double>(n);
  const double n_log_n = factor * std::log(factor * size) / std::log(size);
  line(fmt::format("{}, growth", what), more / once, fmt::format("x (n log n: {:.1f})", n_log_n));
}

CaseSpec tiny(std::size_t devices) {
  CaseSpec spec;
  for (std::size_t i = 0; i < devices; ++i)
    spec.gpus.push_back({GpuSelector::Kind::ordinal, static_cast<int>(i), ""});
  spec.size = parse_size("4KiB/gpu", "--size");
  return spec;
}

/// The results of `copy --size 4KiB/gpu` on the first devices, one to all; none of them failed.
std::vector<CaseResult> measure_tiny(Backend& backend, const Machine& machine,
                                     const Sampling& sampling) {
  Request request;
  request.sampling = sampling;
  for (std::size_t n = 1; n <= machine.devices.size(); ++n) request.cases.push_back(tiny(n));
  Observer silent;
  Watchdog dog(sampling.timeout);
  Results found = measure(make_plan(request, machine), machine, sampling, backend, silent, dog, {});
  if (found.error) throw *found.error;
  return std::move(found.cases);
}

void bench_samples(Backend& backend, const Machine& machine) {
  Sampling sampling;
  sampling.samples = 100'000;
  sampling.seconds = 2;
  sampling.warmup = 100;
  sampling.verify = Verify::none;
  for (const CaseResult& result : measure_tiny(backend, machine, sampling)) {
    const std::string what =
        fmt::format("sample, {}, {} device(s)", name(machine.backend), result.what.gpus.size());
    line(what, result.summary.median, "ns");
    line(what + ", fastest", result.summary.min, "ns");
  }
}

/// A sweep of n cases, a multiple of 100.
Request sweep_of(std::size_t n) {
  Request request;
  request.command = Command::sweep;
  const auto axis = [&](std::size_t count, auto set) {
    Axis values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back([=](CaseSpec& spec) { set(spec, static_cast<int>(i) + 1); });
    request.axes.push_back(std::move(values));
  };
  axis(n / 100, [](CaseSpec& spec, int i) { spec.size = Size{static_cast<Bytes>(i) << 20, true}; });
  axis(10, [](CaseSpec& spec, int i) { spec.split = i; });
  axis(10, [](CaseSpec& spec, int i) { spec.batch = i; });
  return request;
}

void bench_plan(const Machine& machine) {
  growth(fmt::format("plan, {} cases", rows), rows, [&](std::size_t n) {
    const Plan plan = make_plan(sweep_of(n), machine);
    if (plan.cases.size() != n) throw Error(ErrorKind::runtime, "the sweep is not of that size");
    return plan.cases.size();
  });
}

/// A sweep's report: cases of all sizes and splits, each with the figures of one that was measured.
Report report_of(const Machine& machine, const CaseResult& measured, std::size_t n) {
  Report report;
  report.tool_version = "bench";
  report.command = {"sweep"};
  report.machine = machine;
  for (const PlannedCase& planned : make_plan(sweep_of(n), machine).cases) {
    CaseResult& row = report.cases.emplace_back(measured);
    row.what = planned.what;
    row.key = case_key(planned.what, machine);
  }
  return report;
}

void bench_reports(Backend& backend, const Machine& machine) {
  Sampling sampling;
  sampling.samples = 100;
  const CaseResult measured = measure_tiny(backend, machine, sampling).back();
  const Report small = report_of(machine, measured, rows);
  const Report large = report_of(machine, measured, factor * rows);
  for (const Format format :
       {Format::text, Format::json, Format::jsonl, Format::csv, Format::markdown})
    growth(fmt::format("render, {}, {} rows", name(format), rows), rows,
           [&](std::size_t n) { return render(format, n == rows ? small : large).size(); });
}

void bench_efficiencies(Backend& backend, const Machine& machine) {
  Sampling sampling;
  sampling.samples = 10;
  const CaseResult measured = measure_tiny(backend, machine, sampling).back();
  constexpr std::size_t cases = rows / 10;  // a look at every pair of them
  Report report = report_of(machine, measured, factor * cases);
  growth(fmt::format("efficiencies, {} cases", cases), cases, [&](std::size_t n) {
    fill_efficiencies(std::span(report.cases).first(n));
    return n;
  });
}

/// Times around 1 ms with a second mode, as samples of two GPUs that share an array.
std::vector<double> made_samples(std::size_t n) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> spread(0, 0.05);
  std::bernoulli_distribution slow(0.3);
  std::vector<double> values(n);
  std::ranges::generate(values, [&] { return (slow(random) ? 2e6 : 1e6) * spread(random); });
  return values;
}

void bench_statistics() {
  struct Row {
    const char* what;
    std::size_t (*work)(std::span<const double>);
  };
  constexpr Row table[] = {
      {"histogram", [](auto s) { return make_histogram(s, 80).heights.size(); }},
      {"summary", [](auto s) { return static_cast<std::size_t>(summarize(s).median); }},
      {"modes", [](auto s) { return std::size_t{two_modes(s).has_value()}; }},
      {"stop by --until", [](auto s) { return std::size_t{median_settled(s, 1)}; }},
      {"series of samples",
       [](auto s) {
         SampleSeries series;
         for (const double ns : s) series.add(ns);
         return static_cast<std::size_t>(series.summary().mean);
       }},
  };
  const std::vector<double> all = made_samples(factor * samples);
  for (const Row& row : table)
    growth(fmt::format("{}, {} samples", row.what, samples), samples,
           [&](std::size_t n) { return row.work(std::span(all).first(n)); });
}

/// The argument is the number of host devices; without one it is mgpu's own choice.
void bench(int argc, char** argv) {
  const std::optional<int> count = argc > 1 ? std::optional(std::atoi(argv[1])) : std::nullopt;
  for (const BackendRow& row : builtin_backends()) {
    if (!row.available) continue;
    const auto backend = row.make(count);
    try {
      bench_samples(*backend, backend->machine());
    } catch (const Error& error) {
      if (error.kind != ErrorKind::no_gpu) throw;
      fmt::print("sample, {}: {}\n", name(row.kind), error.what());
    }
  }
  const auto host = make_host_backend(count);
  const Machine machine = host->machine();
  bench_plan(machine);
  bench_efficiencies(*host, machine);
  bench_reports(*host, machine);
  bench_statistics();
}

}  // namespace
}  // namespace mgpu

int main(int argc, char** argv) {
  try {
    mgpu::bench(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "mgpu_bench: {}\n", error.what());
    return 1;
  }
}

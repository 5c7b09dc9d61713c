// SPDX-License-Identifier: MIT
#include "sample_sweep.hpp"

#include "model/plan.hpp"
#include "sample_report.hpp"

namespace mgpu {
namespace {

void measure(CaseResult& result, double ns) {
  for (int i = 0; i < 10; ++i) result.samples_ns.push_back(ns * (1 + 0.1 * i));
  result.samples = 10;
  result.summary = summarize(result.samples_ns);
  result.bytes_copied = result.what.size;
  result.bytes_moved = 2 * result.what.size;
  const auto rate = [&](Bytes bytes) {
    const double per_s = 1e9 * static_cast<double>(bytes);
    return Rate{per_s / result.summary.median, per_s / result.summary.min,
                per_s / result.summary.max};
  };
  result.rates = {rate(result.bytes_copied), rate(result.bytes_moved)};
  result.verified = true;
}

}  // namespace

CaseResult sample_case_of(Bytes size, Engine engine, double ns) {
  CaseResult result;
  result.what.gpus = {0, 1};
  result.what.split = 2;
  result.what.size = size;
  result.what.engine = engine;
  measure(result, ns);
  return result;
}

Report sample_sweep() {
  Report report = sample_report();
  report.command = {"mgpu", "sweep", "--size", "1MiB,1GiB", "--engine", "kernel,memcpy"};
  constexpr Bytes small = Bytes{1} << 20, large = Bytes{1} << 30;
  report.cases = {sample_case_of(small, Engine::kernel, 10e3),
                  sample_case_of(large, Engine::kernel, 250e3),
                  sample_case_of(small, Engine::memcpy, 40e3),
                  sample_case_of(large, Engine::memcpy, 500e3),
                  {}};
  report.cases[0].marks = {Mark::l2, Mark::bimodal};
  report.cases[2].marks = {Mark::l2};
  report.cases[0].causes = {{CauseKind::harness, "the copy is small", 0, 0, ""}};
  report.cases[1].causes = {{CauseKind::narrow_access, "4 bytes", 100e3, 0.25, "--access 16"}};
  report.cases[2].causes = {{CauseKind::narrow_access, "4 bytes", 20e3, 0.5, "--access 16"}};
  CaseResult& failed = report.cases[3];
  failed.outcome = OutcomeKind::failed;
  failed.error_kind = ErrorKind::verification;
  failed.reason = "wrong data in slice 1: 4096 bytes, first at offset 123456 (zeroed)";
  failed.verified = false;
  CaseResult& skipped = report.cases[4];
  skipped.what = report.cases[0].what;
  skipped.what.gpus = {1};
  skipped.what.split = 1;
  skipped.outcome = OutcomeKind::skipped;
  skipped.error_kind = ErrorKind::unavailable;
  skipped.reason = "GPU 1 is busy";
  return report;
}

Report sample_seed() {
  struct Scenario {
    std::vector<int> gpus;
    int split;
    MemoryKind memory;
    double ms[3];
  };
  const Scenario scenarios[] = {
      {{0}, 1, MemoryKind::device, {3, 3, 3}},     {{0}, 2, MemoryKind::device, {3.1, 3.1, 3.1}},
      {{1}, 2, MemoryKind::device, {12, 12, 12}},  {{0}, 2, MemoryKind::managed, {11.4, 3, 3}},
      {{1}, 2, MemoryKind::managed, {11.2, 3, 3}}, {{0, 1}, 2, MemoryKind::managed, {400, 2, 1}}};
  Report report = sample_report();
  report.command = {"mgpu", "sweep", "--preset", "issue-2615"};
  report.cases.clear();
  for (const Scenario& scenario : scenarios)
    for (int policy = 0; policy < 3; ++policy) {
      CaseResult& result = report.cases.emplace_back();
      Case& what = result.what;
      what.gpus = scenario.gpus;
      what.split = scenario.split;
      what.memory = what.source_memory = what.destination_memory = scenario.memory;
      what.from = what.to = Place{Place::Kind::device, 0};
      what.size = 4'000'000'000;
      what.align = what.access = 4;
      what.runtime = Runtime::cudajl_5_4;
      what.threads = Threads::task;
      what.owner_lock = OwnerLock::record;
      what.prefetch = policy == 0 ? Prefetch::array : Prefetch::none;
      what.prefetch_repeats = policy == 0 ? 2 : 1;
      what.owner_wait = policy == 2 ? OwnerWait::none : OwnerWait::host;
      measure(result, 1e6 * scenario.ms[policy]);
    }
  return report;
}

}  // namespace mgpu

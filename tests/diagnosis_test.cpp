// SPDX-License-Identifier: MIT
#include "model/diagnosis.hpp"

#include "measure.hpp"
#include "sim.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <functional>

using namespace mgpu;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

CaseSpec seed_case(std::string_view size = "4GB") {
  CaseSpec made;
  made.gpus = parse_gpus("0,1", "--gpus");
  made.size = parse_size(size, "--size");
  made.memory = MemoryKind::managed;
  made.home = parse_place("0", "--home");
  return made;
}

CaseSpec device_case(std::string_view gpus = "0,1", std::string_view size = "1GB/gpu") {
  CaseSpec made;
  made.gpus = parse_gpus(gpus, "--gpus");
  made.size = parse_size(size, "--size");
  return made;
}

// One case measured on the simulated machine, causes included; no bytes are kept.
CaseResult measured(const CaseSpec& spec, SimOptions options = {}, Sampling sampling = {}) {
  options.data = false;
  SimBackend backend(options);
  Request request;
  request.cases = {spec};
  sampling.samples = std::min<std::int64_t>(sampling.samples, 100);
  const Machine machine = backend.machine();
  Observer silent;
  Watchdog dog(0);
  const Results results =
      measure(make_plan(request, machine), machine, sampling, backend, silent, dog, {});
  REQUIRE_FALSE(results.error);
  return results.cases.front();
}

std::vector<CauseKind> words(const std::vector<Cause>& causes) {
  std::vector<CauseKind> result;
  for (const Cause& cause : causes) result.push_back(cause.word);
  return result;
}

const Cause* find(const std::vector<Cause>& causes, CauseKind word) {
  const auto found = std::ranges::find(causes, word, &Cause::word);
  return found == causes.end() ? nullptr : &*found;
}

// A healthy result of two simulated GPUs, made by hand; each test spoils one thing.
struct Healthy {
  Machine machine = SimBackend().machine();
  CaseResult result;
  Healthy() {
    Request request;
    request.cases = {device_case()};
    result.what = make_plan(request, machine).cases[0].what;
    result.samples = 100;
    result.samples_ns.assign(100, 1e6);
    result.summary = {1e6, 1e6, 1e6, 1e6, 0, 1e6, 1e6, 1e6, 1e6, 1e6};
    result.bytes_copied = 2'000'000'000;
    result.bytes_moved = 4'000'000'000;
    result.harness_ns = 1e4;
    for (const int gpu : {0, 1}) {
      DeviceResult device;
      device.index = gpu;
      device.bytes = 1'000'000'000;
      device.slices = 1;
      device.device_ns = 0.98e6;
      result.per_device.push_back(device);
    }
  }
  std::vector<Cause> causes() const { return diagnose(result, {}, machine); }
};

}  // namespace

TEST_CASE("healthy runs print no cause and need no experiment") {
  CHECK(measured(device_case()).causes.empty());
  CHECK(measured(device_case("0")).causes.empty());
  CaseSpec placed = seed_case();
  placed.prefetch = Prefetch::once;
  CHECK(measured(placed).causes.empty());
  CHECK(measured(seed_case()).causes.empty());  // settled by the warm-up
  CHECK(Healthy().causes().empty());
}

TEST_CASE("whole-array prefetch at every launch comes first, with what it costs and its cure") {
  CaseSpec slow = seed_case(), cured = slow;
  slow.prefetch = Prefetch::array;
  cured.prefetch = Prefetch::once;
  const CaseResult with = measured(slow), without = measured(cured);
  REQUIRE_FALSE(with.causes.empty());
  const Cause& first = with.causes.front();
  CHECK(first.word == CauseKind::array_prefetch);
  CHECK(first.option == "--prefetch once");
  CHECK(first.cost_ns == Approx(with.summary.median - without.summary.median).epsilon(0.02));
  CHECK(first.cost_share > 0.9);
}

TEST_CASE("a slice prefetch at every launch is named only where its calls cost") {
  CaseSpec sliced = seed_case("8MiB");
  sliced.prefetch = Prefetch::slice;
  SimOptions dear;
  dear.prefetch_call = 20'000;
  CHECK(find(measured(sliced, dear).causes, CauseKind::slice_prefetch));
  SimOptions cheap;
  cheap.prefetch_call = 1;
  CHECK_FALSE(find(measured(sliced, cheap).causes, CauseKind::slice_prefetch));
}

TEST_CASE("an owner wait is named at what a run without it saves, whoever waits") {
  for (const OwnerWait wait : {OwnerWait::host, OwnerWait::event}) {
    CaseSpec slow = seed_case();
    slow.owner_wait = wait;
    const CaseResult with = measured(slow), without = measured(seed_case());
    REQUIRE_FALSE(with.causes.empty());
    CHECK(with.causes.front().word == CauseKind::owner_wait);
    CHECK(with.causes.front().option == "--owner-wait none");
    CHECK(with.causes.front().cost_ns ==
          Approx(with.summary.median - without.summary.median).epsilon(0.02));
  }
}

TEST_CASE("an owner wait over arrays that no two slices share is not named") {
  CaseSpec apart = device_case();
  apart.owner_wait = OwnerWait::host;
  CHECK_FALSE(find(measured(apart).causes, CauseKind::owner_wait));
}

TEST_CASE("applying the option of each cause in turn ends where a healthy run is") {
  CaseSpec spec = seed_case();
  spec.runtime = Runtime::cudajl_5_4;
  CaseSpec healthy = seed_case();
  healthy.prefetch = Prefetch::once;
  const double goal = measured(healthy).summary.median;
  CaseResult now = measured(spec);
  CHECK(now.summary.median > 50 * goal);
  for (int step = 0; step < 6 && !now.causes.empty(); ++step) {
    const Cause cause = now.causes.front();
    if (cause.option == "--prefetch once")
      spec.prefetch = Prefetch::once;
    else if (cause.option == "--owner-wait none")
      spec.owner_wait = OwnerWait::none;
    else if (cause.option == "--threads pool")
      spec.threads = Threads::pool;
    else
      break;
    const CaseResult next = measured(spec);
    INFO(cause.text);
    CHECK(now.summary.median - next.summary.median ==
          Approx(cause.cost_ns).epsilon(0.2).margin(20e3));
    now = next;
  }
  CHECK(now.summary.median == Approx(goal).epsilon(0.05));
}

TEST_CASE("the start of threads and streams inside the sample is named where it costs") {
  CaseSpec task = device_case("0,1", "32MiB/gpu");
  task.threads = Threads::task;
  const CaseResult result = measured(task);
  REQUIRE(find(result.causes, CauseKind::startup));
  CHECK(find(result.causes, CauseKind::startup)->option == "--threads pool");
  CHECK_FALSE(find(measured(device_case("0,1", "32MiB/gpu")).causes, CauseKind::startup));
}

TEST_CASE("one thread for all devices is tried against a thread each") {
  CaseSpec single = device_case();
  single.threads = Threads::single;
  Healthy run;
  Request request;
  request.cases = {single};
  run.result.what = make_plan(request, run.machine).cases[0].what;
  const auto list = suspects(run.result.what, run.machine);
  REQUIRE(list.size() == 1);
  CHECK(list[0].without.threads == Threads::pool);
  Summary without = run.result.summary;
  without.median = without.median_high = 0.9e6;
  const Experiment faster[] = {{list[0], without}};
  CHECK(words(diagnose(run.result, faster, run.machine)) == std::vector{CauseKind::single_thread});
  const Experiment alike[] = {{list[0], run.result.summary}};
  CHECK(diagnose(run.result, alike, run.machine).empty());
  single.gpus = parse_gpus("0", "--gpus");
  request.cases = {single};
  CHECK(suspects(make_plan(request, run.machine).cases[0].what, run.machine).empty());
}

TEST_CASE("arrays on one GPU that others copy are named as a remote home") {
  CaseSpec remote = device_case("1", "1GB");
  remote.home = parse_place("0", "--home");
  const CaseResult result = measured(remote);
  REQUIRE_FALSE(result.causes.empty());
  CHECK(result.causes.front().word == CauseKind::remote_home);
  CHECK(result.causes.front().option == "--home local");
  CaseSpec near = device_case("0", "1GB");
  near.home = parse_place("0", "--home");
  CHECK(measured(near).causes.empty());
}

TEST_CASE("a 2 MiB block that two devices share is named, with the alignment that parts them") {
  CaseSpec unaligned = seed_case("256000000");
  unaligned.align = 4;
  const CaseResult result = measured(unaligned);
  CHECK(shares_block(result.what));
  REQUIRE(find(result.causes, CauseKind::shared_block));
  CHECK(find(result.causes, CauseKind::shared_block)->option == "--align 2MiB");
  const CaseResult aligned = measured(seed_case("256000000"));
  CHECK_FALSE(shares_block(aligned.what));
  CHECK_FALSE(find(aligned.causes, CauseKind::shared_block));
}

TEST_CASE("slices of one device may meet anywhere") {
  CaseSpec one = seed_case("256000000");
  one.gpus = parse_gpus("0", "--gpus");
  one.split = 2;
  one.align = 4;
  CHECK_FALSE(shares_block(measured(one).what));
}

TEST_CASE("pages brought back before every sample are named as the cause of the migration") {
  CaseSpec cold = seed_case();
  cold.cold = true;
  const CaseResult result = measured(cold);
  REQUIRE(find(result.causes, CauseKind::cold));
  CHECK(find(result.causes, CauseKind::cold)->cost_share > 0.5);
}

TEST_CASE("samples that begin before the pages are placed name the first touch") {
  // The median of three samples lies above the fastest only if two of them migrate.
  Healthy run;
  run.result.what.memory = MemoryKind::managed;
  run.result.marks.push_back(Mark::no_warmup);
  run.result.verification.passes = 3;
  run.result.samples_ns = {9e6, 4e6, 1e6};
  run.result.summary.median = 4e6;
  run.result.summary.min = 1e6;
  REQUIRE(find(run.causes(), CauseKind::migration));
  CHECK(find(run.causes(), CauseKind::migration)->option == "--warmup 2");
  run.result.marks.clear();
  CHECK_FALSE(find(run.causes(), CauseKind::migration));
}

TEST_CASE("the narrow accesses of a kernel are tried against wide ones") {
  CaseSpec narrow = device_case("0", "1GB");
  narrow.access = 4;
  const auto list = suspects(measured(narrow).what, Healthy().machine);
  REQUIRE(list.size() == 1);
  CHECK(list[0].cause == CauseKind::narrow_access);
  CHECK(list[0].without.access == 16);
  // The simulated kernel is as fast with either, so nothing is named.
  CHECK(measured(narrow).causes.empty());
}

TEST_CASE("an experiment whose interval overlaps the case's names nothing") {
  Healthy run;
  run.result.what.owner_wait = OwnerWait::host;
  run.result.what.to = run.result.what.from = {Place::Kind::device, 0};
  Suspect suspect{CauseKind::owner_wait, run.result.what, "--owner-wait none"};
  Summary without = run.result.summary;
  without.median = 0.9e6;
  without.median_high = 0.91e6;
  const Experiment apart[] = {{suspect, without}};
  CHECK(words(diagnose(run.result, apart, run.machine)) == std::vector{CauseKind::owner_wait});
  without.median_high = 1.01e6;
  const Experiment overlapping[] = {{suspect, without}};
  CHECK(diagnose(run.result, overlapping, run.machine).empty());
  without.median = 0.985e6;
  without.median_high = 0.986e6;
  const Experiment small[] = {{suspect, without}};
  CHECK(diagnose(run.result, small, run.machine).empty());  // under 2%
}

TEST_CASE("throttled pages are thrashing") {
  Healthy run;
  run.result.counters = Counters{};
  CHECK(run.causes().empty());
  run.result.counters->throttling_ns = 3e5;
  REQUIRE(find(run.causes(), CauseKind::thrashing));
  CHECK(find(run.causes(), CauseKind::thrashing)->cost_ns == 3e5);
}

TEST_CASE("pages that move in every sample are named with their bytes") {
  Healthy run;
  run.result.counters = Counters{};
  run.result.counters->d2d_bytes = 5e8;
  REQUIRE(find(run.causes(), CauseKind::migration));
  CHECK_THAT(find(run.causes(), CauseKind::migration)->text,
             ContainsSubstring("migrate in every sample"));
  run.result.counters->d2d_bytes = 1e6;
  CHECK_FALSE(find(run.causes(), CauseKind::migration));
}

TEST_CASE("a device that takes longer than the others is named by its number") {
  Healthy run;
  run.result.per_device[1].device_ns = 0.7e6;
  const auto causes = run.causes();
  REQUIRE(find(causes, CauseKind::imbalance));
  CHECK_THAT(find(causes, CauseKind::imbalance)->text, ContainsSubstring("device 0"));
  CHECK(find(causes, CauseKind::imbalance)->cost_ns == Approx(0.14e6));
  run.result.per_device[1].device_ns = 0.97e6;
  CHECK_FALSE(find(run.causes(), CauseKind::imbalance));
}

TEST_CASE("two modes are named with share and centre of each") {
  SimOptions two;
  two.scale = {100, 100, 130};
  Sampling sampling;
  sampling.samples = 99;
  const CaseResult result = measured(device_case(), two, sampling);
  REQUIRE(result.modes);
  CHECK(result.modes->high_share == Approx(1.0 / 3).margin(0.05));
  REQUIRE(find(result.causes, CauseKind::bimodal));
  CHECK(std::ranges::find(result.marks, Mark::bimodal) != result.marks.end());
  CHECK_FALSE(measured(device_case()).modes);
}

TEST_CASE("clocks held down are named with their reason, a reason alone is not") {
  Healthy run;
  Telemetry state;
  state.sm_mhz = 1000;
  state.sm_max_mhz = 1980;
  state.event_reasons = {"sw-power-cap"};
  run.result.per_device[1].after = state;
  REQUIRE(find(run.causes(), CauseKind::throttled));
  CHECK_THAT(find(run.causes(), CauseKind::throttled)->text,
             ContainsSubstring("device 1") && ContainsSubstring("sw-power-cap"));
  run.result.per_device[1].after->sm_mhz = 1980;
  CHECK(run.causes().empty());
  run.result.per_device[1].after->sm_mhz = 1000;
  run.result.per_device[1].after->event_reasons.clear();
  CHECK(run.causes().empty());
}

TEST_CASE("another process on a device is named where the samples spread") {
  Healthy run;
  Telemetry state;
  state.other_processes = 1;
  run.result.per_device[0].after = state;
  CHECK(run.causes().empty());
  run.result.summary.min = 0.8e6;
  REQUIRE(find(run.causes(), CauseKind::shared_gpu));
}

TEST_CASE("a rate above the memory's peak is the cache's") {
  Healthy run;
  run.result.marks.push_back(Mark::l2);
  CHECK(run.causes().empty());
  run.result.bytes_moved = 40'000'000'000;
  REQUIRE(find(run.causes(), CauseKind::cached));
}

TEST_CASE("a copy that is small against its start names the harness") {
  const CaseResult tiny = measured(device_case("0,1", "4KiB/gpu"));
  REQUIRE(find(tiny.causes, CauseKind::harness));
  CHECK(find(tiny.causes, CauseKind::harness)->cost_share > 0.5);
  CHECK_FALSE(find(measured(device_case()).causes, CauseKind::harness));
}

TEST_CASE("the staging of pageable memory is a cause, whose cure is pinned memory") {
  CaseSpec staged = device_case("0", "1GB");
  staged.from = parse_place("host", "--from");
  staged.memory = MemoryKind::pageable;
  staged.engine = Engine::memcpy;
  const CaseResult result = measured(staged);
  const Cause* cause = find(result.causes, CauseKind::pageable_staging);
  REQUIRE(cause);
  CHECK(cause->option == "--memory pinned");
  // The simulated driver takes three times as long with pageable memory.
  CHECK(cause->cost_share == Approx(2.0 / 3).margin(0.01));
}

TEST_CASE("pinned memory is not staged, nor is pageable memory that costs nothing") {
  CaseSpec pinned = device_case("0", "1GB");
  pinned.from = parse_place("host", "--from");
  pinned.engine = Engine::memcpy;
  CHECK_FALSE(find(measured(pinned).causes, CauseKind::pageable_staging));
  pinned.memory = MemoryKind::pageable;
  SimOptions coherent;
  coherent.staging = 100;
  CHECK_FALSE(find(measured(pinned, coherent).causes, CauseKind::pageable_staging));
}

TEST_CASE("two places that differ were asked for, and their link is no cause") {
  CaseSpec peer = device_case("1", "1GB");
  peer.from = parse_place("0", "--from");
  peer.to = parse_place("1", "--to");
  CHECK_FALSE(find(measured(peer).causes, CauseKind::remote_home));
  CaseSpec home = device_case("1", "1GB");
  home.home = parse_place("host", "--home");
  const CaseResult result = measured(home);
  const Cause* cause = find(result.causes, CauseKind::remote_home);
  REQUIRE(cause);
  CHECK(cause->option == "--memory device --home local");
}

// SPDX-License-Identifier: MIT
#include "measure.hpp"

#include "faulty.hpp"
#include "memory_guard.hpp"
#include "sim.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <string>
#include <thread>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;

namespace {

CaseSpec spec(std::string_view gpus, std::string_view size,
              MemoryKind memory = MemoryKind::device) {
  CaseSpec made;
  made.gpus = parse_gpus(gpus, "--gpus");
  made.size = parse_size(size, "--size");
  made.memory = memory;
  return made;
}

CaseSpec seed_case(std::string_view gpus, std::string_view size = "64MiB") {
  CaseSpec made = spec(gpus, size, MemoryKind::managed);
  made.home = parse_place("0", "--home");
  return made;
}

Sampling few() {
  Sampling sampling;
  sampling.samples = 20;
  return sampling;
}

Results run(Backend& backend, std::vector<CaseSpec> cases, const Sampling& sampling = few(),
            Observer* observer = nullptr, std::stop_token stop = {}) {
  Request request;
  request.cases = std::move(cases);
  request.sampling = sampling;
  const Machine machine = backend.machine();
  Observer silent;
  Watchdog dog(sampling.timeout);
  return measure(make_plan(request, machine), machine, sampling, backend,
                 observer ? *observer : silent, dog, stop);
}

Results run_sim(CaseSpec what, SimOptions options = {}, const Sampling& sampling = few()) {
  SimBackend backend(options);
  return run(backend, {std::move(what)}, sampling);
}

// For times alone: no bytes are kept.
CaseResult timed(CaseSpec what) {
  SimOptions options;
  options.data = false;
  return run_sim(std::move(what), options).cases[0];
}

Results run_faulty(std::vector<Fault> faults, CaseSpec what, const Sampling& sampling = few()) {
  FaultyBackend backend(std::make_unique<SimBackend>(), std::move(faults));
  return run(backend, {std::move(what)}, sampling);
}

bool has(const CaseResult& result, Mark mark) {
  return std::ranges::find(result.marks, mark) != result.marks.end();
}

}  // namespace

TEST_CASE("a trial takes the samples asked for, copies every byte and verifies twice") {
  const Results results = run_sim(spec("0,1", "1000003"));
  REQUIRE(results.cases.size() == 1);
  const CaseResult& result = results.cases[0];
  CHECK(result.outcome == OutcomeKind::measured);
  CHECK(result.samples == 20);
  CHECK(result.samples_ns.size() == 20);
  CHECK(result.bytes_copied == 1000003);
  CHECK(result.bytes_moved == 2000006);
  CHECK(result.verified == true);
  CHECK(result.verification.passes_checked == 2);
  CHECK(result.verification.bytes == 1000003);
  CHECK(results.complete);
  CHECK_FALSE(results.error);
}

TEST_CASE("at least one sample is taken, however short the time") {
  Sampling sampling;
  sampling.seconds = 1e-9;
  CHECK(run_sim(spec("0", "1MiB"), {}, sampling).cases[0].samples == 1);
}

TEST_CASE("sampling ends when its seconds have passed") {
  SimOptions options;
  options.data = false;
  Sampling sampling;
  sampling.seconds = 0.001;
  const CaseResult result = run_sim(spec("0", "64MiB"), options, sampling).cases[0];
  CHECK(result.samples > 1);
  CHECK(result.samples < 100);
}

TEST_CASE("two GPUs with an array each take as long as one") {
  const double one = timed(spec("0", "64MiB")).summary.median;
  const double two = timed(spec("0,1", "128MiB")).summary.median;
  CHECK(two < 1.2 * one);
}

TEST_CASE("rates count what was read and written, and the fastest sample gives the highest") {
  const CaseResult result = timed(spec("0", "64MiB"));
  CHECK(result.rates.copied.median == 67108864 / result.summary.median * 1e9);
  CHECK(result.rates.moved.median == 2 * result.rates.copied.median);
  CHECK(result.rates.moved.max >= result.rates.moved.median);
  CHECK(result.rates.moved.min <= result.rates.moved.median);
}

TEST_CASE("a prefetch of whole arrays makes two GPUs steal them from each other in every sample") {
  CaseSpec stolen = seed_case("0,1");
  stolen.prefetch = Prefetch::array;
  const double with = timed(stolen).summary.median;
  const double without = timed(seed_case("0,1")).summary.median;
  CHECK(with > 20 * without);
}

TEST_CASE("an owner wait makes copies of one array follow each other") {
  CaseSpec owned = seed_case("0,1");
  owned.owner_wait = OwnerWait::host;
  const CaseResult with = timed(owned), without = timed(seed_case("0,1"));
  CHECK(with.summary.median > 1.7 * without.summary.median);
  CHECK(*with.per_device[1].wait_ns > 0.8 * *with.per_device[0].device_ns);
  CHECK(*without.per_device[1].wait_ns == 0);
  CHECK(with.verified == true);
}

TEST_CASE("the first touch is told apart from the samples") {
  const CaseResult result = timed(seed_case("0,1"));
  REQUIRE(result.settle_ns.size() == 3);  // placing and two passes
  CHECK(result.settle_ns[1] > 3 * result.summary.max);
}

TEST_CASE("the owner wait of fresh streams, single thread and batches verifies too") {
  for (const auto& threads : vocabulary<Threads>)
    for (const auto& wait : vocabulary<OwnerWait>)
      for (const int batch : {1, 3}) {
        CaseSpec what = seed_case("0,1", "4MiB");
        what.threads = threads.value;
        what.owner_wait = wait.value;
        what.batch = batch;
        const Results results = run_sim(what);
        INFO(threads.name << " " << wait.name << " " << batch);
        CHECK(results.cases[0].verified == true);
        CHECK_FALSE(results.error);
      }
}

TEST_CASE("a batch divides the time by its executions") {
  CaseSpec once = spec("0", "64MiB"), batched = once;
  batched.batch = 16;
  const double single = timed(once).summary.median, each = timed(batched).summary.median;
  CHECK(each < single);
  CHECK(each > 0.8 * single);
}

TEST_CASE("small copies are marked as bound by the harness, large ones are not") {
  CHECK(has(run_sim(spec("0", "4KiB")).cases[0], Mark::harness_bound));
  CHECK_FALSE(has(run_sim(spec("0", "1GB"),
                          [] {
                            SimOptions options;
                            options.data = false;
                            return options;
                          }())
                      .cases[0],
                  Mark::harness_bound));
}

TEST_CASE("an idle GPU has a row that says zero bytes") {
  const CaseResult result = run_sim(spec("0,1", "4")).cases[0];
  REQUIRE(result.per_device.size() == 2);
  CHECK(result.per_device[0].bytes == 0);
  CHECK(result.per_device[0].slices == 0);
  CHECK(result.per_device[1].bytes == 4);
  CHECK(result.verified == true);
}

TEST_CASE("contexts are made on the GPUs in use alone") {
  SimOptions options;
  options.gpus = 4;
  SimBackend backend(options);
  run(backend, {spec("1,3", "1MiB")});
  CHECK(backend.opened() == std::set{1, 3});
}

TEST_CASE(
    "one flipped byte is found, with its offset, what was expected and got, how many, and who "
    "wrote it") {
  Fault flip;
  flip.act = Fault::Act::flip;
  flip.device = 1;
  flip.nth = 2;  // the last pass before the first check
  flip.offset = 5;
  const Results results = run_faulty({flip}, spec("0,1", "1000003"));
  REQUIRE(results.error);
  CHECK(results.error->kind == ErrorKind::verification);
  const CaseResult& result = results.cases[0];
  CHECK(result.outcome == OutcomeKind::failed);
  CHECK(result.verified == false);
  REQUIRE(result.verification.mismatch);
  const Mismatch& found = *result.verification.mismatch;
  const Bytes slice = slice_bounds(1000003, 2, 1, 16).first;
  CHECK(found.offset == slice + 5);
  CHECK(found.count == 1);
  CHECK(found.device == 1);
  CHECK(found.slice == 1);
  CHECK(found.expected == pattern_byte({1, false}, slice + 5));
  CHECK((found.expected ^ found.got) == 1);
  CHECK(found.kind == MismatchKind::corrupt);
  CHECK_THAT(results.error->what(), ContainsSubstring("device 1"));
}

TEST_CASE("wrong data names what went wrong: never written, zeroed or stale") {
  const auto kind = [](Fault::Act act, int nth, int times, Verify verify) {
    Fault fault;
    fault.act = act;
    fault.nth = nth;
    fault.times = times;
    Sampling sampling = few();
    sampling.verify = verify;
    const Results results = run_faulty({fault}, spec("0", "1MiB"), sampling);
    REQUIRE(results.cases[0].verification.mismatch);
    return results.cases[0].verification.mismatch->kind;
  };
  CHECK(kind(Fault::Act::skip, 1, 2, Verify::ends) == MismatchKind::never_written);
  CHECK(kind(Fault::Act::zero, 2, 1, Verify::ends) == MismatchKind::zeroed);
  CHECK(kind(Fault::Act::skip, 5, 1, Verify::every) == MismatchKind::stale);
}

TEST_CASE("a copy that goes wrong in the very last pass is found, and its samples are kept") {
  Fault skip;
  skip.act = Fault::Act::skip;
  skip.nth = 2 + 20 + 20 + 1;  // warm-up, samples, samples with events, the checked pass
  const Results results = run_faulty({skip}, spec("0", "1MiB"));
  REQUIRE(results.error);
  CHECK(results.error->kind == ErrorKind::verification);
  CHECK(results.cases[0].samples == 20);
  CHECK(results.cases[0].verification.mismatch->kind == MismatchKind::never_written);
}

TEST_CASE("without verification nothing is checked and nothing is claimed") {
  Sampling sampling = few();
  sampling.verify = Verify::none;
  Fault check;
  check.call = Fault::Call::check;
  const Results results = run_faulty({check}, spec("0", "1MiB"), sampling);
  CHECK_FALSE(results.error);
  CHECK_FALSE(results.cases[0].verified);
  CHECK(results.cases[0].verification.passes_checked == 0);
}

TEST_CASE("every sample can be verified, and says so") {
  Sampling sampling = few();
  sampling.verify = Verify::every;
  const CaseResult result = run_sim(spec("0,1", "1MiB"), {}, sampling).cases[0];
  CHECK(result.verified == true);
  CHECK(result.verification.passes_checked == 21);
  CHECK(has(result, Mark::verified_every));
}

TEST_CASE("an error in any call ends the case with its kind, and nothing hangs") {
  using Call = Fault::Call;
  // The simulated machine drives all lanes from one thread, the host backend has the real threads.
  const bool threaded = GENERATE(false, true);
  for (const Call call : {Call::open, Call::allocate, Call::open_worker, Call::fill, Call::check,
                          Call::copy, Call::sync, Call::prefetch, Call::wait_for})
    for (const auto& threads : vocabulary<Threads>) {
      Fault fault;
      fault.call = call;
      fault.kind = ErrorKind::runtime;
      fault.nth = call == Call::open_worker ? 2 : 1;
      CaseSpec what = seed_case("0,1", "4MiB");
      what.prefetch = Prefetch::slice;
      what.owner_wait = OwnerWait::host;
      what.threads = threads.value;
      std::unique_ptr<Backend> inner = std::make_unique<SimBackend>();
      if (threaded) inner = make_host_backend(2);
      FaultyBackend backend(std::move(inner), {fault});
      const Results results = run(backend, {what});
      INFO(static_cast<int>(call) << " " << threads.name << " " << threaded);
      REQUIRE(results.error);
      CHECK(results.error->kind == ErrorKind::runtime);
      CHECK(results.cases[0].outcome == OutcomeKind::failed);
    }
}

TEST_CASE(
    "a stream that cannot be made inside a sample fails it, and the other lane ends in order") {
  Fault fault;
  fault.call = Fault::Call::open_worker;
  fault.nth = 6;  // two of the crew, two of the first pass, the second of the second pass
  CaseSpec what = seed_case("0,1", "4MiB");
  what.threads = Threads::task;
  what.owner_wait = OwnerWait::event;
  FaultyBackend backend(make_host_backend(2), {fault});
  const Results results = run(backend, {what});
  REQUIRE(results.error);
  CHECK(results.cases[0].outcome == OutcomeKind::failed);
}

TEST_CASE("a case that fails does not keep the others from running, a lost device does") {
  const auto outcomes = [](bool lost) {
    Fault fault;
    fault.call = Fault::Call::sync;
    fault.nth = 3;
    fault.lost = lost;
    FaultyBackend backend(std::make_unique<SimBackend>(), {fault});
    const Results results = run(backend, {spec("0", "1MiB"), spec("0", "2MiB")});
    return std::pair{results.cases[0].outcome, results.cases[1].outcome};
  };
  CHECK(outcomes(false) == std::pair{OutcomeKind::failed, OutcomeKind::measured});
  CHECK(outcomes(true) == std::pair{OutcomeKind::failed, OutcomeKind::skipped});
}

TEST_CASE("a lost device still gives the samples taken before") {
  Fault fault;
  fault.call = Fault::Call::sync;
  fault.nth = 10;
  fault.lost = true;
  fault.device = 1;
  const Results results = run_faulty({fault}, spec("0,1", "1MiB"));
  REQUIRE(results.error);
  CHECK(results.error->lost);
  CHECK(results.cases[0].samples > 0);
  CHECK(results.cases[0].samples < 20);
}

TEST_CASE("migration counters are an average over the counted passes") {
  // Counts what the simulated machine migrated during the work.
  struct Counting : SimBackend {
    using SimBackend::SimBackend;
    Counted counted(const std::function<void()>& work) override {
      const Bytes before = counters().migrated;
      work();
      Counters found;
      found.d2d_bytes = static_cast<double>(counters().migrated - before);
      found.pairs = {{0, 1, found.d2d_bytes}};
      return found;
    }
  };
  SimOptions options;
  options.data = false;
  Counting backend(options);
  CaseSpec stolen = seed_case("0,1");
  stolen.prefetch = Prefetch::array;
  Sampling sampling = few();
  sampling.counters = true;
  const CaseResult result = run(backend, {stolen}, sampling).cases[0];
  REQUIRE(result.counters);
  CHECK(result.counters->passes == 10);
  // Each of two devices takes both whole arrays from the other in every pass.
  CHECK(result.counters->d2d_bytes > 3.9 * (64 << 20));
  CHECK(result.counters->d2d_bytes <= 4.0 * (64 << 20));
  CHECK(result.counters->pairs[0].bytes == result.counters->d2d_bytes);
}

TEST_CASE("what holds clocks down and who else computes are marks, and both states are kept") {
  struct Watched : SimBackend {
    using SimBackend::SimBackend;
    std::optional<Telemetry> telemetry(int device) override {
      Telemetry state;
      state.sm_mhz = 1980;
      if (device == 1) state.event_reasons = {"sw-power-cap"};
      state.other_processes = device;
      return state;
    }
  } backend;
  const CaseResult result = run(backend, {spec("0,1", "1MiB")}).cases[0];
  CHECK(has(result, Mark::throttled));
  CHECK(has(result, Mark::shared));
  CHECK(result.per_device[0].before->sm_mhz == 1980);
  CHECK(result.per_device[1].after->event_reasons == std::vector<std::string>{"sw-power-cap"});
  SimBackend quiet;
  CHECK_FALSE(has(run(quiet, {spec("0,1", "1MiB")}).cases[0], Mark::throttled));
}

TEST_CASE("sampling stops once the median is known as well as asked") {
  SimOptions options;
  options.data = false;
  SimBackend backend(options);
  Sampling sampling;
  sampling.until = 1;
  sampling.seconds = 100;
  const CaseResult result = run(backend, {spec("0", "16GB")}, sampling).cases[0];
  CHECK(result.samples >= 50);
  CHECK(result.samples < 200);
}

TEST_CASE("peer access that is granted and gives wrong data is not used") {
  Fault flip;
  flip.act = Fault::Act::flip;
  CaseSpec what = spec("1", "1MiB");
  what.home = parse_place("0", "--home");
  const Results refused = run_faulty({flip}, what);
  REQUIRE(refused.error);
  CHECK(refused.error->kind == ErrorKind::unavailable);
  CHECK_THAT(refused.error->what(),
             ContainsSubstring("IOMMU") && ContainsSubstring("--engine memcpy"));
  what.peer = Peer::on;
  const Results required = run_faulty({flip}, what);
  REQUIRE(required.error);
  CHECK(required.error->kind == ErrorKind::verification);
}

TEST_CASE("peer access that cannot be had ends a kernel's case") {
  Fault fault;
  fault.call = Fault::Call::connect;
  fault.kind = ErrorKind::unavailable;
  CaseSpec what = spec("1", "1MiB");
  what.home = parse_place("0", "--home");
  const Results results = run_faulty({fault}, what);
  REQUIRE(results.error);
  CHECK(results.error->kind == ErrorKind::unavailable);
}

TEST_CASE("a stop request ends the run after the running sample, with what was found") {
  struct Stopper : Observer {
    std::stop_source source;
    void progress(const Progress& now) override {
      if (std::string_view(now.phase) == "sampling") source.request_stop();
    }
  } stopper;
  SimOptions options;
  options.data = false;
  SimBackend backend(options);
  Sampling sampling;
  sampling.samples = 1'000'000;
  sampling.seconds = 1000;
  const Results results = run(backend, {spec("0", "256MiB"), spec("0", "1MiB")}, sampling, &stopper,
                              stopper.source.get_token());
  CHECK_FALSE(results.complete);
  REQUIRE(results.cases.size() == 1);
  CHECK(results.cases[0].samples > 0);
  CHECK_FALSE(results.cases[0].verified);
}

TEST_CASE("a stop request before the first sample leaves no result") {
  std::stop_source source;
  source.request_stop();
  SimBackend backend;
  const Results results = run(backend, {spec("0", "1MiB")}, few(), nullptr, source.get_token());
  CHECK_FALSE(results.complete);
  CHECK(results.cases.empty());
}

TEST_CASE("a step that hangs is told with what was found, its phase, lane and device") {
  struct Listener : Observer {
    FaultyBackend* backend = nullptr;
    std::vector<CaseResult> cases;
    std::string why;
    void stuck(const std::vector<CaseResult>& finished_cases, const Error& error, int) override {
      cases = finished_cases;
      why = error.what();
      backend->release();
    }
  } listener;
  Fault hang;
  hang.call = Fault::Call::sync;
  hang.act = Fault::Act::hang;
  hang.device = 1;
  hang.nth = 8;
  FaultyBackend backend(std::make_unique<SimBackend>(), {hang});
  listener.backend = &backend;
  Sampling sampling = few();
  sampling.timeout = 0.5;
  const Results results =
      run(backend, {spec("0,1", "1MiB"), spec("0", "2MiB")}, sampling, &listener);
  REQUIRE(listener.cases.size() == 1);
  CHECK(listener.cases[0].samples > 0);
  CHECK_THAT(listener.why, ContainsSubstring("slice 1 on device 1 is synchronising"));
  REQUIRE(results.error);
  CHECK(results.error->kind == ErrorKind::timeout);
  REQUIRE(results.cases.size() == 2);
  CHECK(results.cases[1].reason == "not run");
}

TEST_CASE("a signal gives the running step one second, then it is told") {
  struct Listener : Observer {
    FaultyBackend* backend = nullptr;
    int signal = 0;
    void stuck(const std::vector<CaseResult>&, const Error&, int number) override {
      signal = number;
      backend->release();
    }
  } listener;
  Fault hang;
  hang.call = Fault::Call::sync;
  hang.act = Fault::Act::hang;
  hang.nth = 5;
  FaultyBackend backend(std::make_unique<SimBackend>(), {hang});
  listener.backend = &backend;
  Sampling sampling = few();
  sampling.timeout = 0;  // no limit of its own
  Request request;
  request.cases = {spec("0", "1MiB")};
  const Machine machine = backend.machine();
  Watchdog dog(sampling.timeout);
  std::thread signaller([&] {
    backend.wait_until_hung();
    dog.interrupt(15);
  });
  measure(make_plan(request, machine), machine, sampling, backend, listener, dog, {});
  signaller.join();
  CHECK(listener.signal == 15);
}

TEST_CASE("the memory guard names the place, what is needed and what there is") {
  const Machine machine = SimBackend().machine();
  Request request;
  request.cases = {spec("0,1", "64GB/gpu")};
  const Case what = make_plan(request, machine).cases[0].what;
  const auto all_free = [](const Site&) { return Bytes{200'000'000'000}; };
  CHECK_NOTHROW(check_memory(what, machine, all_free, false));  // 128 GB on each of 180
  try {
    check_memory(
        what, machine,
        [](const Site& site) { return site.is(1) ? Bytes{1} << 30 : Bytes{1} << 40; }, false);
    FAIL("GPU 1 has one GiB");
  } catch (const Error& error) {
    CHECK(error.kind == ErrorKind::memory);
    CHECK(error.device == 1);
    CHECK_THAT(error.what(), ContainsSubstring("GPU 1") && ContainsSubstring("need") &&
                                 ContainsSubstring("have"));
  }
}

TEST_CASE(
    "managed arrays may exceed a GPU only where it is asked for, and never GPU and host together") {
  const Machine machine = SimBackend().machine();
  Request request;
  request.cases = {spec("0", "80GB", MemoryKind::managed)};
  const Case what = make_plan(request, machine).cases[0].what;
  const auto free = [](Bytes host) {
    return [host](const Site& site) { return site.on_host() ? host : Bytes{100'000'000'000}; };
  };
  CHECK_THROWS_AS(check_memory(what, machine, free(200'000'000'000), false), Error);
  CHECK_NOTHROW(check_memory(what, machine, free(200'000'000'000), true));
  CHECK_THROWS_AS(check_memory(what, machine, free(10'000'000'000), true), Error);
}

TEST_CASE("CPU devices of one node share its memory in the guard") {
  Machine machine = SimBackend().machine();
  machine.backend = BackendKind::host;
  for (Device& device : machine.devices) device.numa = 0;
  Request request;
  request.cases = {spec("0,1", "6GB/gpu")};
  const Case what = make_plan(request, machine).cases[0].what;
  CHECK_THROWS_AS(check_memory(
                      what, machine, [](const Site&) { return Bytes{20'000'000'000}; }, false),
                  Error);
  CHECK_NOTHROW(check_memory(
      what, machine, [](const Site&) { return Bytes{30'000'000'000}; }, false));
}

// SPDX-License-Identifier: MIT
#include "faulty.hpp"

#include "sim_bench.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace mgpu {
namespace {

constexpr Bytes size = 1003;

// Two devices of a faulty simulation, each with a source, a poisoned destination and a worker.
struct FaultyBench {
  explicit FaultyBench(const std::vector<Fault>& faults)
      : backend(std::make_unique<SimBackend>(), faults) {
    backend.open(std::vector{0, 1}, Wait::block, Affinity::near);
    backend.connect(0, 1);
    for (int k = 0; k < 2; ++k) {
      to.push_back(backend.allocate({MemoryKind::device, on_device(k), size}));
      from.push_back(backend.allocate({MemoryKind::device, on_device(k), size}));
      backend.fill(on_device(k), source(k), {1}, 0);
      backend.fill(on_device(k), destination(k), {1, true}, 0);
      workers.push_back(backend.open_worker(k));
    }
  }
  Part source(std::size_t k) const { return {from[k].get(), 0, size}; }
  Part destination(std::size_t k) const { return {to[k].get(), 0, size}; }
  Check copied(std::size_t k) {
    workers[k]->begin(backend.now());
    workers[k]->copy(destination(k), source(k), Engine::kernel, 16);
    workers[k]->sync();
    return backend.check(on_device(static_cast<int>(k)), destination(k), {1}, 0);
  }
  FaultyBackend backend;
  std::vector<std::unique_ptr<Buffer>> to, from;
  std::vector<std::unique_ptr<Worker>> workers;
};

Fault fault(Fault::Call call, Fault::Act act = Fault::Act::fail, int nth = 1) {
  Fault made;
  made.call = call;
  made.act = act;
  made.nth = nth;
  return made;
}

}  // namespace

TEST_CASE("a faulty backend without faults is the backend that it wraps") {
  std::vector<std::string> bare_log, wrapped_log;
  const auto drive = [](Backend& backend) {
    const Machine machine = backend.machine();
    backend.open(std::vector{0, 1}, Wait::block, Affinity::near);
    backend.connect(1, 0);
    const auto array = backend.allocate(
        {MemoryKind::managed, on_device(0), backend.free_memory(whole_host) / 1000000});
    const Part all = {array.get(), 0, 1000}, half = {array.get(), 0, 500},
               rest = {array.get(), 500, 500};
    backend.fill(on_device(0), all, {2}, 0);
    const auto a = backend.open_worker(0), b = backend.open_worker(1);
    a->anchor();
    a->begin(backend.now());
    a->advise(all, Advice::read_mostly, on_device(0));
    a->prefetch(all, on_device(0));
    a->copy(half, rest, Engine::kernel, 4);
    b->begin(backend.now());
    b->wait_for(*a, OwnerWait::host);
    const int mark = a->mark();
    a->sync();
    b->sync();
    CHECK(backend.check(on_device(0), half, {2}, 500).bad == 0);
    CHECK_FALSE(backend.threaded());
    return std::vector<Nanos>{a->at(mark), a->now(), b->now(), backend.now(),
                              static_cast<Nanos>(machine.devices.size())};
  };
  SimOptions options;
  options.log = &bare_log;
  SimBackend bare(options);
  options.log = &wrapped_log;
  FaultyBackend wrapped(std::make_unique<SimBackend>(options), {});
  CHECK(drive(bare) == drive(wrapped));
  CHECK(bare_log == wrapped_log);
  CHECK(wrapped.fired() == 0);
}

TEST_CASE("a fault hits the nth call of its class and no other") {
  Fault third = fault(Fault::Call::copy, Fault::Act::fail, 3);
  third.kind = ErrorKind::memory;
  FaultyBench bench({third});
  CHECK(bench.copied(0).bad == 0);
  CHECK(bench.copied(1).bad == 0);
  const Error error = thrown_by([&] { bench.copied(0); });
  CHECK(error.kind == ErrorKind::memory);
  CHECK(error.device == 0);
  CHECK_FALSE(error.lost);
  CHECK(bench.copied(0).bad == 0);
  CHECK(bench.backend.fired() == 1);
}

TEST_CASE("a fault counts the calls of its device alone, and may last") {
  Fault second = fault(Fault::Call::copy, Fault::Act::fail, 2);
  second.device = 1;
  second.times = 2;
  FaultyBench bench({second});
  for (int pass = 1; pass <= 4; ++pass) {
    CHECK(bench.copied(0).bad == 0);
    if (pass == 2 || pass == 3)
      CHECK(thrown_by([&] { bench.copied(1); }).device == 1);
    else
      CHECK(bench.copied(1).bad == 0);
  }
}

TEST_CASE("every class of calls can fail") {
  using Call = Fault::Call;
  const Call call = GENERATE(Call::machine, Call::open, Call::connect, Call::free_memory,
                             Call::allocate, Call::open_worker, Call::fill, Call::check,
                             Call::begin, Call::advise, Call::prefetch, Call::copy, Call::mark,
                             Call::wait_for, Call::sync, Call::anchor, Call::at);
  FaultyBackend backend(std::make_unique<SimBackend>(), {fault(call)});
  int failures = 0;
  const auto attempt = [&](const std::function<void()>& what) {
    try {
      what();
    } catch (const Error&) {
      ++failures;
      what();  // only the first one fails
    }
  };
  std::unique_ptr<Buffer> array;
  std::unique_ptr<Worker> worker;
  Part part;
  attempt([&] { backend.machine(); });
  attempt([&] { backend.open(std::vector{0, 1}, Wait::block, Affinity::near); });
  attempt([&] { backend.connect(0, 1); });
  attempt([&] { backend.free_memory(on_device(0)); });
  attempt([&] { array = backend.allocate({MemoryKind::managed, on_device(0), 100}); });
  part = {array.get(), 0, 100};
  attempt([&] { worker = backend.open_worker(0); });
  attempt([&] { backend.fill(on_device(0), part, {}, 0); });
  attempt([&] { backend.check(on_device(0), part, {}, 0); });
  attempt([&] { worker->anchor(); });
  attempt([&] { worker->begin(0); });
  attempt([&] { worker->advise(part, Advice::preferred, on_device(0)); });
  attempt([&] { worker->prefetch(part, on_device(0)); });
  attempt([&] { worker->copy(part, part, Engine::memcpy, 16); });
  attempt([&] { worker->mark(); });
  attempt([&] { worker->wait_for(*worker, OwnerWait::event); });
  attempt([&] { worker->sync(); });
  attempt([&] { worker->at(0); });
  CHECK(failures == 1);
  CHECK(backend.fired() == 1);
}

TEST_CASE("a flipped byte differs in one bit, where it was told") {
  Fault flip = fault(Fault::Call::copy, Fault::Act::flip, 2);
  flip.offset = GENERATE(Bytes{0}, Bytes{517}, size - 1);
  FaultyBench bench({flip});
  CHECK(bench.copied(0).bad == 0);
  const Check found = bench.copied(0);
  CHECK(found.bad == 1);
  CHECK(found.first == flip.offset);
  CHECK(found.got[0] == (pattern_byte({1}, flip.offset) ^ 1));
  CHECK(bench.copied(0).bad == 0);
}

TEST_CASE("a skipped copy leaves the poison") {
  FaultyBench bench({fault(Fault::Call::copy, Fault::Act::skip)});
  const Check found = bench.copied(0);
  CHECK(found.bad == size);
  CHECK(found.got[0] == pattern_byte({1, true}, 0));
  CHECK(bench.copied(0).bad == 0);
}

TEST_CASE("a skipped poison before a skipped copy leaves the earlier pass") {
  // Fills 1 to 4 are the bench's own, 5 renews the source and 6 poisons the destination.
  FaultyBench bench({fault(Fault::Call::fill, Fault::Act::skip, 6),
                     fault(Fault::Call::copy, Fault::Act::skip, 2)});
  CHECK(bench.copied(0).bad == 0);
  bench.backend.fill(on_device(0), bench.source(0), {2}, 0);
  bench.backend.fill(on_device(0), bench.destination(0), {2, true}, 0);
  bench.copied(0);
  CHECK(bench.backend.check(on_device(0), bench.source(0), {2}, 0).bad == 0);
  CHECK(bench.backend.check(on_device(0), bench.destination(0), {1}, 0).bad == 0);
}

TEST_CASE("a zeroed destination holds zeros and nothing beside it does") {
  FaultyBackend backend(std::make_unique<SimBackend>(),
                        {fault(Fault::Call::copy, Fault::Act::zero)});
  backend.open(std::vector{0}, Wait::block, Affinity::near);
  const Bytes bytes = GENERATE(Bytes{1}, Bytes{8}, Bytes{13}, Bytes{1000});
  const auto to = backend.allocate({MemoryKind::device, on_device(0), 1024});
  const auto from = backend.allocate({MemoryKind::device, on_device(0), 1024});
  backend.fill(on_device(0), {to.get(), 0, 1024}, {1}, 0);
  const auto worker = backend.open_worker(0);
  worker->begin(backend.now());
  worker->copy({to.get(), 3, bytes}, {from.get(), 0, bytes}, Engine::kernel, 16);
  worker->sync();
  CHECK(backend.check(on_device(0), {to.get(), 0, 3}, {1}, 0).bad == 0);
  CHECK(backend.check(on_device(0), {to.get(), 3 + bytes, 1021 - bytes}, {1}, 3 + bytes).bad == 0);
  for (Bytes i = 0; i < bytes; ++i) {
    const Part byte = {to.get(), 3 + i, 1};
    const Check found = backend.check(on_device(0), byte, {0, pattern_byte({}, 0) == 0}, 0);
    REQUIRE(found.bad == 1);
    REQUIRE(found.got[0] == 0);
  }
}

TEST_CASE("a skipped wait, prefetch, advice or connection never reaches the backend") {
  std::vector<std::string> log;
  SimOptions options;
  options.log = &log;
  FaultyBackend backend(std::make_unique<SimBackend>(options),
                        {fault(Fault::Call::connect, Fault::Act::skip),
                         fault(Fault::Call::wait_for, Fault::Act::skip),
                         fault(Fault::Call::prefetch, Fault::Act::skip),
                         fault(Fault::Call::advise, Fault::Act::skip)});
  backend.open(std::vector{0, 1}, Wait::block, Affinity::near);
  backend.connect(0, 1);
  const auto array = backend.allocate({MemoryKind::managed, on_device(0), 100});
  const auto worker = backend.open_worker(0);
  log.clear();
  worker->wait_for(*worker, OwnerWait::host);
  worker->prefetch({array.get(), 0, 100}, on_device(0));
  worker->advise({array.get(), 0, 100}, Advice::preferred, on_device(0));
  CHECK(log.empty());
  CHECK(backend.fired() == 4);
}

TEST_CASE("after a device is lost every call fails in the same way, but for the clocks") {
  Fault lost = fault(Fault::Call::sync);
  lost.device = 1;
  lost.lost = true;
  FaultyBench bench({lost});
  CHECK(bench.copied(0).bad == 0);
  CHECK(thrown_by([&] { bench.copied(1); }).lost);
  const Error later = thrown_by([&] { bench.copied(0); });
  CHECK(later.lost);
  CHECK(later.device == 1);
  CHECK(thrown_by([&] { bench.backend.allocate({MemoryKind::device, on_device(0), 1}); }).lost);
  CHECK(bench.backend.now() >= bench.workers[0]->now());
  CHECK(bench.backend.fired() == 1);
}

TEST_CASE("a hung call blocks until it is released, then goes on") {
  FaultyBench bench({fault(Fault::Call::sync, Fault::Act::hang)});
  Check found;
  std::atomic<bool> done = false;
  std::thread driver([&] {
    found = bench.copied(0);
    done = true;
  });
  bench.backend.wait_until_hung();
  CHECK_FALSE(done);
  bench.backend.release();
  driver.join();
  CHECK(done);
  CHECK(found.bad == 0);
}

TEST_CASE("a hidden capability is missing from the machine") {
  FaultyBackend backend(std::make_unique<SimBackend>(), {},
                        [](Machine& machine) { machine.devices[1].concurrent_managed = false; });
  CHECK_FALSE(backend.machine().devices[1].concurrent_managed);
  CHECK(backend.machine().devices[0].concurrent_managed);
}

TEST_CASE("a fault that cannot happen is refused") {
  const Fault impossible = GENERATE(fault(Fault::Call::sync, Fault::Act::skip),
                                    fault(Fault::Call::fill, Fault::Act::flip),
                                    fault(Fault::Call::check, Fault::Act::zero));
  CHECK_THROWS_AS(FaultyBackend(std::make_unique<SimBackend>(), {impossible}), std::logic_error);
}

}  // namespace mgpu

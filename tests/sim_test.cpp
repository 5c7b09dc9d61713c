// SPDX-License-Identifier: MIT
#include "sim.hpp"

#include "sim_bench.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace mgpu {

TEST_CASE("simulated fills and checks are real, byte for byte, and cost time") {
  SimBench bench;
  const Bytes bytes = 1003;
  const auto to = bench.device(0, 2000), from = bench.device(0, 2000);
  const Nanos start = bench.sim.now();
  bench.sim.fill(on_device(0), part(from, bytes, 5), {7}, 77);
  CHECK(bench.sim.now() - start == 10 + 1003 + 5);
  bench.sim.fill(on_device(0), part(to, 2000), {7, true}, 77);
  const auto worker = bench.sim.open_worker(0);
  worker->begin(bench.sim.now());
  worker->copy(part(to, bytes, 11), part(from, bytes, 5), GENERATE(Engine::kernel, Engine::memcpy),
               16);
  worker->sync();
  CHECK(bench.sim.check(on_device(0), part(to, bytes, 11), {7}, 77).bad == 0);

  const Check around = bench.sim.check(on_device(0), part(to, bytes + 3, 8), {7}, 74);
  CHECK(around.bad == 3);
  CHECK(around.first == 0);
  for (std::uint64_t i = 0; i < 3; ++i)
    CHECK(around.got[i] == pattern_byte({7, true}, 77 + 8 + i));  // what the copy left alone
  const Check tail = bench.sim.check(on_device(0), part(to, bytes + 2, 11), {7}, 77);
  CHECK(tail.first == bytes);
  CHECK(tail.bad == 2);
  CHECK(tail.got[2] == 0);
}

TEST_CASE("a simulation without bytes finds all of them good, at any size") {
  SimOptions options;
  options.data = false;
  SimBench bench(options);
  const Bytes bytes = 4'000'000'000;
  const auto to = bench.managed(bytes), from = bench.managed(bytes);
  bench.sim.fill(on_device(0), part(from, bytes), {1}, 0);
  CHECK(bench.sim.check(on_device(0), part(to, bytes), {1}, 0).bad == 0);
  CHECK(bench.sim.now() == 2 * 100'000 + 2 * (4'000 + 2'000'000 + 3'000));
}

TEST_CASE("the simulated machine is the same everywhere") {
  SimBackend sim;
  const Machine machine = sim.machine();
  CHECK(machine.host.name == "sim");
  CHECK(machine.host.allowed_cpus == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  REQUIRE(machine.devices.size() == 2);
  CHECK(machine.devices[1].ordinal == 1);
  CHECK(machine.devices[1].uuid == "GPU-00000001-0000-0000-0000-000000000000");
  CHECK(machine.devices[1].pci == "00000000:02:00.0");
  CHECK(machine.devices[1].peers == std::vector<bool>{true, false});
  CHECK(sim.opened().empty());
  CHECK_FALSE(sim.threaded());
}

TEST_CASE("a simulation without GPUs has nothing to run on") {
  SimOptions options;
  options.gpus = 0;
  SimBackend sim(options);
  CHECK(thrown_by([&] { sim.machine(); }).kind == ErrorKind::no_gpu);
}

TEST_CASE("simulated devices lack what they are told to lack") {
  SimOptions options = round_options();
  options.peers = false;
  options.managed = {true, false};
  options.concurrent_managed = {true, false};
  SimBench bench(options);
  const Machine machine = bench.sim.machine();
  CHECK_FALSE(machine.devices[0].peers[1]);
  CHECK_FALSE(machine.devices[1].managed);
  CHECK_FALSE(machine.devices[1].concurrent_managed);
  CHECK(machine.devices[0].concurrent_managed);

  CHECK(thrown_by([&] { bench.sim.connect(0, 1); }).kind == ErrorKind::unavailable);
  const Error refused = thrown_by([&] {
    bench.sim.allocate({MemoryKind::managed, on_device(1), 100});
  });
  CHECK(refused.kind == ErrorKind::unavailable);
  CHECK(refused.device == 1);

  const auto to = bench.managed(4000), from = bench.managed(4000);
  const auto worker = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  worker->begin(release);
  for (const Error& error :
       {thrown_by([&] { worker->prefetch(part(to, 4000), on_device(1)); }),
        thrown_by([&] { worker->advise(part(to, 4000), Advice::preferred, on_device(1)); })}) {
    CHECK(error.kind == ErrorKind::unavailable);
    CHECK(error.device == 1);
    CHECK(std::string(error.what()).find("(101)") != std::string::npos);
  }
  worker->copy(part(to, 4000), part(from, 4000), Engine::kernel, 16);
  worker->sync();
  CHECK(worker->now() - release == 2 + 10 + 40'000 + 5);  // pages stay where they were allocated
  CHECK(bench.sim.counters().migrated == 0);
}

TEST_CASE("a simulated kernel without peer access ends the process' use of its device") {
  SimOptions options = round_options();
  options.peers = false;
  SimBench bench(options);
  const auto to = bench.device(0, 100), from = bench.device(1, 100);
  const auto worker = bench.sim.open_worker(0);
  const Error error =
      thrown_by([&] { worker->copy(part(to, 100), part(from, 100), Engine::kernel, 16); });
  CHECK(error.kind == ErrorKind::runtime);
  CHECK(error.lost);
  CHECK(error.device == 0);
}

TEST_CASE("simulated memory runs out and comes back") {
  SimOptions options = round_options();
  options.gpu_memory = 1000;
  options.host_memory = 500;
  SimBench bench(options);
  CHECK(bench.sim.free_memory(whole_host) == 500);
  {
    const auto held = bench.device(1, 600);
    CHECK(bench.sim.free_memory(on_device(1)) == 400);
    CHECK(bench.sim.free_memory(on_device(0)) == 1000);
    const Error error = thrown_by([&] { bench.device(1, 401); });
    CHECK(error.kind == ErrorKind::memory);
    CHECK(error.device == 1);
    CHECK(bench.device(1, 400) != nullptr);
  }
  CHECK(bench.sim.free_memory(on_device(1)) == 1000);
  CHECK(bench.managed(1500) != nullptr);
  CHECK(thrown_by([&] { bench.managed(1501); }).kind == ErrorKind::memory);
}

TEST_CASE("every simulated call leaves a line") {
  std::vector<std::string> log;
  {
    SimOptions options;
    options.log = &log;
    SimBackend sim(options);
    sim.open(std::vector{0, 1}, Wait::block, Affinity::near);
    CHECK(sim.opened() == std::set{0, 1});
    sim.connect(0, 1);
    const auto array = sim.allocate({MemoryKind::managed, on_device(0), 4'000});
    sim.fill(on_device(0), part(array, 4'000), {3, true}, 8);
    const auto a = sim.open_worker(0), b = sim.open_worker(1);
    b->begin(sim.now());
    b->advise(part(array, 10), Advice::preferred, on_device(1));
    b->wait_for(*a, OwnerWait::event);
    b->prefetch(part(array, 2'000), on_device(1));
    b->copy(part(array, 2'000), part(array, 2'000, 2'000), Engine::kernel, 8);
    b->sync();
    CHECK(sim.check(on_device(0), part(array, 10), {3}, 0).bad > 0);
  }
  CHECK(log == std::vector<std::string>{
                   "open 0,1", "connect 0->1", "allocate managed 4000 on 0",
                   "fill 0[0, +4000) by 0 key 3 inverted base 8", "open worker 0 on 0",
                   "open worker 1 on 1", "begin worker 1",
                   "advise 0[0, +10) preferred for 1 by worker 1",
                   "wait event by worker 1 for worker 0", "prefetch 0[0, +2000) to 1 by worker 1",
                   "copy 0[0, +2000) <- 0[2000, +2000) by worker 1 kernel 8", "sync worker 1",
                   "check 0[0, +10) by 0 key 3 base 0", "close worker 1", "close worker 0",
                   "free buffer 0"});
}

TEST_CASE("a simulation notices what breaks the contract of a backend") {
  SimBackend sim(round_options());
  sim.open(std::vector{1}, Wait::block, Affinity::near);
  CHECK_THROWS_AS(sim.open(std::vector{2}, Wait::block, Affinity::near), Error);
  CHECK_THROWS_AS(sim.allocate({MemoryKind::device, on_device(0), 10}), std::logic_error);
  CHECK_THROWS_AS(sim.open_worker(0), std::logic_error);
  CHECK_THROWS_AS(sim.free_memory(on_device(0)), std::logic_error);
  CHECK_THROWS_AS(sim.connect(1, 0), std::logic_error);
  sim.open(std::vector{0}, Wait::block, Affinity::near);
  const auto array = sim.allocate({MemoryKind::device, on_device(1), 100});
  CHECK_THROWS_AS(sim.connect(1, 0), std::logic_error);
  CHECK_THROWS_AS(sim.fill(on_device(1), part(array, 1, 100), {}, 0), std::logic_error);
  CHECK_THROWS_AS(sim.check(on_device(1), {}, {}, 0), std::logic_error);
  auto worker = sim.open_worker(1);
  worker->begin(0);
  CHECK_THROWS_AS(worker->copy(part(array, 10), part(array, 11), Engine::kernel, 16),
                  std::logic_error);
  CHECK_THROWS_AS(worker->prefetch(part(array, 10), on_device(1)), std::logic_error);
  worker->mark();
  worker->sync();
  CHECK_THROWS_AS(worker->at(0), std::logic_error);  // no anchor
  worker->anchor();
  worker->mark();
  CHECK_THROWS_AS(worker->at(0), std::logic_error);  // no sync
  CHECK(sim.counters().undrained == 0);
  worker.reset();
  CHECK(sim.counters().undrained == 1);
}

}  // namespace mgpu

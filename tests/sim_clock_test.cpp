// SPDX-License-Identifier: MIT
#include "sim.hpp"
#include "sim_bench.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

constexpr Bytes block = 2 << 20;

}  // namespace

TEST_CASE("two simulated workers on one device take turns at its memory") {
  SimBench bench;
  const auto to = bench.device(0, 8000), from = bench.device(0, 8000);
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(0);
  const Nanos release = bench.sim.now();
  CHECK(release == 2 * 100 + 2 * 20);
  CHECK(a->begin(release) == release + 2);
  a->copy(part(to, 4000), part(from, 4000), Engine::kernel, 16);
  CHECK(a->now() == release + 2 + 10);
  CHECK(b->begin(release) == release + 2);
  b->copy(part(to, 4000, 4000), part(from, 4000, 4000), Engine::kernel, 16);
  a->sync();
  b->sync();
  CHECK(a->now() == release + 12 + 4000 + 5);
  CHECK(b->now() == release + 12 + 8000 + 5);
  CHECK(bench.sim.now() == b->now());
}

TEST_CASE("two simulated devices copy at the same time") {
  SimBench bench;
  const Nanos alone = 2 + 10 + 4000 + 5;
  const auto to0 = bench.device(0, 4000), from0 = bench.device(0, 4000);
  const auto to1 = bench.device(1, 4000), from1 = bench.device(1, 4000);
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  a->begin(release);
  a->copy(part(to0, 4000), part(from0, 4000), Engine::kernel, 16);
  b->begin(release);
  b->copy(part(to1, 4000), part(from1, 4000), Engine::kernel, 16);
  a->sync();
  b->sync();
  CHECK(a->now() - release == alone);
  CHECK(b->now() - release == alone);
}

TEST_CASE("simulated peer copies cross a link that carries each way by itself") {
  SimBench bench;
  const Nanos alone = 2 + 10 + 40'000 + 5;
  const auto on0 = bench.device(0, 8000), on1 = bench.device(1, 8000);
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  a->begin(release);
  b->begin(release);
  a->copy(part(on0, 4000), part(on1, 4000), Engine::kernel, 16);  // 0 reads from 1
  SECTION("the other way at the same time costs nothing more") {
    b->copy(part(on1, 4000, 4000), part(on0, 4000, 4000), Engine::kernel, 16);
    b->sync();
    CHECK(b->now() - release == alone);
  }
  SECTION("the same way waits, whoever executes") {
    b->copy(part(on0, 4000, 4000), part(on1, 4000, 4000), Engine::kernel, 16);
    b->sync();
    CHECK(b->now() - release == alone + 40'000);
  }
  a->sync();
  CHECK(a->now() - release == alone);
}

TEST_CASE("a simulated kernel on the wrong device sends both accesses over the link") {
  SimBench bench;
  const auto to = bench.device(0, 4000), from = bench.device(0, 4000);
  const auto worker = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  worker->begin(release);
  SECTION("a kernel runs where it is launched") {
    worker->copy(part(to, 4000), part(from, 4000), Engine::kernel, 16);
    worker->sync();
    CHECK(worker->now() - release == 2 + 10 + 40'000 + 5);
  }
  SECTION("the copy engine runs where the memory is") {
    worker->copy(part(to, 4000), part(from, 4000), Engine::memcpy, 16);
    worker->sync();
    CHECK(worker->now() - release == 2 + 10 + 4'000 + 5);
  }
}

TEST_CASE("a simulated managed array faults to the device that copies it, once") {
  SimBench bench;
  const Bytes bytes = 2 * block + 1000;
  const auto to = bench.managed(bytes), from = bench.managed(bytes);
  bench.sim.fill(on_device(0), part(from, bytes), {1}, 0);
  bench.sim.fill(on_device(0), part(to, bytes), {2}, 0);
  CHECK(bench.sim.counters().fault_groups == 0);
  const auto worker = bench.sim.open_worker(1);
  const auto pass = [&] {
    const Nanos release = bench.sim.now();
    worker->begin(release);
    worker->copy(part(to, bytes), part(from, bytes), Engine::kernel, 16);
    worker->sync();
    return worker->now() - release;
  };
  const Nanos local = 2 + 10 + static_cast<Nanos>(bytes) + 5;
  CHECK(pass() == local + 6 * Nanos{60'000});
  CHECK(bench.sim.counters().fault_groups == 6);
  CHECK(bench.sim.counters().migrated == 2 * bytes);
  CHECK(pass() == local);
  CHECK(bench.sim.counters().fault_groups == 6);
  CHECK(bench.sim.check(on_device(1), part(to, bytes), {1}, 0).bad == 0);
  CHECK(bench.sim.counters().fault_groups == 6);
}

TEST_CASE("slices that meet inside a simulated block steal it from each other") {
  SimBench bench;
  const auto to = bench.managed(2 * block), from = bench.managed(2 * block);
  const Bytes meet = block + 4096;
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
  const auto pass = [&] {
    const std::int64_t before = bench.sim.counters().fault_groups;
    const Nanos release = bench.sim.now();
    a->begin(release);
    b->begin(release);
    a->copy(part(to, meet), part(from, meet), Engine::kernel, 16);
    b->copy(part(to, 2 * block - meet, meet), part(from, 2 * block - meet, meet), Engine::kernel,
            16);
    a->sync();
    b->sync();
    return bench.sim.counters().fault_groups - before;
  };
  CHECK(pass() == 2);  // never touched before: the second lane takes what the first has just made
  CHECK(pass() == 4);
  CHECK(pass() == 4);
}

TEST_CASE("a simulated prefetch moves blocks, so that the copy finds them") {
  SimBench bench;
  const auto to = bench.managed(3 * block), from = bench.managed(3 * block);
  bench.sim.fill(on_device(0), part(from, 3 * block), {1}, 0);
  bench.sim.fill(on_device(0), part(to, 3 * block), {2}, 0);
  const auto worker = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  worker->begin(release);
  worker->prefetch(part(from, 3 * block), on_device(1));
  CHECK(worker->now() - release == 2 + 3);
  worker->prefetch(part(to, 3 * block), on_device(1));
  worker->copy(part(to, 3 * block), part(from, 3 * block), Engine::kernel, 16);
  worker->sync();
  CHECK(worker->now() - release == 2 + 3 + 6 * 20'000 + static_cast<Nanos>(3 * block) + 5);
  CHECK(bench.sim.counters().prefetched == 6);
  CHECK(bench.sim.counters().fault_groups == 0);
}

TEST_CASE("simulated migrations of different devices wait for one driver") {
  SimBench bench;
  const auto array = bench.managed(2 * block);
  bench.sim.fill(on_device(1), part(array, block), {1}, 0);
  bench.sim.fill(on_device(0), part(array, block, block), {1}, block);
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  a->begin(release);
  b->begin(release);
  a->prefetch(part(array, block), on_device(0));
  b->prefetch(part(array, block, block), on_device(1));
  a->sync();
  b->sync();
  CHECK(a->now() - release == 2 + 3 + 20'000 + 5);
  CHECK(b->now() - release == 2 + 3 + 40'000 + 5);
}

TEST_CASE("the simulated copy engine leaves managed pages where they are") {
  SimBench bench;
  const auto to = bench.managed(block), from = bench.managed(block);
  bench.sim.fill(on_device(0), part(from, block), {1}, 0);
  bench.sim.fill(on_device(0), part(to, block), {2}, 0);
  const auto worker = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  worker->begin(release);
  worker->copy(part(to, block), part(from, block), Engine::memcpy, 16);
  worker->sync();
  CHECK(worker->now() - release == 2 + 10 + static_cast<Nanos>(block) + 5);
  CHECK(bench.sim.counters().migrated == 0);
}

TEST_CASE("an owner wait blocks the simulated thread, or its stream alone") {
  SimBench bench;
  const auto to0 = bench.device(0, 4000), from0 = bench.device(0, 4000);
  const auto to1 = bench.device(1, 4000), from1 = bench.device(1, 4000);
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
  const Nanos release = bench.sim.now();
  a->begin(release);
  b->begin(release);
  a->copy(part(to0, 4000), part(from0, 4000), Engine::kernel, 16);
  const Nanos first = 2 + 10 + 4000;
  SECTION("none: neither") {
    b->wait_for(*a, OwnerWait::none);
    CHECK(b->now() - release == 2);
    b->copy(part(to1, 4000), part(from1, 4000), Engine::kernel, 16);
    b->sync();
    CHECK(b->now() - release == first + 5);
  }
  SECTION("host: the thread, which submits later") {
    b->wait_for(*a, OwnerWait::host);
    CHECK(b->now() - release == first + 5);
    b->copy(part(to1, 4000), part(from1, 4000), Engine::kernel, 16);
    b->sync();
    CHECK(b->now() - release == first + 5 + 10 + 4000 + 5);
  }
  SECTION("event: the stream") {
    b->wait_for(*a, OwnerWait::event);
    CHECK(b->now() - release == 2 + 1);
    b->copy(part(to1, 4000), part(from1, 4000), Engine::kernel, 16);
    b->sync();
    CHECK(b->now() - release == first + 4000 + 5);
  }
  a->sync();
}

TEST_CASE("simulated marks stand on the clock of their stream") {
  SimBench bench;
  const auto to = bench.device(0, 4000), from = bench.device(0, 4000);
  const auto worker = bench.sim.open_worker(0);
  worker->anchor();
  const Nanos release = bench.sim.now();
  worker->begin(release);
  CHECK(worker->mark() == 0);
  worker->copy(part(to, 4000), part(from, 4000), Engine::kernel, 16);
  CHECK(worker->mark() == 1);
  worker->sync();
  CHECK(worker->at(0) == release + 2 + 1);
  CHECK(worker->at(1) == release + 2 + 1 + 10 + 4000);
  worker->begin(bench.sim.now());
  CHECK(worker->mark() == 0);
}

TEST_CASE("a simulated anchor is made when the coordinator asks for it") {
  SimBench bench;
  const auto worker = bench.sim.open_worker(0);
  const auto array = bench.device(0, 100);
  bench.sim.fill(on_device(0), part(array, 100), {}, 0);
  const Nanos asked = bench.sim.now();
  worker->anchor();
  CHECK(worker->now() == asked + 1 + 5);
}

TEST_CASE("simulated durations round up to whole nanoseconds") {
  SimOptions options = round_options();
  options.local = 3000;
  SimBench bench(options);
  const auto to = bench.device(0, 4), from = bench.device(0, 4);
  const auto worker = bench.sim.open_worker(0);
  const Nanos release = bench.sim.now();
  worker->begin(release);
  worker->copy(part(to, 4), part(from, 4), Engine::kernel, 4);
  worker->sync();
  CHECK(worker->now() - release == 2 + 10 + 2 + 5);
}

TEST_CASE("simulated passes go through the tables of wake-ups and scales in turn") {
  SimOptions options = round_options();
  options.wake = {2, 7};
  options.scale = {100, 100, 150};
  SimBench bench(options);
  const auto to = bench.device(0, 4000), from = bench.device(0, 4000);
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
  std::vector<Nanos> walls;
  for (int pass = 0; pass < 6; ++pass) {
    const Nanos release = bench.sim.now();
    a->begin(release);
    CHECK(b->begin(release) == a->now());
    a->copy(part(to, 4000), part(from, 4000), Engine::kernel, 16);
    a->sync();
    walls.push_back(a->now() - release);
  }
  CHECK(walls == std::vector<Nanos>{4017, 4022, 6017, 4022, 4017, 6022});
}

TEST_CASE("a simulated stream opened inside a sample delays that sample") {
  SimBench bench;
  const auto before = bench.sim.open_worker(0);
  const Nanos release = bench.sim.now();
  CHECK(before->begin(release) == release + 2);
  const auto first = bench.sim.open_worker(0), second = bench.sim.open_worker(1);
  CHECK(first->begin(release) == release + 20 + 2);
  CHECK(second->begin(release) == release + 40 + 2);
}

TEST_CASE("prefetching whole simulated arrays to each device makes two slower than one") {
  SimOptions options;
  options.data = false;
  SimBench bench(options);
  const Bytes half = 2'000'000'000;
  const auto to = bench.managed(2 * half), from = bench.managed(2 * half);
  const bool whole = GENERATE(false, true);
  const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
  Nanos wall = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const Nanos release = bench.sim.now();
    for (const auto& [worker, offset] : {std::pair{a.get(), Bytes{0}}, {b.get(), half}}) {
      worker->begin(release);
      for (const auto& array : {std::cref(to), std::cref(from)})
        worker->prefetch(whole ? part(array, 2 * half) : part(array, half, offset),
                         on_device(worker == a.get() ? 0 : 1));
      worker->copy(part(to, half, offset), part(from, half, offset), Engine::kernel, 4);
    }
    a->sync();
    b->sync();
    wall = bench.sim.now() - release;
  }
  if (whole) {
    CHECK(wall > 150'000'000);
    CHECK(wall < 160'000'000);
  } else {
    CHECK(wall < 1'200'000);
  }
}

TEST_CASE("two identical simulated runs give identical clocks and calls") {
  const auto run = [](std::vector<std::string>& log) {
    SimOptions options = round_options();
    options.log = &log;
    SimBench bench(options);
    std::vector<Nanos> clocks;
    const auto to = bench.managed(3 * block), from = bench.managed(3 * block);
    bench.sim.fill(on_device(0), part(from, 3 * block), {1}, 0);
    const auto a = bench.sim.open_worker(0), b = bench.sim.open_worker(1);
    for (int pass = 0; pass < 3; ++pass) {
      const Nanos release = bench.sim.now();
      a->begin(release);
      a->copy(part(to, 3 * block), part(from, 3 * block), Engine::kernel, 16);
      b->begin(release);
      b->wait_for(*a, OwnerWait::host);
      b->copy(part(to, block, 5), part(from, block, 9), Engine::kernel, 16);
      a->sync();
      b->sync();
      clocks.insert(clocks.end(), {a->now(), b->now(), bench.sim.now()});
    }
    return clocks;
  };
  std::vector<std::string> first_log, second_log;
  const auto first = run(first_log);
  CHECK(run(second_log) == first);
  CHECK(first_log == second_log);
  CHECK(std::ranges::is_sorted(first));
}

}  // namespace mgpu

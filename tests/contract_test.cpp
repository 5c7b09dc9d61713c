// SPDX-License-Identifier: MIT
#include "contract.hpp"

#include "sim.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace mgpu {

std::vector<int> open_devices(Backend& backend) {
  const std::size_t count = std::min<std::size_t>(2, backend.machine().devices.size());
  REQUIRE(count > 0);
  std::vector<int> devices;
  for (std::size_t i = 0; i < count; ++i) devices.push_back(static_cast<int>(i));
  backend.open(devices, Wait::block, Affinity::near);
  return devices;
}

Site on(int device) {
  return {Site::Kind::device, device};
}

Site near(int device) {
  return {Site::Kind::near, device};
}

Site home_of(MemoryKind kind, int device) {
  const bool of_the_host = kind == MemoryKind::pinned || kind == MemoryKind::pageable;
  return of_the_host ? near(device) : on(device);
}

std::unique_ptr<Buffer> make_buffer(Backend& backend, int device, Bytes bytes, MemoryKind kind) {
  auto buffer = backend.allocate({kind, home_of(kind, device), bytes});
  // So that initcheck, under which these clauses run too, has no copy of what nobody wrote.
  if (kind != MemoryKind::managed)
    backend.fill(home_of(kind, device), {buffer.get(), 0, bytes}, poison, 0);
  return buffer;
}

std::unique_ptr<Worker> begun_worker(Backend& backend, int device) {
  auto worker = backend.open_worker(device);
  worker->begin(backend.now());
  return worker;
}

Bytes bad_bytes(Backend& backend, Site by, Part part, Pattern pattern, Bytes base) {
  return backend.check(by, part, pattern, base).bad;
}

Bytes bad_bytes(Backend& backend, int device, Part part, Pattern pattern, Bytes base) {
  return bad_bytes(backend, on(device), part, pattern, base);
}

void require_written_alone(Backend& backend, Site by, Part written, Bytes size, Bytes source_base) {
  const Bytes end = written.offset + written.bytes;
  REQUIRE(bad_bytes(backend, by, written, data, source_base) == 0);
  if (written.offset > 0)
    REQUIRE(bad_bytes(backend, by, {written.buffer, 0, written.offset}, poison, 0) == 0);
  if (end < size)
    REQUIRE(bad_bytes(backend, by, {written.buffer, end, size - end}, poison, end) == 0);
}

bool concurrent_managed(Backend& backend, const std::vector<int>& devices) {
  const Machine machine = backend.machine();
  return std::ranges::all_of(devices, [&](int device) {
    return machine.devices[static_cast<std::size_t>(device)].concurrent_managed;
  });
}

namespace {

void describes_its_devices(Backend& backend) {
  const Machine machine = backend.machine();
  REQUIRE_FALSE(machine.devices.empty());
  CHECK_FALSE(machine.host.name.empty());
  CHECK_FALSE(machine.host.allowed_cpus.empty());
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    CHECK(machine.devices[i].ordinal == static_cast<int>(i));
    CHECK_FALSE(machine.devices[i].name.empty());
    CHECK(machine.devices[i].peers.size() == machine.devices.size());
    CHECK(machine.devices[i].memory_bytes.value_or(1) > 0);
  }
}

void opens_twice(Backend& backend) {
  const auto devices = open_devices(backend);
  for (const auto& [wait, affinity] :
       {std::pair{Wait::block, Affinity::near}, std::pair{Wait::spin, Affinity::none}}) {
    CAPTURE(name(wait), name(affinity));
    backend.open(devices, wait, affinity);
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pageable}) {
      const auto buffer = make_buffer(backend, devices.back(), 1, kind);
      const Site by = home_of(kind, devices.back());
      backend.fill(by, {buffer.get(), 0, 1}, data, 0);
      CHECK(bad_bytes(backend, by, {buffer.get(), 0, 1}, data, 0) == 0);
    }
  }
}

void fill_and_check_agree(Backend& backend) {
  const int device = open_devices(backend).back();
  const Bytes size = GENERATE(Bytes{1}, 3, 255, 257, 1'000'007);
  const Bytes offset = GENERATE(Bytes{0}, 1, 7, 13);
  const Bytes base = GENERATE(Bytes{0}, 5, (Bytes{1} << 33) + 3);
  CAPTURE(size, offset, base);
  const auto buffer = make_buffer(backend, device, offset + size + 9);
  const Part all{buffer.get(), 0, offset + size + 9}, part{buffer.get(), offset, size};
  backend.fill(on(device), all, poison, 0);
  backend.fill(on(device), part, data, base);
  CHECK(bad_bytes(backend, device, part, data, base) == 0);
  CHECK(bad_bytes(backend, device, part, Pattern{1, true}, base) == size);
  // Patterns differ in every word, but not in every byte.
  if (size >= 15) CHECK(bad_bytes(backend, device, part, other_data, base) > 0);
  const Part before{buffer.get(), 0, offset}, behind{buffer.get(), offset + size, 9};
  if (offset > 0) CHECK(bad_bytes(backend, device, before, poison, 0) == 0);
  CHECK(bad_bytes(backend, device, behind, poison, offset + size) == 0);
}

void finds_one_wrong_byte(Backend& backend) {
  const int device = open_devices(backend).front();
  constexpr Bytes size = 1'000'007, start = 3, base = 11;
  const Bytes wrong = GENERATE(Bytes{0}, 1, 4'097, 524'288, size - 5, size - 1);
  CAPTURE(wrong);
  const auto buffer = make_buffer(backend, device, start + size);
  const Part part{buffer.get(), start, size};
  backend.fill(on(device), part, data, base);
  backend.fill(on(device), {buffer.get(), start + wrong, 1}, poison, base + wrong);
  const Check found = backend.check(on(device), part, data, base);
  CHECK(found.bad == 1);
  CHECK(found.first == wrong);
  std::array<unsigned char, 8> expected{};
  for (Bytes i = 0; i < std::min<Bytes>(8, size - wrong); ++i)
    expected[i] = pattern_byte(i == 0 ? poison : data, base + wrong + i);
  CHECK(found.got == expected);
}

void counts_all_wrong_bytes(Backend& backend) {
  const int device = open_devices(backend).front();
  constexpr Bytes size = 3 * mebi + 1;
  const auto buffer = make_buffer(backend, device, size);
  backend.fill(on(device), {buffer.get(), 0, size}, data, 0);
  backend.fill(on(device), {buffer.get(), mebi - 3, mebi + 5}, poison, mebi - 3);
  backend.fill(on(device), {buffer.get(), size - 1, 1}, poison, size - 1);
  const Check found = backend.check(on(device), {buffer.get(), 0, size}, data, 0);
  CHECK(found.bad == mebi + 6);
  CHECK(found.first == mebi - 3);
}

void copies_exactly(Backend& backend) {
  const int device = open_devices(backend).back();
  struct Way {
    Engine engine;
    int access;
  };
  const Way way = GENERATE(Way{Engine::kernel, 4}, Way{Engine::kernel, 8}, Way{Engine::kernel, 16},
                           Way{Engine::memcpy, 16});
  const auto [to, from] = GENERATE(std::pair<Bytes, Bytes>{0, 0}, std::pair<Bytes, Bytes>{16, 4},
                                   std::pair<Bytes, Bytes>{8, 24}, std::pair<Bytes, Bytes>{1, 0},
                                   std::pair<Bytes, Bytes>{3, 5}, std::pair<Bytes, Bytes>{15, 7});
  const auto worker = begun_worker(backend, device);
  for (const Bytes size :
       {Bytes{1}, Bytes{3}, Bytes{255}, Bytes{257}, Bytes{1'000'007}, 4 * mebi + 1}) {
    CAPTURE(name(way.engine), way.access, to, from, size);
    const Bytes room = size + 64;
    const auto source = make_buffer(backend, device, room),
               destination = make_buffer(backend, device, room);
    backend.fill(on(device), {source.get(), 0, room}, data, 0);
    backend.fill(on(device), {destination.get(), 0, room}, poison, 0);
    const Part written{destination.get(), to, size};
    worker->copy(written, {source.get(), from, size}, way.engine, way.access);
    worker->sync();
    require_written_alone(backend, on(device), written, room, from);
    REQUIRE(bad_bytes(backend, device, {source.get(), 0, room}, data, 0) == 0);
  }
}

void streams_keep_their_order(Backend& backend) {
  const int device = open_devices(backend).front();
  constexpr Bytes size = 8 * mebi;
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 4; ++i) {
    buffers.push_back(make_buffer(backend, device, size));
    backend.fill(on(device), {buffers.back().get(), 0, size}, i == 0 ? data : poison, 0);
  }
  const auto worker = begun_worker(backend, device);
  for (std::size_t i = 1; i < buffers.size(); ++i)
    worker->copy({buffers[i].get(), 0, size}, {buffers[i - 1].get(), 0, size},
                 i % 2 ? Engine::kernel : Engine::memcpy, 16);
  worker->sync();
  CHECK(bad_bytes(backend, device, {buffers.back().get(), 0, size}, data, 0) == 0);
}

/// More commands than any queue holds are executed, each once and in order.
void takes_many_commands(Backend& backend) {
  const int device = open_devices(backend).front();
  constexpr Bytes size = 2'003;
  const auto buffer = make_buffer(backend, device, size);
  backend.fill(on(device), {buffer.get(), 0, size}, poison, 0);
  backend.fill(on(device), {buffer.get(), 0, 1}, data, 0);
  const auto worker = begun_worker(backend, device);
  // The first byte walks to the end, by a chain in which each copy needs the one before.
  for (Bytes i = 1; i < size; ++i)
    worker->copy({buffer.get(), i, 1}, {buffer.get(), i - 1, 1}, Engine::kernel, 4);
  worker->sync();
  const Check last = backend.check(on(device), {buffer.get(), size - 1, 1}, Pattern{3, false}, 0);
  const unsigned char expected = pattern_byte(data, 0);
  CHECK((last.bad == 0 ? pattern_byte(Pattern{3, false}, 0) : last.got[0]) == expected);
}

void workers_wait_for_each_other(Backend& backend) {
  const auto devices = open_devices(backend);
  const auto how = GENERATE(OwnerWait::host, OwnerWait::event);
  CAPTURE(name(how));
  const bool managed = concurrent_managed(backend, devices);
  const int first = devices.front(), second = managed ? devices.back() : first;
  constexpr Bytes size = 8 * mebi;
  const auto kind = managed ? MemoryKind::managed : MemoryKind::device;
  const auto a = make_buffer(backend, first, size, kind),
             b = make_buffer(backend, first, size, kind),
             c = make_buffer(backend, first, size, kind);
  const auto writer = begun_worker(backend, first), reader = begun_worker(backend, second);
  for (int round = 0; round < 2; ++round) {
    backend.fill(on(first), {a.get(), 0, size}, data, 0);
    for (Buffer* poisoned : {b.get(), c.get()})
      backend.fill(on(first), {poisoned, 0, size}, poison, 0);
    writer->begin(backend.now());
    writer->copy({b.get(), 0, size}, {a.get(), 0, size}, Engine::kernel, 4);
    reader->begin(backend.now());
    reader->wait_for(*writer, how);
    reader->copy({c.get(), 0, size}, {b.get(), 0, size}, Engine::kernel, 16);
    reader->sync();
    CHECK(bad_bytes(backend, second, {c.get(), 0, size}, data, 0) == 0);
    writer->begin(backend.now());
    writer->sync();
  }
}

void marks_are_in_order(Backend& backend) {
  const int device = open_devices(backend).front();
  constexpr Bytes size = 4 * mebi;
  const auto source = make_buffer(backend, device, size),
             destination = make_buffer(backend, device, size);
  backend.fill(on(device), {source.get(), 0, size}, data, 0);
  const auto worker = backend.open_worker(device);
  worker->anchor();
  for (int sample = 0; sample < 2; ++sample) {
    const Nanos start = worker->begin(backend.now());
    for (int i = 0; i < 3; ++i) {
      CHECK(worker->mark() == i);
      if (i < 2)
        worker->copy({destination.get(), 0, size}, {source.get(), 0, size}, Engine::kernel, 16);
    }
    worker->sync();
    const Nanos end = worker->now();
    CHECK(end >= start);
    CHECK(worker->at(0) < worker->at(1));
    CHECK(worker->at(1) < worker->at(2));
    CHECK(worker->at(2) - worker->at(0) <= end - start);
  }
}

void clocks_go_forward(Backend& backend) {
  const int device = open_devices(backend).front();
  const auto worker = backend.open_worker(device);
  const Nanos release = backend.now();
  const Nanos start = worker->begin(release);
  CHECK(start >= release);
  CHECK(worker->now() >= start);
  worker->sync();
  CHECK(worker->now() >= start);
  CHECK(backend.now() >= release);
  const auto delay = backend.run_queue_delay();
  CHECK(delay.value_or(0) >= 0);
  CHECK(backend.run_queue_delay() >= delay);
}

void devices_work_at_once(Backend& backend) {
  if (!backend.threaded()) return;  // this backend is driven by one thread
  const auto devices = open_devices(backend);
  constexpr int lanes = 4;
  constexpr Bytes size = 2 * mebi + 11;
  std::vector<Bytes> bad(lanes, size);
  std::vector<std::exception_ptr> failures(lanes);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < lanes; ++i)
      threads.emplace_back([&, i] {
        try {
          const int device = devices[i % devices.size()];
          const Pattern pattern{10 + i, false};
          const auto worker = begun_worker(backend, device);
          const auto source = make_buffer(backend, device, size),
                     destination = make_buffer(backend, device, size);
          backend.fill(on(device), {source.get(), 0, size}, pattern, i);
          for (int round = 0; round < 20; ++round)
            worker->copy({destination.get(), 0, size}, {source.get(), 0, size},
                         round % 2 ? Engine::memcpy : Engine::kernel, 8);
          worker->sync();
          bad[i] = bad_bytes(backend, device, {destination.get(), 0, size}, pattern, i);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  CHECK(bad == std::vector<Bytes>(lanes, 0));
}

constexpr Clause clauses[] = {
    {"it describes its devices before any is opened", describes_its_devices},
    {"opening what is open changes nothing", opens_twice},
    {"fill and check agree at any size and offset and touch nothing beside", fill_and_check_agree},
    {"a check finds one wrong byte", finds_one_wrong_byte},
    {"a check counts all wrong bytes", counts_all_wrong_bytes},
    {"a copy is exact to the last byte and touches nothing beside", copies_exactly},
    {"a copy sees the data of the copy queued before", streams_keep_their_order},
    {"a stream takes any number of commands", takes_many_commands},
    {"a worker that waits for another sees its data", workers_wait_for_each_other},
    {"marks count from zero in every sample and lie in order", marks_are_in_order},
    {"clocks go forward", clocks_go_forward},
    {"threads use devices at once", devices_work_at_once},
};

void require_contract(const std::function<std::unique_ptr<Backend>()>& make) {
  for (const auto& part : {contract(), memory_contract()})
    for (const Clause& clause : part) DYNAMIC_SECTION(clause.name) {
        clause.holds(*make());
      }
}

}  // namespace

std::span<const Clause> contract() {
  return clauses;
}

TEST_CASE("the host backend keeps the contract", "[contract]") {
  const std::optional<int> devices = GENERATE(std::optional<int>(), 1, 3);
  CAPTURE(devices.value_or(0));
  require_contract([&] { return make_host_backend(devices); });
}

TEST_CASE("the simulated backend keeps the contract", "[contract]") {
  require_contract([] { return std::make_unique<SimBackend>(); });
}

TEST_CASE("the CUDA backend keeps the contract", "[contract][gpu]") {
  const auto row = std::ranges::find(builtin_backends(), BackendKind::cuda, &BackendRow::kind);
  if (!row->available) SKIP("this build has no CUDA backend");
  try {
    row->make(std::nullopt)->machine();
  } catch (const Error& error) {
    SKIP(error.what());
  }
  require_contract([&] { return row->make(std::nullopt); });
}

TEST_CASE("every backend has a row, and one that is not built in says how to go on", "[contract]") {
  std::set<BackendKind> kinds;
  for (const BackendRow& row : builtin_backends()) kinds.insert(row.kind);
  CHECK(kinds.size() == vocabulary<BackendKind>.size());
  for (const BackendRow& row : builtin_backends()) {
    CAPTURE(name(row.kind));
    if (row.available) continue;
    try {
      row.make(std::nullopt);
      FAIL("a backend that is not available was made");
    } catch (const Error& error) {
      CHECK(error.kind == ErrorKind::no_gpu);
      CHECK(std::string(error.what()).find("--backend host") != std::string::npos);
    }
  }
}

}  // namespace mgpu

// SPDX-License-Identifier: MIT
// The clauses about where memory is, and who reaches it there.
#include "contract.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

/// Whether this process may lock as much memory as the clauses pin.
bool may_pin(Backend& backend, int device) {
  try {
    make_buffer(backend, device, 8 * mebi, MemoryKind::pinned);
    return true;
  } catch (const Error& error) {
    if (error.kind != ErrorKind::unavailable) throw;
    WARN(error.what());
    return false;
  }
}

/// Whether a device has this kind of memory for its kernels, or for its copies alone.
bool supports(Backend& backend, int device, MemoryKind kind, Engine engine) {
  const Device known = backend.machine().devices[static_cast<std::size_t>(device)];
  switch (kind) {
    case MemoryKind::device:
      return true;
    case MemoryKind::managed:
      return known.managed;
    case MemoryKind::pinned:
      return may_pin(backend, device);
    case MemoryKind::pageable:
      return engine == Engine::memcpy || known.pageable_access;
  }
  return false;
}

/// The CPUs near a device, and those of each NUMA node.
std::vector<Site> host_sites(Backend& backend, int device) {
  std::vector<Site> sites = {near(device)};
  for (const NumaNode& node : backend.machine().host.nodes)
    sites.push_back({Site::Kind::node, node.number});
  return sites;
}

void has_free_memory(Backend& backend) {
  const auto devices = open_devices(backend);
  const Bytes host = backend.free_memory(whole_host);
  CHECK(host > 0);
  for (const int device : devices) {
    CHECK(backend.free_memory(on(device)) > 0);
    for (const Site& site : host_sites(backend, device)) {
      CHECK(backend.free_memory(site) > 0);
      // About: others take and free memory meanwhile.
      CHECK(backend.free_memory(site) / 2 <= host);
    }
  }
}

void refuses_more_memory_than_there_is(Backend& backend) {
  const int device = open_devices(backend).front();
  for (const auto& word : vocabulary<MemoryKind>) {
    CAPTURE(word.name);
    try {
      make_buffer(backend, device, Bytes{1} << 50, word.value);
      FAIL("a pebibyte was allocated");
    } catch (const Error& error) {
      CHECK(error.kind == ErrorKind::memory);
    }
  }
}

void copies_every_kind_of_memory(Backend& backend) {
  const int device = open_devices(backend).front();
  constexpr Bytes size = 3 * mebi + 7;
  for (const auto& from : vocabulary<MemoryKind>)
    for (const auto& to : vocabulary<MemoryKind>)
      for (const auto& engine : vocabulary<Engine>) {
        CAPTURE(from.name, to.name, engine.name);
        if (!supports(backend, device, from.value, engine.value) ||
            !supports(backend, device, to.value, engine.value))
          continue;
        const auto source = make_buffer(backend, device, size, from.value),
                   destination = make_buffer(backend, device, size, to.value);
        const Site there = home_of(to.value, device);
        backend.fill(home_of(from.value, device), {source.get(), 0, size}, data, 0);
        backend.fill(there, {destination.get(), 0, size}, poison, 0);
        const auto worker = begun_worker(backend, device);
        worker->copy({destination.get(), 0, size}, {source.get(), 0, size}, engine.value, 16);
        worker->sync();
        CHECK(bad_bytes(backend, there, {destination.get(), 0, size}, data, 0) == 0);
      }
}

/// Parts of the host's memory are as exact as those of a device, both ways.
void copies_host_memory_exactly(Backend& backend) {
  const int device = open_devices(backend).back();
  const auto kind = GENERATE(MemoryKind::pinned, MemoryKind::pageable);
  const auto engine = GENERATE(Engine::kernel, Engine::memcpy);
  if (!supports(backend, device, kind, engine)) return;
  const auto worker = begun_worker(backend, device);
  for (const auto& [to, from] : {std::pair<Bytes, Bytes>{0, 0}, std::pair<Bytes, Bytes>{16, 4},
                                 std::pair<Bytes, Bytes>{3, 5}, std::pair<Bytes, Bytes>{15, 7}})
    for (const Bytes size : {Bytes{1}, Bytes{257}, 2 * mebi + 1}) {
      CAPTURE(name(kind), name(engine), to, from, size);
      const Bytes room = size + 64;
      const auto host = make_buffer(backend, device, room, kind),
                 there = make_buffer(backend, device, room),
                 back = make_buffer(backend, device, room, kind);
      backend.fill(near(device), {host.get(), 0, room}, data, 0);
      backend.fill(on(device), {there.get(), 0, room}, poison, 0);
      backend.fill(near(device), {back.get(), 0, room}, poison, 0);
      const Part arrived{there.get(), to, size}, returned{back.get(), from, size};
      worker->copy(arrived, {host.get(), from, size}, engine, 16);
      worker->copy(returned, arrived, engine, 16);
      worker->sync();
      require_written_alone(backend, on(device), arrived, room, from);
      require_written_alone(backend, near(device), returned, room, from);
      REQUIRE(bad_bytes(backend, near(device), {host.get(), 0, room}, data, 0) == 0);
    }
}

void cpus_fill_and_check(Backend& backend) {
  const int device = open_devices(backend).back();
  constexpr Bytes size = 1'000'007, offset = 13, base = (Bytes{1} << 33) + 3, wrong = 524'289;
  for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::pageable, MemoryKind::managed}) {
    if (!supports(backend, device, kind, Engine::memcpy)) continue;
    for (const Site& site : host_sites(backend, device)) {
      CAPTURE(name(kind), static_cast<int>(site.kind), site.index);
      const auto buffer = backend.allocate({kind, site, offset + size + 9});
      const Part part{buffer.get(), offset, size};
      backend.fill(site, {buffer.get(), 0, offset + size + 9}, poison, 0);
      backend.fill(site, part, data, base);
      CHECK(bad_bytes(backend, site, part, data, base) == 0);
      CHECK(bad_bytes(backend, site, {buffer.get(), 0, offset}, poison, 0) == 0);
      CHECK(bad_bytes(backend, site, {buffer.get(), offset + size, 9}, poison, offset + size) == 0);
      backend.fill(site, {buffer.get(), offset + wrong, 2}, poison, base + wrong);
      const Check found = backend.check(site, part, data, base);
      CHECK(found.bad == 2);
      CHECK(found.first == wrong);
      CHECK(found.got[0] == pattern_byte(poison, base + wrong));
      CHECK(found.got[2] == pattern_byte(data, base + wrong + 2));
    }
  }
}

void cpus_and_devices_see_the_same_bytes(Backend& backend) {
  const int device = open_devices(backend).front();
  constexpr Bytes size = 2 * mebi + 5;
  for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::pageable, MemoryKind::managed}) {
    CAPTURE(name(kind));
    if (!supports(backend, device, kind, Engine::kernel)) continue;
    if (kind == MemoryKind::managed && !concurrent_managed(backend, {device})) continue;
    const auto buffer = backend.allocate({kind, near(device), size});
    const Part all{buffer.get(), 0, size};
    backend.fill(near(device), all, data, 0);
    CHECK(bad_bytes(backend, on(device), all, data, 0) == 0);
    backend.fill(on(device), {buffer.get(), mebi, mebi}, other_data, mebi);
    CHECK(bad_bytes(backend, near(device), {buffer.get(), 0, mebi}, data, 0) == 0);
    CHECK(bad_bytes(backend, near(device), {buffer.get(), mebi, mebi}, other_data, mebi) == 0);
  }
}

void prefetch_leaves_data_alone(Backend& backend) {
  const auto devices = open_devices(backend);
  if (!concurrent_managed(backend, devices)) return;
  constexpr Bytes size = 6 * mebi + 5;
  const auto source = make_buffer(backend, devices.front(), size, MemoryKind::managed),
             destination = make_buffer(backend, devices.front(), size, MemoryKind::managed);
  backend.fill(on(devices.front()), {source.get(), 0, size}, data, 0);
  backend.fill(on(devices.front()), {destination.get(), 0, size}, poison, 0);
  const auto worker = begun_worker(backend, devices.back());
  worker->prefetch({source.get(), 4099, size - 4099}, on(devices.back()));
  worker->prefetch({destination.get(), 0, size}, on(devices.back()));
  worker->copy({destination.get(), 1, size - 1}, {source.get(), 1, size - 1}, Engine::kernel, 8);
  worker->sync();
  for (const int device : devices) {
    CHECK(bad_bytes(backend, device, {source.get(), 0, size}, data, 0) == 0);
    CHECK(bad_bytes(backend, device, {destination.get(), 0, 1}, poison, 0) == 0);
    CHECK(bad_bytes(backend, device, {destination.get(), 1, size - 1}, data, 1) == 0);
  }
}

/// Managed memory that CPUs touched first, copied by a device, brought back and again.
void managed_memory_starts_on_the_host(Backend& backend) {
  const auto devices = open_devices(backend);
  if (!concurrent_managed(backend, devices)) return;
  constexpr Bytes size = 4 * mebi + 3;
  const int device = devices.back();
  const auto worker = begun_worker(backend, device);
  for (const Site& site : host_sites(backend, device)) {
    CAPTURE(static_cast<int>(site.kind), site.index);
    const auto source = backend.allocate({MemoryKind::managed, site, size}),
               destination = backend.allocate({MemoryKind::managed, site, size});
    const Part from{source.get(), 1, size - 1}, to{destination.get(), 1, size - 1};
    backend.fill(site, {source.get(), 0, size}, data, 0);
    for (int round = 0; round < 2; ++round) {
      backend.fill(site, {destination.get(), 0, size}, poison, 0);
      worker->copy(to, from, Engine::kernel, 16);
      worker->prefetch(from, site);
      worker->prefetch({destination.get(), 0, size}, site);
      worker->sync();
      CHECK(bad_bytes(backend, site, {source.get(), 0, size}, data, 0) == 0);
      CHECK(bad_bytes(backend, site, {destination.get(), 0, 1}, poison, 0) == 0);
      CHECK(bad_bytes(backend, site, to, data, 1) == 0);
      worker->prefetch(from, on(device));
      worker->sync();
    }
    CHECK(bad_bytes(backend, device, to, data, 1) == 0);
  }
}

/// Loads of a device from its own memory, from a peer's and from the host's.
void chases_pointers(Backend& backend) {
  const auto devices = open_devices(backend);
  const int by = devices.front();
  constexpr Bytes size = 3 * mebi, offset = mebi, length = 2 * mebi;
  std::vector<BufferSpec> places = {{MemoryKind::device, on(by), size}};
  const Machine machine = backend.machine();
  for (const int other : devices)
    if (other != by &&
        machine.devices[static_cast<std::size_t>(by)].peers[static_cast<std::size_t>(other)]) {
      backend.connect(by, other);
      places.push_back({MemoryKind::device, on(other), size});
    }
  if (may_pin(backend, by)) places.push_back({MemoryKind::pinned, near(by), size});
  for (const BufferSpec& place : places) {
    CAPTURE(to_string(place.site));
    const auto buffer = backend.allocate(place);
    backend.fill(place.site, {buffer.get(), 0, size}, poison, 0);
    const double ns = backend.chase(on(by), {buffer.get(), offset, length}, 4096);
    CHECK(ns > 0);
    CHECK(ns < 1e6);
    // What lies beside the chain is left alone.
    CHECK(bad_bytes(backend, place.site, {buffer.get(), 0, offset}, poison, 0) == 0);
  }
}

constexpr Clause clauses[] = {
    {"there is free memory on the host and on each device", has_free_memory},
    {"more memory than there is is refused as such", refuses_more_memory_than_there_is},
    {"every kind of memory is copied into every other", copies_every_kind_of_memory},
    {"parts of the host's memory are copied exactly, both ways", copies_host_memory_exactly},
    {"CPUs fill and check the host's memory and find wrong bytes", cpus_fill_and_check},
    {"CPUs and a device see the same bytes in memory that both reach",
     cpus_and_devices_see_the_same_bytes},
    {"prefetched memory keeps its data", prefetch_leaves_data_alone},
    {"managed memory may start on the host, and go back there", managed_memory_starts_on_the_host},
    {"a load takes some time, and a chain stays inside its part", chases_pointers},
};

}  // namespace

std::span<const Clause> memory_contract() {
  return clauses;
}

}  // namespace mgpu

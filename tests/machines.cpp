// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include "backend/nvml_links.hpp"

#include <fmt/format.h>

#include <numeric>

namespace mgpu {
namespace {

constexpr Bytes gibi = Bytes{1} << 30;

using Told = NvmlTopology;

std::vector<int> cpus(int first, int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

Machine host(int nodes) {
  Machine machine;
  machine.host.name = "node1";
  machine.host.kernel = "6.1.0-28-amd64";
  machine.host.cpus = 32 * nodes;
  machine.host.allowed_cpus = cpus(0, 32 * nodes);
  for (int i = 0; i < nodes; ++i) machine.host.nodes.push_back({i, cpus(32 * i, 32), 256 * gibi});
  machine.host.memory_bytes = 256 * gibi * static_cast<Bytes>(nodes);
  machine.driver = {"580.159.04", "13.0", "13.0", "available"};
  return machine;
}

struct Model {
  const char* name;
  const char* capability;
  Bytes memory, l2;
  double peak;
  int sms;
};
constexpr Model h200{"NVIDIA H200", "9.0", 150'754'820'096, 62'914'560, 4.8e12, 132};
constexpr Model a100{"NVIDIA A100-SXM4-40GB", "8.0", 42'298'834'944, 41'943'040, 1.555e12, 108};
constexpr Model v100{"Tesla V100-SXM2-16GB", "7.0", 16'935'682'048, 6'291'456, 0.898e12, 80};
constexpr Model a10{"NVIDIA A10", "8.6", 23'609'475'072, 6'291'456, 0.6e12, 72};

Telemetry idle() {
  Telemetry state;
  state.sm_mhz = 345;
  state.sm_max_mhz = 1980;
  state.memory_mhz = state.memory_max_mhz = 3201;
  state.power_w = 75.5;
  state.power_limit_w = 700;
  state.temperature_c = 31;
  state.other_processes = 0;
  return state;
}

/// On the NUMA nodes in equal parts; peers of none.
void add_gpus(Machine& machine, const Model& model, int count) {
  const int nodes = static_cast<int>(machine.host.nodes.size());
  const int before = static_cast<int>(machine.devices.size());
  for (int i = 0; i < count; ++i) {
    Device gpu;
    gpu.ordinal = before + i;
    gpu.name = model.name;
    gpu.uuid = fmt::format("GPU-9a1e0c5d-31f4-4a08-b9c3-{:012d}", gpu.ordinal);
    gpu.pci = fmt::format("00000000:{:02x}:00.0", 0x17 + 0x11 * gpu.ordinal);
    gpu.memory_bytes = model.memory;
    gpu.l2_bytes = model.l2;
    gpu.memory_peak = model.peak;
    gpu.capability = model.capability;
    gpu.compute_mode = "default";
    gpu.sms = model.sms;
    gpu.ecc = true;
    gpu.numa = i * nodes / count;
    gpu.near_cpus = gpu.cpus = machine.host.nodes[static_cast<std::size_t>(*gpu.numa)].cpus;
    gpu.pageable_access = true;
    gpu.state = idle();
    machine.devices.push_back(std::move(gpu));
  }
  for (Device& gpu : machine.devices) gpu.peers.resize(machine.devices.size());
}

/// All are peers of each other.
void join_peers(Machine& machine) {
  for (Device& gpu : machine.devices) {
    gpu.peers.assign(machine.devices.size(), true);
    gpu.peers[static_cast<std::size_t>(gpu.ordinal)] = false;
  }
}

Told told_of(const Machine& machine, Pcie pcie, int mb_per_s, Told::Pair pair) {
  Told told;
  const std::size_t count = machine.devices.size();
  told.gpus.resize(count);
  told.pairs.resize(count * count, pair);
  for (Told::Gpu& gpu : told.gpus) {
    gpu.pcie = pcie;
    if (mb_per_s > 0) gpu.mb_per_s = mb_per_s;
  }
  return told;
}

void add_links(const Machine& machine, Told& told, int from, int to, int count) {
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)})
    for (int i = 0; i < count; ++i)
      told.gpus[static_cast<std::size_t>(a)].links.push_back(
          {true, 0, machine.devices[static_cast<std::size_t>(b)].pci});
}

void rank_pairs(Machine& machine, int nvlink) {
  for (Link& link : machine.links)
    if (link.from != host_end && link.to != host_end)
      link.performance_rank = link.kind == LinkKind::nvlink ? nvlink : nvlink + 1;
}

constexpr Told::Pair all_ok(int ancestor) {
  return {ancestor, 0, 0, 0, 0};
}

struct Joined {
  Machine machine;
  Told told;
};

Joined switched(int gpus, int nodes) {
  Joined joined{host(nodes), {}};
  add_gpus(joined.machine, h200, gpus);
  join_peers(joined.machine);
  joined.told = told_of(joined.machine, {5, 16, 5, 16}, 26562, all_ok(50));
  for (Told::Gpu& gpu : joined.told.gpus)
    for (int i = 0; i < 18; ++i)
      gpu.links.push_back({true, 2, fmt::format("00000000:{:02x}:00.0", 0xc1 + i % 4)});
  return joined;
}

Machine joined(Joined parts) {
  join_topology(parts.machine, parts.told);
  rank_pairs(parts.machine, 0);
  return parts.machine;
}

}  // namespace

Machine one_gpu() {
  return joined(switched(1, 1));
}

Machine nvswitch(int gpus) {
  return joined(switched(gpus, 2));
}

Machine nvlink_mesh() {
  Joined parts{host(2), {}};
  add_gpus(parts.machine, a100, 4);
  join_peers(parts.machine);
  parts.told = told_of(parts.machine, {4, 16, 4, 16}, 25000, all_ok(50));
  for (int a = 0; a < 4; ++a)
    for (int b = a + 1; b < 4; ++b) add_links(parts.machine, parts.told, a, b, 4);
  return joined(std::move(parts));
}

Machine pcie_two_nodes() {
  Joined parts{host(2), {}};
  Machine& machine = parts.machine;
  machine.host.allowed_cpus = machine.host.nodes[0].cpus;  // a job that got one socket
  machine.host.nodes[1].cpus.clear();
  add_gpus(machine, a10, 4);
  for (int i : {2, 3}) {
    Device& gpu = machine.devices[static_cast<std::size_t>(i)];
    gpu.near_cpus = cpus(32, 32);
    gpu.cpus.clear();
  }
  machine.devices[1].ecc = false;
  // NVML: 5 not supported, 1 chipset not supported.
  parts.told = told_of(machine, {1, 16, 4, 16}, 0, {50, 1, 1, 1, 5});
  for (const auto& [a, b] : {std::pair(0, 1), {1, 0}, {2, 3}, {3, 2}}) {
    parts.told.pairs[static_cast<std::size_t>(4 * a + b)] = {10, 0, 0, 5, 5};
    machine.devices[static_cast<std::size_t>(a)].peers[static_cast<std::size_t>(b)] = true;
  }
  parts.told.gpus[3].pcie.width = 8;
  machine.devices[2].state->event_reasons = {"sw-power-cap"};
  machine.devices[2].state->other_processes = 2;
  join_topology(machine, parts.told);
  return machine;
}

Machine dead_link() {
  Joined parts = switched(8, 2);
  parts.told.gpus[4].links[7] = {false, {}, ""};
  return joined(std::move(parts));
}

Machine mig_instance() {
  Machine machine = host(1);
  add_gpus(machine, h200, 1);
  Device& gpu = machine.devices[0];
  gpu.name = "NVIDIA H200 MIG 1g.18gb";
  gpu.uuid = "MIG-5a36d231-46a5-5c0e-8d3a-000000000001";
  gpu.mig = true;
  gpu.memory_bytes = 16 * gibi;
  gpu.sms = 16;
  gpu.managed = true;
  gpu.peers = {true};
  gpu.state.reset();
  join_topology(machine, told_of(machine, {5, 16, 5, 16}, 0, {}));
  return machine;
}

Machine nvml_missing() {
  Joined parts = switched(2, 2);
  parts.machine.driver.nvml =
      "unavailable: libnvidia-ml.so.1: cannot open shared object file: No such file or directory";
  for (Device& gpu : parts.machine.devices) gpu.state.reset();
  join_topology(parts.machine, {});
  for (Link& link : parts.machine.links)
    if (link.claimed.read) link.claimed.atomics = true;
  return parts.machine;
}

Machine nvml_reversed() {
  Joined parts{host(1), {}};
  Machine& machine = parts.machine;
  add_gpus(machine, v100, 4);
  join_peers(machine);
  for (Device& gpu : machine.devices)
    gpu.pci = fmt::format("00000000:{:02x}:00.0", 0x80 - gpu.ordinal);
  parts.told = told_of(machine, {3, 16, 3, 16}, 25781, all_ok(40));
  add_links(machine, parts.told, 0, 1, 2);
  add_links(machine, parts.told, 0, 2, 1);
  add_links(machine, parts.told, 0, 3, 1);
  add_links(machine, parts.told, 1, 2, 1);
  add_links(machine, parts.told, 2, 3, 2);
  for (const auto& [a, b] : {std::pair(1, 3), {3, 1}})
    parts.told.pairs[static_cast<std::size_t>(4 * a + b)] = {40, 0, 0, 5, 5};
  return joined(std::move(parts));
}

Machine one_without_peers() {
  Joined parts{host(1), {}};
  Machine& machine = parts.machine;
  add_gpus(machine, a100, 2);
  add_gpus(machine, a10, 1);
  machine.devices[0].peers[1] = machine.devices[1].peers[0] = true;
  parts.told = told_of(machine, {4, 16, 4, 16}, 25000, {30, 2, 2, 2, 2});
  parts.told.gpus[2].mb_per_s.reset();
  add_links(machine, parts.told, 0, 1, 4);
  for (std::size_t gpu : {0u, 1u})  // those without a bridge
    for (int i = 0; i < 8; ++i) parts.told.gpus[gpu].links.push_back({});
  parts.told.pairs[1] = parts.told.pairs[3] = all_ok(30);
  return joined(std::move(parts));
}

Machine cpu_groups() {
  Machine machine = host(2);
  machine.backend = BackendKind::host;
  machine.driver = {};
  machine.driver.nvml = "not used by the host backend";
  for (int i = 0; i < 2; ++i) {
    Device group;
    group.ordinal = i;
    group.name = fmt::format("32 CPUs of NUMA node {}", i);
    group.memory_bytes = 256 * gibi;
    group.l2_bytes = Bytes{64} << 20;
    group.numa = i;
    group.cpus = machine.host.nodes[static_cast<std::size_t>(i)].cpus;
    group.peers = {true, true};
    machine.devices.push_back(std::move(group));
  }
  machine.links = plain_links(machine);
  return machine;
}

}  // namespace mgpu

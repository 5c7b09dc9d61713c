// SPDX-License-Identifier: MIT
#include "backend/nvml.hpp"

#include "backend/nvml_links.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("reasons that hold clocks down have words; idle and display are none") {
  CHECK(event_reason_words(0).empty());
  CHECK(event_reason_words(0x101).empty());
  CHECK(event_reason_words(0xFE) == Words{"applications-clocks", "sw-power-cap", "hw-slowdown",
                                          "sync-boost", "sw-thermal", "hw-thermal",
                                          "hw-power-brake"});
  CHECK(event_reason_words(0x8000000000000004ULL) == Words{"sw-power-cap"});
}

TEST_CASE("other processes are counted once each, and only where this process is seen") {
  const auto others = [](const std::vector<unsigned>& pids) {
    return other_processes(pids, [](unsigned pid) { return pid == 10 || pid == 11; });
  };
  CHECK(others({10}) == 0);
  CHECK(others({10, 11}) == 0);
  CHECK(others({7, 10, 8, 7}) == 2);
  CHECK(others({7, 8}) == std::nullopt);
  CHECK(others({}) == std::nullopt);
}

TEST_CASE("without NVML neither the state nor the links of a GPU are known") {
  const Nvml nvml("libmgpu-has-no-such-library.so.1");
  const std::string uuid = "GPU-9a1e0000-0000-0000-0000-000000000000";
  CHECK_FALSE(nvml.telemetry(uuid));
  CHECK_FALSE(nvml.telemetry(uuid, false));
  CHECK(nvml.topology({&uuid, 1}).gpus.empty());
}

/// Two GPUs that are peers, and what NVML says of them.
struct Pair {
  Machine machine;
  NvmlTopology told;

  Pair() {
    machine.devices.resize(2);
    for (int i = 0; Device & gpu : machine.devices) {
      gpu.ordinal = i;
      gpu.peers = {i == 1, i == 0};
      gpu.pci = "00000000:0" + std::to_string(++i) + ":00.0";
    }
    told.gpus.resize(2);
    told.pairs.resize(4, {40, 0, 0, 0, 0});
    for (auto& gpu : told.gpus) {
      gpu.pcie = {4, 16, 5, 16};
      gpu.mb_per_s = 25'000;
    }
  }

  /// `count` links of a GPU, the first `active` of them up.
  void link(std::size_t gpu, int count, int active, std::optional<int> remote, std::string pci) {
    for (int i = 0; i < count; ++i) told.gpus[gpu].links.push_back({i < active, remote, pci});
  }
  std::string pci(std::size_t gpu) const { return machine.devices[gpu].pci; }

  Link joined() {
    join_topology(machine, told);
    return *find_link(machine, 0, 1);
  }
};

TEST_CASE("NVLinks count for the GPU at their other end, told by its PCI address", "[nvml]") {
  Pair pair;
  pair.link(0, 4, 4, 0, pair.pci(1));
  pair.link(0, 2, 2, 0, "00000000:77:00.0");
  pair.link(1, 4, 4, 0, pair.pci(0));
  const Link link = pair.joined();
  CHECK(kind_text(link) == "NV4");
  CHECK(link.now == 100e9);
  CHECK(link.best == 100e9);
  CHECK(pair.machine.devices[0].nvlinks == NvLinks{6, 6, 25e9, false});
}

TEST_CASE("a dead NVLink counts as one that could be there", "[nvml]") {
  Pair pair;
  SECTION("told at both ends") {
    pair.link(0, 4, 3, 0, pair.pci(1));
    pair.link(1, 4, 3, 0, pair.pci(0));
  }
  SECTION("told at one end alone") {
    pair.link(0, 3, 3, 0, pair.pci(1));
    pair.link(0, 1, 0, {}, "");
    pair.link(1, 4, 3, 0, pair.pci(0));
  }
  SECTION("of a switch") {
    pair.link(0, 4, 4, 2, "00000000:c1:00.0");
    pair.link(1, 3, 3, 2, "00000000:c1:00.0");
    pair.link(1, 1, 0, {}, "");
  }
  const Link link = pair.joined();
  CHECK(kind_text(link) == "NV3");
  CHECK(link.nvlinks_total == 4);
  CHECK(link.now == 75e9);
  CHECK(link.best == 100e9);
}

TEST_CASE("NVLinks whose far end is hidden count where NVML grants NVLink to the pair", "[nvml]") {
  Pair pair;
  for (std::size_t gpu : {0u, 1u}) pair.link(gpu, 4, 4, {}, "");
  SECTION("it does") {
    CHECK(kind_text(pair.joined()) == "NV4");
  }
  SECTION("it does not say") {
    pair.told.pairs[1].nvlink.reset();
    CHECK(kind_text(pair.joined()) == "NODE");
  }
}

TEST_CASE("GPUs of two partitions of a switch have no NVLinks in common", "[nvml]") {
  Pair pair;
  for (std::size_t gpu : {0u, 1u}) pair.link(gpu, 4, 4, 2, "00000000:c1:00.0");
  pair.told.pairs[1].nvlink = 5;
  const Link link = pair.joined();
  CHECK(kind_text(link) == "NODE");
  CHECK_FALSE(link.nvlinks_total);
}

TEST_CASE("the nearest common point has nvidia-smi's word", "[nvml]") {
  using Row = std::pair<std::optional<int>, std::string>;
  const Row row = GENERATE(values<Row>({{0, "PIX"},
                                        {10, "PIX"},
                                        {20, "PXB"},
                                        {30, "PHB"},
                                        {40, "NODE"},
                                        {50, "SYS"},
                                        {60, ""},
                                        {std::nullopt, ""}}));
  Pair pair;
  pair.told.pairs[1].ancestor = row.first;
  CHECK(kind_text(pair.joined()) == row.second);
}

TEST_CASE("a pair without NVLinks has the rate of the lesser PCI Express of both", "[nvml]") {
  Pair pair;
  pair.told.gpus[1].pcie = {4, 8, 4, 16};
  const Link link = pair.joined();
  CHECK(link.now == pcie_rate(4, 8));
  CHECK(link.best == pcie_rate(4, 16));
  CHECK(find_link(pair.machine, 0, host_end)->now == pcie_rate(4, 16));
  CHECK(find_link(pair.machine, host_end, 1)->best == pcie_rate(4, 16));
  pair.told.gpus[1].pcie = {};
  CHECK_FALSE(pair.joined().now);
}

TEST_CASE("what NVML refuses has its reason, what it does not know is not claimed", "[nvml]") {
  Pair pair;
  NvmlTopology::Pair& status = pair.told.pairs[1];
  SECTION("all for one reason") {
    status.read = status.write = status.atomics = 1;
    const Link::Claim claim = pair.joined().claimed;
    CHECK(claim == Link::Claim{false, false, false, "read, write, atomics: chipset not supported"});
  }
  SECTION("atomics alone") {
    status.atomics = 5;
    CHECK(pair.joined().claimed == Link::Claim{true, true, false, "atomics: not supported"});
  }
  SECTION("for two reasons") {
    status.read = status.write = 4;
    status.atomics = 3;
    CHECK(pair.joined().claimed.reason ==
          "read, write: disabled by the driver's settings; atomics: topology not supported");
  }
  SECTION("atomics not known") {
    status.atomics = 6;
    CHECK(pair.joined().claimed == Link::Claim{true, true, std::nullopt, ""});
  }
  SECTION("nothing known: CUDA's word stands") {
    status = {};
    CHECK(pair.joined().claimed == Link::Claim{true, true, std::nullopt, ""});
    pair.machine.devices[0].peers[1] = false;
    CHECK(pair.joined().claimed ==
          Link::Claim{false, false, std::nullopt, "CUDA refuses peer access"});
  }
  SECTION("CUDA refuses what NVML grants") {
    pair.machine.devices[0].peers[1] = false;
    CHECK(pair.joined().claimed ==
          Link::Claim{false, false, true, "CUDA refuses what NVML allows"});
  }
}

TEST_CASE("instances of partitioned GPUs have neither NVLinks nor claims", "[nvml]") {
  Pair pair;
  for (std::size_t gpu : {0u, 1u}) pair.link(gpu, 4, 4, 2, "00000000:c1:00.0");
  pair.machine.devices[1].mig = true;
  const Link link = pair.joined();
  CHECK(kind_text(link) == "NODE");
  CHECK(link.claimed == Link::Claim{});
  CHECK_FALSE(pair.machine.devices[1].nvlinks.total);
}

}  // namespace
}  // namespace mgpu

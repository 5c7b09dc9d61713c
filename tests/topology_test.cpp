// SPDX-License-Identifier: MIT
#include "backend/host_facts.hpp"
#include "machines.hpp"
#include "model/health.hpp"
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/report.hpp"
#include "report/topology_matrix.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace mgpu {
namespace {

using Lines = std::vector<std::string>;

Report topology_of(Machine machine) {
  Report report;
  report.kind = ReportKind::topology;
  report.tool_version = "0.1.0";
  report.started = report.ended = "2025-11-30T12:00:00Z";
  report.machine = std::move(machine);
  return report;
}

/// All fixtures, and one where all that can be measured was.
Machine with_measurements() {
  Machine machine = nvswitch(8);
  for (Link& link : machine.links) {
    if (link.from == host_end || link.to == host_end) {
      const char* const way = link.from == host_end ? "host_to_device" : "device_to_host";
      link.measured = {{way, "memcpy", 55.25e9, {}, link.best, "mgpu copy --from host", 1, ""}};
      continue;
    }
    link.proved = link.from != 1 || link.to != 0;
    link.measured = {
        {"read", "kernel", 396e9 + 1e9 * link.to, {}, link.best, "mgpu copy --from 1", {}, ""},
        {"read", "memcpy", 380e9, {}, link.best, "mgpu copy --engine memcpy", {}, ""},
        {"latency", "", {}, 828.25, {}, "", {}, ""},
        {"write", "kernel", {}, {}, {}, "mgpu copy --to 1", {}, "it was left out"}};
  }
  return machine;
}

std::vector<Machine> all_machines() {
  return {one_gpu(),          nvswitch(2),     nvswitch(4),         nvswitch(8),
          nvlink_mesh(),      dead_link(),     pcie_two_nodes(),    mig_instance(),
          nvml_missing(),     nvml_reversed(), one_without_peers(), cpu_groups(),
          with_measurements()};
}

/// The kinds of links, a row a device.
Lines kinds_of(const Machine& machine) {
  Lines rows;
  for (const Device& from : machine.devices) {
    std::string row;
    for (const Device& to : machine.devices) {
      const Link* link = find_link(machine, from.ordinal, to.ordinal);
      const std::string kind = !link ? "X" : link->kind ? kind_text(*link) : "n/a";
      row += (row.empty() ? "" : " ") + kind;
    }
    rows.push_back(row);
  }
  return rows;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const Link& link_of(const Machine& machine, int from, int to) {
  const Link* link = find_link(machine, from, to);
  REQUIRE(link);
  return *link;
}

}  // namespace

TEST_CASE("the matrix of kinds has a cell for each ordered pair", "[topology]") {
  CHECK(kinds_of(one_gpu()) == Lines{"X"});
  CHECK(kinds_of(nvswitch(2)) == Lines{"X NV18", "NV18 X"});
  CHECK(kinds_of(nvlink_mesh()) ==
        Lines{"X NV4 NV4 NV4", "NV4 X NV4 NV4", "NV4 NV4 X NV4", "NV4 NV4 NV4 X"});
  CHECK(kinds_of(nvswitch(8)).at(7) == "NV18 NV18 NV18 NV18 NV18 NV18 NV18 X");
  CHECK(kinds_of(dead_link()).at(0) == "X NV18 NV18 NV18 NV17 NV18 NV18 NV18");
  CHECK(kinds_of(dead_link()).at(4) == "NV17 NV17 NV17 NV17 X NV17 NV17 NV17");
  CHECK(kinds_of(pcie_two_nodes()) ==
        Lines{"X PIX SYS SYS", "PIX X SYS SYS", "SYS SYS X PIX", "SYS SYS PIX X"});
  CHECK(kinds_of(nvml_missing()) == Lines{"X n/a", "n/a X"});
  CHECK(kinds_of(nvml_reversed()) ==
        Lines{"X NV2 NV1 NV1", "NV2 X NV1 NODE", "NV1 NV1 X NV2", "NV1 NODE NV2 X"});
  CHECK(kinds_of(one_without_peers()) == Lines{"X NV4 PHB", "NV4 X PHB", "PHB PHB X"});
  CHECK(kinds_of(cpu_groups()) == Lines{"X SYS", "SYS X"});
}

TEST_CASE("a machine has links between all pairs, and each GPU and the host", "[topology]") {
  for (const Machine& machine : all_machines()) {
    const std::size_t n = machine.devices.size();
    CHECK(machine.links.size() == n * (n - 1) + (machine.backend == BackendKind::cuda ? 2 * n : 0));
  }
  CHECK(link_of(dead_link(), 0, 4).now == 17 * 26562e6);
  CHECK(link_of(dead_link(), 0, 4).best == 18 * 26562e6);
  CHECK(link_of(pcie_two_nodes(), host_end, 3).kind == LinkKind::pcie);
  CHECK_FALSE(link_of(nvml_missing(), 0, 1).now);
}

TEST_CASE("the rate of PCI Express follows from generation and lanes", "[topology]") {
  CHECK(pcie_rate(1, 16) == Catch::Approx(4e9));
  CHECK(pcie_rate(2, 8) == Catch::Approx(4e9));
  CHECK(pcie_rate(3, 16) == Catch::Approx(15.754e9).epsilon(1e-4));
  CHECK(pcie_rate(4, 16) == Catch::Approx(31.508e9).epsilon(1e-4));
  CHECK(pcie_rate(5, 16) == Catch::Approx(63.015e9).epsilon(1e-4));
  CHECK(pcie_rate(6, 16) == Catch::Approx(121e9));
  CHECK_FALSE(pcie_rate(7, 16));
  CHECK_FALSE(pcie_rate(0, 16));
  CHECK_FALSE(pcie_rate(5, std::nullopt));
}

TEST_CASE("health names what is off, and nothing on a healthy machine", "[topology]") {
  for (const Machine& machine : {one_gpu(), nvswitch(2), nvswitch(8), nvlink_mesh(), mig_instance(),
                                 nvml_missing(), one_without_peers(), cpu_groups()})
    CHECK(health_of(machine) == Lines{});
  CHECK(health_of(dead_link()) == Lines{"GPU 4: 17 of 18 NVLinks are active, its like have 18"});
  CHECK(health_of(nvml_reversed()) == Lines{"GPU 1: 3 of 4 NVLinks are active, its like have 4",
                                            "GPU 3: 3 of 4 NVLinks are active, its like have 4"});
  CHECK(health_of(pcie_two_nodes()) ==
        Lines{"GPU 1: ECC is off, and on for others of its kind",
              "GPU 2: this process may use none of the CPUs near it (NUMA node 1)",
              "GPU 2: its clocks are held down by sw-power-cap",
              "GPU 2: 2 other processes compute on it", "GPU 3: PCIe has 8 of 16 lanes",
              "GPU 3: this process may use none of the CPUs near it (NUMA node 1)"});
}

TEST_CASE("a lone GPU at switches is missed no NVLink by its like", "[topology]") {
  Machine machine = one_gpu();
  machine.devices[0].nvlinks.active = 16;
  CHECK(health_of(machine) == Lines{"GPU 0: 16 of 18 NVLinks are active"});
  machine.devices[0].nvlinks.switched = false;  // links that nothing was plugged into
  CHECK(health_of(machine).empty());
}

TEST_CASE("a GPU without any NVLink beside bridged ones is healthy", "[topology]") {
  Machine machine = nvlink_mesh();
  machine.devices[3].nvlinks.active = 0;
  CHECK(health_of(machine).empty());
}

TEST_CASE("peers are the same both ways, and keep what they claim", "[topology]") {
  Machine machine = nvswitch(2);
  Link& link = *std::ranges::find(machine.links, 1, &Link::from);
  REQUIRE(link.to == 0);
  SECTION("one way alone") {
    link.claimed.read = link.claimed.write = false;
    CHECK(health_of(machine) == Lines{"GPU 0 claims access to GPU 1, but not the other way"});
  }
  SECTION("a probe failed") {
    link.proved = false;
    CHECK(health_of(machine) ==
          Lines{"GPU 1 claims access to GPU 0, but what it copies does not arrive: look at the "
                "IOMMU and at ACS of the PCIe bridges"});
  }
}

TEST_CASE("a recorded machine is read as it was", "[topology]") {
  for (const Machine& machine : all_machines()) {
    CAPTURE(machine.devices.size());
    const Report report = topology_of(machine);
    const std::string json = render(Format::json, report);
    std::vector<std::string> notes;
    const auto again = read_reports(json, "topo.json", notes);
    REQUIRE(again.size() == 1);
    CHECK(again[0].machine.host == machine.host);
    CHECK(again[0].machine.devices == machine.devices);
    CHECK(again[0].machine.links == machine.links);
    CHECK(again[0].machine == machine);
    CHECK(render(Format::json, again[0]) == json);
  }
}

TEST_CASE("links of the document have null for the host and words for verdicts", "[topology]") {
  const std::string json = render(Format::json, topology_of(with_measurements()));
  CHECK(has(json, "\"kind\": \"NV18\""));
  CHECK(has(json, "\"kind\": \"PCIe\""));
  CHECK(count(json, "\"to\": null") == 8);
  CHECK(count(json, "\"proved\": \"no\"") == 1);
  CHECK(count(json, "\"proved\": \"yes\"") == 55);
  CHECK(has(json, "\"health\": [\"GPU 1 claims access to GPU 0,"));
  CHECK(has(json, "\"copied_bytes_per_s\": 55250000000"));
  CHECK(has(json, "\"latency_ns\": 828.25"));
}

TEST_CASE("documents that name no device, kind or verdict are refused", "[topology]") {
  const std::string json = render(Format::json, topology_of(nvswitch(2)));
  const auto refusal = [&](const std::string& old, const std::string& with) -> std::string {
    std::string text = json;
    const auto at = text.find(old);
    REQUIRE(at != text.npos);
    text.replace(at, old.size(), with);
    std::vector<std::string> notes;
    try {
      read_reports(text, "topo.json", notes);
    } catch (const Error& error) {
      CHECK(error.kind == ErrorKind::usage);
      return error.what();
    }
    return "";
  };
  CHECK(refusal("\"to\": 1", "\"to\": 2") == "topo.json: /links/0: from 0 to 2 names no device");
  CHECK(refusal("\"to\": 1", "\"to\": -5") == "topo.json: /links/0: from 0 to -5 names no device");
  CHECK(refusal("\"NV18\"", "\"NVX\"") == "topo.json: /links: 'NVX' is no kind of link");
  CHECK(refusal("\"proved\": null", "\"proved\": \"maybe\"") ==
        "topo.json: /links: proved is 'maybe', not yes or no");
  CHECK(refusal("\"peers\": [1]", "\"peers\": [7]") ==
        "topo.json: /devices/0/peers: 7 names no device");
  CHECK(refusal("\"peers\": [1]", "\"peers\": [2000000000]") ==
        "topo.json: /devices: the peer 2000000000 names no device");
  CHECK(refusal("\"numa\": 2,", "\"numa\": 2000000000,") == "topo.json: /host/numa: is 2000000000");
}

TEST_CASE("the text of any machine fits 80 columns", "[topology]") {
  auto machines = all_machines();
  Machine& named = machines.emplace_back(nvswitch(8));
  for (Device& gpu : named.devices) {
    gpu.name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition";
    gpu.compute_mode = "exclusive_process";
    gpu.cpus.clear();
    gpu.state->event_reasons = {"sw-power-cap", "hw-slowdown", "hw-thermal", "hw-power-brake"};
  }
  std::vector<int> odd;
  for (int cpu = 1; cpu < 256; cpu += 2) odd.push_back(cpu);
  named.host.nodes[0].cpus = odd;
  machines.push_back(nvswitch(16));
  for (const Machine& machine : machines) {
    std::istringstream text(render(Format::text, topology_of(machine)));
    for (std::string line; std::getline(text, line);) {
      CAPTURE(line);
      CHECK(columns_of(line) <= text_width);
    }
  }
}

TEST_CASE("the text shows devices, ports, links, claims and health", "[topology]") {
  const std::string text = render(Format::text, topology_of(pcie_two_nodes()));
  for (const char* line :
       {" host: 64 CPUs (32 of them allowed here), 2 NUMA nodes, 512 GiB, kernel\n   "
        "6.1.0-28-amd64\n",
        "         1  256 GiB     0  none   2-3\n",
        "   3  NVIDIA A10  22.0 GiB  600 GB/s  00000000:4a:00.0     1  0 of 32\n",
        "   1  GPU-9a1e0c5d-31f4-4a08-b9c3-000000000001  8.6   72  6.00 MiB  off  default\n",
        "   3  gen 1 x8   2.00 GB/s  gen 4 x16  31.5 GB/s\n",
        " PCIe runs at a lower generation while it is idle\n",
        "   2  345 of 1980  3201 of 3201  76 of 700 W  31       2  sw-power-cap\n",
        " unified memory: managed memory, used by CPUs and GPUs at once, pageable memory\n",
        "\n links:\n GPU    0    1    2    3\n   0    X  PIX  SYS  SYS\n   1  PIX    X  SYS  SYS\n"
        "   2  SYS  SYS    X  PIX\n   3  SYS  SYS  PIX    X\n PIX   one PCIe bridge at most\n"
        " SYS   the interconnect between NUMA nodes\n",
        " rate of each link one way, GB/s now:\n  GPU    0    1    2    3  host\n"
        "    0    X  4.0  4.0  2.0   4.0\n",
        " GPU   0   1   2   3\n   0   X  rw  no  no\n   1  rw   X  no  no\n"
        "   2  no  no   X  rw\n   3  no  no  rw   X\n r read, w write, a atomics\n"
        " 0 to 1, 1 to 0, 2 to 3, 3 to 2: atomics: not supported\n",
        "\n health:\n - GPU 1: ECC is off, and on for others of its kind\n"}) {
    CAPTURE(line);
    CHECK(has(text, line));
  }
  const std::string healthy = render(Format::text, topology_of(nvswitch(2)));
  CHECK(has(healthy,
            "\n peer access that each GPU claims to the memory of the others: read, write,\n"
            "   atomics\n"));
  CHECK(has(healthy, "\n health: nothing found without measuring (topo --measure does)\n"));
  CHECK_FALSE(has(healthy, "at best"));
  CHECK(has(render(Format::text, topology_of(nvml_missing())),
            ", NVML unavailable:\n   libnvidia-ml.so.1: cannot open"));
}

TEST_CASE("what was proved and measured has a matrix each", "[topology]") {
  const std::string text = render(Format::text, topology_of(with_measurements()));
  CHECK(has(text, "\n proved by copies that were verified:\n GPU     0    1"));
  CHECK(has(text, "\n   1  FAIL    X  yes"));
  CHECK(has(text, "\n measured of each GPU alone and with the host, GB/s copied:\n"));
  CHECK(has(text, "\n host to device by memcpy, NUMA node 1  55.2  55.2  55.2  55.2\n"));
  CHECK(has(text,
            "\n measured read by kernel, GB/s copied:\n GPU    0    1    2    3    4    5    6"
            "    7\n   0    X  397  398"));
  CHECK(has(text, "\n measured latency, ns:\n"));
  CHECK(has(text, "\n   7  828  828"));
}

TEST_CASE("a matrix too wide for a line follows in parts, each with its rows' names",
          "[topology]") {
  const std::string text = render(Format::text, topology_of(nvswitch(16)));
  CHECK(has(text,
            "\n links:\n GPU     0     1     2     3     4     5     6     7\n   0     X  NV18"));
  CHECK(has(text, "\n GPU     8     9   10    11    12    13    14    15\n   0  NV18  NV18"));
}

TEST_CASE("a column that finds no room is named, a long name is shortened", "[topology]") {
  Machine machine = one_gpu();
  machine.devices[0].name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition";
  machine.devices[0].compute_mode = "exclusive_process";
  const std::string text = render(Format::text, topology_of(machine));
  CHECK(has(text, "\n GPU  UUID                                       CC  SMs  ECC  mode\n"));
  CHECK(has(text, "  exclusive process\n left out at 80 columns: L2\n"));
  CHECK(has(text, "\n   0  NVIDIA RTX PRO 6000 Black…  140 GiB  "));
}

TEST_CASE("nothing found is told with what was looked at, and by no run that failed",
          "[topology]") {
  Machine machine = nvswitch(2);
  machine.links[0].proved = true;
  Report report = topology_of(machine);
  CHECK(has(render(Format::text, report), "\n health: nothing found\n"));
  report.error = ErrorInfo{ErrorKind::timeout, "GPU 0 did not answer", 0};
  CHECK_FALSE(has(render(Format::text, report), "health"));
  report.machine.links[0].proved = false;
  CHECK(has(render(Format::text, report), "\n health:\n - GPU 0 claims access to GPU 1, but"));
}

TEST_CASE("CSV has a row for each device, link and measured rate", "[topology]") {
  const std::string csv = render(Format::csv, topology_of(with_measurements()));
  CHECK(count(csv, "\n") == 1 + 8 + 56 * 4 + 16);
  CHECK(has(csv, ",host,cuda,") == false);
  CHECK(count(render(Format::csv, topology_of(nvswitch(2))), "\n") == 1 + 2 + 2 + 4);
}

TEST_CASE("Markdown has the matrices and the health of a machine", "[topology]") {
  const std::string text = render(Format::markdown, topology_of(dead_link()));
  CHECK(has(text, "\nlinks:\n\n| GPU | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |\n|---:|"));
  CHECK(has(text, "\n| 4 | NV17 | NV17 | NV17 | NV17 | X | NV17 | NV17 | NV17 |\n"));
  CHECK(has(text, "\nHealth:\n\n- GPU 4: 17 of 18 NVLinks are active, its like have 18\n"));
}

TEST_CASE("a graph joins GPUs with NUMA nodes and switches", "[topology]") {
  const std::string dot = render_dot(topology_of(dead_link()), {});
  CHECK(dot.starts_with("graph topology {\n"));
  CHECK(dot.ends_with("}\n"));
  CHECK(count(dot, "{") == count(dot, "}"));
  CHECK(has(dot, "  node0 -- node1 [label=\"SYS\""));
  CHECK(has(dot, "  node0 -- gpu3 [label=\"  PCIe gen 5 x16  \\n  63.0 GB/s  \""));
  CHECK(has(dot, "  node1 -- gpu4 ["));
  CHECK(has(dot, "  nvswitch ["));
  CHECK(count(dot, " -- nvswitch [") == 8);
  CHECK(count(dot, "color=\"red\", ") == 1);
  CHECK(has(dot,
            "  gpu4 -- nvswitch [label=\"  17 NVLinks  \\n  452 of 478 GB/s  \\n  read, write, "
            "atomics  \""));
}

TEST_CASE("a graph puts GPUs below the PCIe switch that they share", "[topology]") {
  const std::string dot = render_dot(topology_of(pcie_two_nodes()), {});
  CHECK(count(dot, "label=\"PCIe switch\"") == 2);
  CHECK(has(dot, "  node0 -- switch0 ["));
  CHECK(has(dot, "  switch0 -- gpu1 ["));
  CHECK(has(dot, "  node1 -- switch2 ["));
  CHECK(has(dot, "  switch2 -- gpu3 ["));
  CHECK(has(dot, "  PIX: read, write  \\n  SYS: no peers  "));
  CHECK_FALSE(has(dot, "nvswitch"));
}

TEST_CASE("a graph has a label for each pair with NVLinks of its own", "[topology]") {
  const std::string dot = render_dot(topology_of(nvlink_mesh()), {});
  CHECK(count(dot, "label=\"NV4\\n100 GB/s\\nread, write, atomics\"") == 6);
  CHECK(has(dot, "  gpu2 -- link2_3 ["));
  CHECK(has(dot, "  gpu3 -- link2_3 ["));
}

TEST_CASE("a graph shows what was measured and what failed", "[topology]") {
  const std::string dot = render_dot(topology_of(with_measurements()), {});
  CHECK(has(dot, "  host to device 55.2 GB/s  "));
  CHECK(has(dot, "  read 397 to 403 GB/s  \\n  latency 828 ns  "));
  CHECK(count(dot, "probe FAILED") == 1);
}

TEST_CASE("names of a file cannot leave their quotes in a graph", "[topology]") {
  Machine machine = one_gpu();
  machine.devices[0].name = "a\"];\\b\n";
  CHECK(has(render_dot(topology_of(machine), {}), "\\na\\\"];\\\\b?\\n"));
}

TEST_CASE("only a topology is drawn as a graph", "[topology]") {
  Report report = topology_of(one_gpu());
  report.kind = ReportKind::trials;
  CHECK_THROWS_AS(render_dot(report, {}), Error);
}

TEST_CASE("numbers in a row are one range", "[topology]") {
  CHECK(ranges_of({}).empty());
  CHECK(ranges_of({3}) == "3");
  CHECK(ranges_of({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
}

TEST_CASE("NUMA nodes are those with memory, also without CPUs", "[topology]") {
  const auto root =
      std::filesystem::temp_directory_path() / ("mgpu-topology-" + std::to_string(getpid()));
  const auto write = [&](const std::string& file, const std::string& text) {
    const auto path = root / "devices/system/node" / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  const int own = allowed_cpus().front();
  write("online", "0-1,4\n");
  write("node0/cpulist", std::to_string(own) + ",100000\n");
  write("node0/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 12 kB\n");
  write("node1/cpulist", "100001-100002\n");
  write("node1/meminfo", "Node 1 MemTotal:       0 kB\n");
  write("node4/cpulist", "\n");
  write("node4/meminfo", "Node 4 MemTotal:       2048 kB\n");
  CHECK(numa_nodes(root.string()) ==
        std::vector<NumaNode>{{0, {own}, 1024 * 1024}, {4, {}, 2048 * 1024}});
  std::filesystem::remove_all(root);
  const auto alone = numa_nodes(root.string());
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].cpus == allowed_cpus());
  CHECK(alone[0].memory_bytes > 0);
}

}  // namespace mgpu

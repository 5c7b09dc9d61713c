// SPDX-License-Identifier: MIT
#include "report/fleet_page.hpp"
#include "sample_comparison.hpp"
#include "sample_fleet.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <sstream>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

constexpr int lines_of_a_page = 66;

/// A thousand nodes of eight GPUs with 1% noise, `slow` of them 30% slow, as many failed.
Fleet large_fleet(int slow) {
  FleetBuilder builder;
  Noise noise(1);
  for (int n = 0; n < 1000; ++n) {
    Samples medians = noise.independent(8, 0.01);
    if (n % 31 == 0 && n / 31 < slow) medians[3] *= 1.3;
    Report node = node_of(fmt::format("node{:04}", n), medians, n);
    if (n % 31 == 1 && n / 31 < slow)
      node.error = ErrorInfo{ErrorKind::timeout, std::string(200, 'x'), std::nullopt};
    if (n % 31 == 2 && n / 31 < slow) builder.missing({n, node.machine.host.name, ""});
    builder.add(node);
  }
  return builder.finish(10);
}

/// Of all lines but the last, the widest.
std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text.substr(0, text.rfind("exclude: ")));
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, columns_of(line));
  return widest;
}

std::string text_of(const Fleet& fleet, int width = 80) {
  return fleet_text(fleet, BackendKind::cuda, {.width = width});
}

}  // namespace

TEST_CASE("a small fleet as text has every GPU, and the outliers first", "[fleet]") {
  CHECK(text_of(*sample_fleet().fleet) ==
        R"(mgpu merge: 3 nodes, 2 ranks, 8 GPUs, 1 case

 case: 4 GPUs, 4 GB device, NVIDIA H200; medians of each GPU's device time
 nodes  GPUs       min       25%    median       75%       max   MAD  threshold
     2     8  1.500 ms  1.988 ms  2.000 ms  2.013 ms  3.200 ms  0.8%      10.0%

                   █                                           
  ▆▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▆█▆▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▆ ▁
  1.5 ms          Histogram: frequency by time         3.2 ms <

 2 outliers, the worst first
 node    rank  GPU  UUID          PCI             median  deviation
 node10     2    2  GPU-00000002  0000:12:00.0  3.200 ms     +60.0%  slow
 node2      0    1  GPU-00000001  0000:11:00.0  1.500 ms     -25.0%  fast
 left out at 80 columns: moved

 every GPU
 node    rank  GPU       min    median       max      moved  deviation
 node2      0    0  1.980 ms  2.000 ms  2.020 ms  1.00 TB/s      +0.0%
 node2      0    1  1.485 ms  1.500 ms  1.515 ms  1.33 TB/s     -25.0%  fast
 node2      0    2  2.000 ms  2.020 ms  2.040 ms   990 GB/s      +1.0%
 node2      0    3  1.960 ms  1.980 ms  2.000 ms  1.01 TB/s      -1.0%
 node10     2    0  1.980 ms  2.000 ms  2.020 ms  1.00 TB/s      +0.0%
 node10     2    1  1.990 ms  2.010 ms  2.030 ms   995 GB/s      +0.5%
 node10     2    2  3.168 ms  3.200 ms  3.232 ms   625 GB/s     +60.0%  slow
 node10     2    3  1.970 ms  1.990 ms  2.010 ms  1.01 TB/s      -0.5%

 failed: node12: verification: device 1 wrote wrong data
 missing: rank 3 on node11, no case finished

exclude: node[10,12]
)");
}

TEST_CASE("a thousand nodes are a page with the slowest nodes in place of every GPU", "[fleet]") {
  const std::string text = text_of(large_fleet(2));
  CHECK(std::ranges::count(text, '\n') <= lines_of_a_page);
  CHECK(widest_line(text) <= 80);
  CHECK_THAT(text, ContainsSubstring("mgpu merge: 1000 nodes, 1000 ranks, 8000 GPUs, 1 case\n"));
  CHECK_THAT(text, ContainsSubstring("\n 2 outliers, the worst first\n"));
  CHECK_THAT(text, ContainsSubstring("\n the 10 slowest of 1000 nodes\n"));
  CHECK_THAT(text, !ContainsSubstring("every GPU"));
  CHECK_THAT(text, !ContainsSubstring(" more: "));
  CHECK_THAT(text, EndsWith("\n\nexclude: node[0000-0001,0031-0032]\n"));
}

TEST_CASE("where all goes wrong a thousand nodes are still a page, which says what it left out",
          "[fleet]") {
  const std::string text = text_of(large_fleet(30));
  CHECK(std::ranges::count(text, '\n') <= lines_of_a_page);
  CHECK(widest_line(text) <= 80);
  CHECK_THAT(text, ContainsSubstring(" and 10 more: --json has all\n"));
  CHECK_THAT(text, ContainsSubstring(" and 24 more failures: --json has all\n"));
  CHECK_THAT(text, ContainsSubstring(" and 24 more missing ranks: --json has all\n"));
  CHECK_THAT(text, ContainsSubstring("\n failed: node0001: timeout: xxx"));
  CHECK_THAT(text, ContainsSubstring("\n missing: rank 2 on node0002, no case finished\n"));
  CHECK_THAT(text, EndsWith(",0899-0900]\n"));
}

TEST_CASE("the nodes that are shown are the slowest by the median of their GPUs", "[fleet]") {
  FleetBuilder builder;
  for (int n = 0; n < 50; ++n)
    builder.add(node_of(fmt::format("n{}", n), {1e6 + 1e3 * n, 1e6 + 1e3 * n}));
  const FleetPage page = fleet_page(builder.finish(50), BackendKind::cuda);
  REQUIRE(page.tables.size() == 2);
  const std::vector<std::string>& names = page.tables[1].columns[0].cells;
  CHECK(names.size() == 10);
  CHECK(names.front() == "n49");
  CHECK(names.back() == "n40");
}

TEST_CASE("what is no terminal gets all columns", "[fleet]") {
  const std::string text = text_of(*sample_fleet().fleet, 0);
  CHECK_THAT(text,
             ContainsSubstring("GPU-00000002  0000:12:00.0  3.200 ms   625 GB/s     +60.0%  slow"));
  CHECK_THAT(text, !ContainsSubstring("left out"));
}

TEST_CASE("a narrow terminal gets fewer columns and no broken row", "[fleet]") {
  const std::string text = text_of(*sample_fleet().fleet, 50);
  CHECK_THAT(text, ContainsSubstring(" left out at 50 columns: "));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("  ")) CHECK(columns_of(line) <= 60);  // the histogram has its own width
  CHECK_THAT(text, ContainsSubstring("+60.0%  slow\n"));
}

TEST_CASE("of fewer than four GPUs it is said that none is judged", "[fleet]") {
  const std::string text = text_of(fleet_of({node_of("a", {1e6, 3e6})}));
  CHECK_THAT(text, ContainsSubstring("\n not judged: a case needs at least 4 GPUs\n"));
  CHECK_THAT(text, !ContainsSubstring("outliers"));
  CHECK_THAT(text, ContainsSubstring("      none\n"));
  CHECK_THAT(text, ContainsSubstring("\nexclude: none\n"));
  CHECK_THAT(text_of(fleet_of({node_of("a", {1e6, 1e6, 1e6, 1e6})})),
             ContainsSubstring("\n no outliers\n"));
}

TEST_CASE("where some cases have too few GPUs it is said what their threshold means", "[fleet]") {
  Report few = node_of("b", {1e6, 1e6});
  few.machine.devices[0].name = few.machine.devices[1].name = "NVIDIA L40S";
  const std::string text = text_of(fleet_of({node_of("a", {1e6, 1e6, 1e6, 1e6}), few}));
  CHECK_THAT(text, ContainsSubstring("\n threshold none: not judged: a case needs at least 4 "
                                     "GPUs\n"));
  CHECK_THAT(text, ContainsSubstring("\n no outliers\n"));
}

TEST_CASE("times that are not all of devices are called times, and unequal slices are told",
          "[fleet]") {
  Report alone = node_of("b", {1e6});
  alone.cases[0].per_device[0].device_ns.reset();
  CHECK_THAT(text_of(fleet_of({node_of("a", {1e6}), alone})),
             ContainsSubstring("; medians of each GPU's time\n"));
  Report uneven = node_of("a", {1e6, 0.5e6});
  uneven.cases[0].per_device[1].bytes /= 2;
  CHECK_THAT(text_of(fleet_of({uneven})),
             ContainsSubstring("; medians of each GPU's device time,\n   times scaled to the "
                               "largest slice\n"));
}

TEST_CASE("of several cases each row says which", "[fleet]") {
  std::vector<Report> nodes;
  for (const std::string host : {"a", "b"})
    for (int i = 0; i < 25; ++i) {
      nodes.push_back(node_of(host, {1e6, 1e6, i == 3 ? 2e6 : 1e6, 1e6}));
      nodes.back().cases[0].what.size += Bytes{4'000'000} * static_cast<Bytes>(i);
    }
  const std::string text = text_of(fleet_of(nodes));
  CHECK_THAT(text, ContainsSubstring("mgpu merge: 2 nodes, 8 GPUs, 25 cases\n"));
  CHECK_THAT(text, ContainsSubstring("\n case     size  GPUs  "));
  CHECK_THAT(text, ContainsSubstring("\n and 5 more: --json has all\n"));
  CHECK_THAT(text, ContainsSubstring("\n 2 outliers, the worst first\n"));
  CHECK_THAT(text, ContainsSubstring("GPU-00000002  0000:12:00.0     4  2.000 ms"));
  CHECK_THAT(text, ContainsSubstring("\n the 10 slowest of 50 nodes by case\n"));
  CHECK_THAT(text, !ContainsSubstring("Histogram"));
  CHECK(widest_line(text) <= 80);
}

TEST_CASE("models of GPUs in one case are rows of their own", "[fleet]") {
  Report node = node_of("a", {1e6, 1e6, 2e6, 2e6});
  for (const std::size_t i : {2u, 3u}) node.machine.devices[i].name = "NVIDIA L40S";
  const std::string text = text_of(fleet_of({node}));
  CHECK_THAT(text, ContainsSubstring("\n case  model "));
  CHECK_THAT(text, ContainsSubstring("\n    2  NVIDIA L40S "));
  CHECK_THAT(text, ContainsSubstring("\n case 2:\n"));
}

TEST_CASE("devices of the host backend have neither UUID nor address", "[fleet]") {
  std::vector<Report> nodes;
  for (int rank = 0; rank < 4; ++rank) {
    nodes.push_back(node_of("a", {rank == 1 ? 2e6 : 1e6}, rank));
    nodes.back().machine.devices[0].uuid.clear();
    nodes.back().machine.devices[0].pci.clear();
  }
  const std::string text = fleet_text(fleet_of(nodes), BackendKind::host);
  CHECK_THAT(text, ContainsSubstring("mgpu merge: 1 node, 4 ranks, 4 CPU devices, 1 case\n"));
  CHECK_THAT(text,
             ContainsSubstring("\n node  rank  device    median      moved  deviation\n"
                               " a        1       0  2.000 ms  1.00 TB/s    +100.0%  slow\n"));
}

TEST_CASE("the last case of a missing rank is named where some rank had it", "[fleet]") {
  FleetBuilder builder;
  const Report node = node_of("a", {1e6}, 0);
  builder.add(node);
  builder.missing({1, "b", case_key(node.cases[0].what, node.machine)});
  builder.missing({2, "", "00ff12ab34cd56ef"});
  const std::string text = text_of(builder.finish(5));
  CHECK_THAT(text, ContainsSubstring("\n missing: rank 1 on b, last case 1 GPU, 1 GB device\n"));
  CHECK_THAT(text, ContainsSubstring("\n missing: rank 2, last case 00ff12ab34cd56ef\n"));
}

TEST_CASE("a fleet without a case has a page", "[fleet]") {
  Report failed = node_of("a", {1e6});
  failed.cases.clear();
  failed.error = ErrorInfo{ErrorKind::no_gpu, "no NVIDIA driver found", std::nullopt};
  CHECK(text_of(fleet_of({failed})) ==
        "mgpu merge: 1 node, 0 GPUs, 0 cases\n\n"
        " no case was measured\n\n"
        " failed: a: no_gpu: no NVIDIA driver found\n\n"
        "exclude: a\n");
}

TEST_CASE("names from files steer no terminal and are no markup", "[fleet]") {
  Report node = node_of("a\x1b[31m", {1e6, 1e6, 1e6, 9e6});
  node.machine.devices[3].uuid = "GPU|<b>";
  const Fleet fleet = fleet_of({node});
  CHECK_THAT(text_of(fleet), !ContainsSubstring("\x1b"));
  CHECK_THAT(fleet_markdown(fleet, BackendKind::cuda), ContainsSubstring("GPU\\|\\<b>"));
}

TEST_CASE("a fleet as Markdown has the tables, the bars and the list", "[fleet]") {
  const std::string text = fleet_markdown(*sample_fleet().fleet, BackendKind::cuda);
  CHECK_THAT(text, ContainsSubstring("**mgpu merge**: 3 nodes, 2 ranks, 8 GPUs, 1 case\n\n"));
  CHECK_THAT(text, ContainsSubstring("| node | rank | GPU | UUID | PCI | median | moved | "
                                     "deviation |  |\n"));
  CHECK_THAT(text, ContainsSubstring("| node10 | 2 | 2 | GPU-00000002 | 0000:12:00.0 | 3.200 ms | "
                                     "625 GB/s | +60.0% | slow |\n"));
  CHECK_THAT(text, ContainsSubstring("\n```\n  "));
  CHECK_THAT(text, ContainsSubstring("\n- missing: rank 3 on node11, no case finished\n"));
  CHECK_THAT(text, EndsWith("\n\nexclude: node[10,12]\n"));
  CHECK_THAT(text, !ContainsSubstring("\n\n\n"));
}

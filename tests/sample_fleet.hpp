// SPDX-License-Identifier: MIT
// Nodes of a fleet made by hand: GPUs with the times that they are given. Measures nothing.
#pragma once

#include "model/fleet.hpp"
#include "model/result.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {

/// One case on all GPUs of a node: 1 GB each, device times of `medians` with 1% to either side.
inline Report node_of(std::string host, const std::vector<double>& medians,
                      std::optional<int> rank = std::nullopt) {
  Report report;
  report.tool_version = "0.1.0";
  report.started = report.ended = "2026-01-01T00:00:00Z";
  CaseResult result;
  for (const double ns : medians) {
    Device gpu;
    gpu.ordinal = static_cast<int>(report.machine.devices.size());
    gpu.name = "NVIDIA H200";
    gpu.uuid = fmt::format("GPU-{:08x}-{}", gpu.ordinal, host);
    gpu.pci = fmt::format("00000000:{:02X}:00.0", 16 + gpu.ordinal);
    DeviceResult part;
    part.index = gpu.ordinal;
    part.bytes = 1'000'000'000;
    part.slices = 1;
    part.device_ns = ns;
    part.device_min_ns = 0.99 * ns;
    part.device_max_ns = 1.01 * ns;
    result.per_device.push_back(part);
    result.what.gpus.push_back(gpu.ordinal);
    report.machine.devices.push_back(std::move(gpu));
  }
  report.machine.host.name = std::move(host);
  report.machine.host.rank = rank;
  result.what.size = Bytes{1'000'000'000} * medians.size();
  result.what.split = static_cast<int>(medians.size());
  result.samples = 1;
  result.samples_ns = {2.1e6};
  result.summary = summarize(result.samples_ns);
  report.cases = {std::move(result)};
  return report;
}

inline Fleet fleet_of(const std::vector<Report>& nodes, double floor = 5) {
  FleetBuilder builder;
  for (const Report& node : nodes) builder.add(node);
  return builder.finish(floor);
}

/// Two nodes of four GPUs, one of them slow and one fast, a third node that failed, and a rank that
/// is missing.
inline Report sample_fleet() {
  Report failed = node_of("node12", {});
  failed.cases[0].outcome = OutcomeKind::failed;
  failed.cases[0].error_kind = ErrorKind::verification;
  failed.cases[0].reason = "device 1 wrote wrong data";
  FleetBuilder builder;
  builder.add(node_of("node10", {2.0e6, 2.01e6, 3.2e6, 1.99e6}, 2));
  builder.add(node_of("node2", {2.0e6, 1.5e6, 2.02e6, 1.98e6}, 0));
  builder.add(failed);
  builder.missing({3, "node11", ""});
  Report report = node_of("node2", {2.0e6}, 0);
  report.cases.clear();
  report.kind = ReportKind::fleet;
  report.command = {"mgpu", "merge", "node2.json", "node10.json", "node12.json"};
  report.fleet = builder.finish(10);
  return report;
}

}  // namespace mgpu

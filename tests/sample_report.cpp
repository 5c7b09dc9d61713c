// SPDX-License-Identifier: MIT
#include "sample_report.hpp"

namespace mgpu {
namespace {

Device sample_gpu(int ordinal, std::string pci, std::string uuid) {
  Device gpu;
  gpu.ordinal = ordinal;
  gpu.name = "NVIDIA H200";
  gpu.uuid = std::move(uuid);
  gpu.pci = std::move(pci);
  gpu.memory_bytes = 150'754'820'096;
  gpu.l2_bytes = 62'914'560;
  gpu.memory_peak = 4.8e12;
  gpu.numa = ordinal;
  gpu.cpus = {2 * ordinal, 2 * ordinal + 1};
  gpu.peers = {ordinal == 1, ordinal == 0};
  return gpu;
}

Machine sample_machine() {
  Machine machine;
  machine.host = {"node1",
                  "5.15.0-100-generic",
                  4,
                  {0, 1, 2, 3},
                  {{0, {0, 1}, 270'000'000'000}, {1, {2, 3}, 270'000'000'000}},
                  540'000'000'000,
                  {},
                  {},
                  {{"SLURM_JOB_ID", "4711"}}};
  machine.driver = {"580.159.04", "13.0", "13.0", "available"};
  machine.devices = {sample_gpu(0, "00000000:17:00.0", "GPU-9a1e0c5d-31f4-4a08-b9c3-000000000001"),
                     sample_gpu(1, "00000000:2A:00.0", "GPU-77b2d1aa-90e2-4cf1-8a11-000000000002")};
  machine.environment = {{"CUDA_VISIBLE_DEVICES", "0,1"}};
  return machine;
}

Case sample_case() {
  Case what;
  what.gpus = {0, 1};
  what.memory = what.source_memory = what.destination_memory = MemoryKind::managed;
  what.split = 2;
  what.size = 4'000'000'000;
  what.align = Bytes{2} << 20;
  return what;
}

DeviceResult sample_part(int index) {
  DeviceResult part;
  part.index = index;
  part.bytes = 2'000'000'000;
  part.slices = 1;
  part.device_ns = 99'500.5 + index;
  part.device_min_ns = 98'000 + index;
  part.device_max_ns = 1'200'000.5;
  part.launch_ns = 4'100;
  part.wait_ns = 0;
  part.sync_ns = 96'000;
  part.skew_ns = 120 * index;
  part.event_samples = 10;
  part.rate = 4.02e12;
  part.of_peak = 0.8375;
  part.before = Telemetry{1980, 1980, 3201, 3201, 118.25, 700, 34, {}, 0};
  part.after = part.before;
  return part;
}

Counters sample_counters() {
  Counters counters;
  counters.h2d_bytes = 1.5e6;
  counters.d2d_bytes = 9.14e9;
  counters.fault_groups = 1399.75;
  counters.throttling_ns = 12'000;
  counters.d2d_by_cause.user = 8.4e9;
  counters.d2d_by_cause.coherence = 0.74e9;
  counters.pairs = {{-1, 0, 1.5e6}, {0, 1, 4.5e9}, {1, 0, 4.64e9}};
  counters.passes = 4;
  return counters;
}

Report empty_report(ReportKind kind) {
  Report report;
  report.kind = kind;
  report.tool_version = "0.1.0";
  report.features = {"cuda", "hwloc"};
  report.command = {"mgpu", "copy", "--unified", "--size", "4GB"};
  report.started = "2025-11-30T12:00:00Z";
  report.ended = "2025-11-30T12:00:05Z";
  report.warnings = {"a note with \"quotes\""};
  report.machine = sample_machine();
  return report;
}

}  // namespace

Report sample_report() {
  Report report = empty_report(ReportKind::trials);
  CaseResult& result = report.cases.emplace_back();
  result.key = "00ff12ab34cd56ef";
  result.what = sample_case();
  for (int i = 0; i < 96; ++i) result.samples_ns.push_back(100'000 + i);
  for (int i = 1; i <= 4; ++i) result.samples_ns.push_back(1e6 * i);
  result.samples = 100;
  result.settle_ns = {153'000'000.5, 2'000'000};
  result.harness_ns = 10'600;
  result.summary = {100'000,    100'049.5,  196'045.6, 4'000'000, 523'367.9,
                    100'024.75, 100'074.25, 3'010'000, 100'040,   100'060};
  result.event_median_ns = 100'100;
  result.bytes_copied = 4'000'000'000;
  result.bytes_moved = 8'000'000'000;
  result.rates.copied = {1.99e12, 2.27e12, 1.433e12};
  result.rates.moved = {3.98e12, 4.54e12, 2.866e12};
  result.of_peak = 0.4145833;
  result.per_device = {sample_part(0), sample_part(1)};
  result.overlap = 1.987;
  result.verified = true;
  result.verification = {2, 105, 4'000'000'000, std::nullopt};
  result.marks = {Mark::l2, Mark::verified_every};
  result.counters = sample_counters();
  result.modes = Modes{0.96, 0.04, 100'047.5, 2'500'000};
  result.causes = {
      {CauseKind::array_prefetch,
       "whole arrays are prefetched to the launching device before every copy", 95'000, 0.9495,
       "--prefetch once"},
      {CauseKind::imbalance, "device 1 takes 99.6 μs, 99.5 μs on average", 2'500.5, 0.025, ""}};
  return report;
}

Report sample_host_report() {
  Report report = sample_report();
  Machine& machine = report.machine;
  machine.backend = BackendKind::host;
  machine.driver = {};
  machine.environment.clear();
  for (Device& device : machine.devices) {
    Device cpus;
    cpus.ordinal = device.ordinal;
    cpus.name = "2 CPUs of NUMA node " + std::to_string(device.ordinal);
    cpus.numa = device.ordinal;
    cpus.cpus = device.cpus;
    device = cpus;
  }
  CaseResult& result = report.cases.front();
  result.of_peak.reset();
  result.overlap.reset();
  result.event_median_ns.reset();
  result.run_queue_delay_ns = 1'200'000;
  result.counters.reset();
  for (DeviceResult& part : result.per_device) {
    part.of_peak.reset();
    part.before.reset();
    part.after.reset();
  }
  return report;
}

Report sample_topology() {
  Report report = empty_report(ReportKind::topology);
  report.command = {"mgpu", "topo"};
  return report;
}

Report sample_plan() {
  Report report = empty_report(ReportKind::plan);
  PlanEntry& planned = report.plan.emplace_back();
  planned.what = sample_case();
  planned.lanes = {{0, 0, false, 2'000'000'000, {"copy 2 GB", "synchronise"}},
                   {1, 1, false, 2'000'000'000, {"copy 2 GB", "synchronise"}}};
  planned.memory = {{0, std::nullopt, 4'000'000'000},
                    {1, std::nullopt, 4'000'000'000},
                    {std::nullopt, std::nullopt, 0}};
  planned.estimate_ns = 5.5e9;
  PlanEntry& skipped = report.plan.emplace_back(planned);
  skipped.lanes.clear();
  skipped.memory.clear();
  skipped.estimate_ns.reset();
  skipped.error_kind = ErrorKind::unavailable;
  skipped.reason = "GPU 1 has no managed memory, use --memory device";
  return report;
}

}  // namespace mgpu

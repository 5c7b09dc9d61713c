// SPDX-License-Identifier: MIT
#include "model/matrix.hpp"

#include "model/fields.hpp"
#include "model/paths.hpp"
#include "model/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace mgpu {
namespace {

constexpr Bytes default_size = Bytes{64} << 20;

GpuSelector selector(int ordinal) {
  return {GpuSelector::Kind::ordinal, ordinal, ""};
}

PlaceSpec on_gpu(int ordinal) {
  return {PlaceSpec::Kind::gpu, selector(ordinal), 0};
}

PlaceSpec on_host(std::optional<int> node) {
  if (!node) return {PlaceSpec::Kind::host, {}, 0};
  return {PlaceSpec::Kind::node, {}, *node};
}

std::string place_text(const PlaceSpec& place) {
  if (place.kind == PlaceSpec::Kind::gpu) return std::to_string(place.gpu.ordinal);
  return place.kind == PlaceSpec::Kind::host ? "host" : fmt::format("host:{}", place.node);
}

std::string copy_command(const CaseSpec& spec, const Request& request, const Machine& machine) {
  std::string text = "mgpu copy";
  if (machine.backend == BackendKind::host) text += " --backend host";
  if (request.host_devices) text += fmt::format(" --host-devices {}", *request.host_devices);
  std::vector<int> gpus;
  for (const GpuSelector& gpu : spec.gpus) gpus.push_back(gpu.ordinal);
  text += fmt::format(" --gpus {}", fmt::join(gpus, ","));
  if (spec.from) text += " --from " + place_text(*spec.from);
  if (spec.to) text += " --to " + place_text(*spec.to);
  if (spec.bidirectional) text += " --bidirectional";
  std::string size = format_bytes(spec.size->bytes);
  std::erase(size, ' ');
  text += fmt::format(" --size {}{} --engine {}", size, spec.size->per_gpu ? "/gpu" : "",
                      name(spec.engine));
  return spec.peer == Peer::automatic ? text : fmt::format("{} --peer {}", text, name(spec.peer));
}

/// Why a device does not reach another one's memory; empty: it does.
std::string unreachable(const Machine& machine, int device, int peer) {
  if (machine.backend == BackendKind::host) return "";
  const Link* link = find_link(machine, device, peer);
  if (link && link->proved == false)
    return fmt::format("the probe of GPU {} -> GPU {} failed", device, peer);
  const auto& peers = machine.devices[static_cast<std::size_t>(device)].peers;
  const auto place = static_cast<std::size_t>(peer);
  if (place < peers.size() && peers[place]) return "";
  return fmt::format("GPU {} claims no access to the memory of GPU {}", device, peer);
}

Cell cell_of(int from, int to, CellKind what, std::optional<int> node = {}) {
  Cell cell;
  cell.from = from;
  cell.to = to;
  cell.what = what;
  cell.node = node;
  return cell;
}

class Cells {
 public:
  Cells(const Request& request, const Machine& machine)
      : request_(request),
        machine_(machine),
        gpus_(
            resolve_gpus(request.matrix.gpus.empty() ? GpuList{GpuSelector{}} : request.matrix.gpus,
                         machine, "--gpus")) {
    for (const auto& word : vocabulary<Engine>)
      if (request.matrix.engine.value_or(word.value) == word.value) engines_.push_back(word.value);
    const auto& nodes = machine.host.nodes;
    if (nodes.size() < 2)
      nodes_.emplace_back();
    else
      for (const NumaNode& node : nodes) nodes_.emplace_back(node.number);
  }

  std::vector<Cell> all() {
    for (const int gpu : gpus_) copies(cell_of(gpu, gpu, CellKind::local), {gpu}, {}, {}, "");
    for (const int a : gpus_)
      for (const int b : gpus_)
        if (a != b) pair(a, b);
    const bool cuda = machine_.backend == BackendKind::cuda;
    if (cuda)
      for (const int gpu : gpus_)
        for (const auto& node : nodes_) host(gpu, node);
    // With two devices that is a pair again.
    if (request_.measure == Measure::all && gpus_.size() > 2)
      for (const int gpu : gpus_) collective(gpu);
    for (const int a : gpus_) {
      for (const int b : gpus_) latency(a, b, {}, a == b ? "" : unreachable(machine_, a, b));
      if (cuda)
        for (const auto& node : nodes_) latency(a, host_end, node, "");
    }
    return std::move(cells_);
  }

 private:
  using Side = std::optional<PlaceSpec>;

  void copies(Cell cell, const std::vector<int>& by, const Side& from, const Side& to,
              const std::string& unreached) {
    CaseSpec& spec = cell.spec;
    for (const int gpu : by) spec.gpus.push_back(selector(gpu));
    spec.size = Size{request_.matrix.size.value_or(default_size), by.size() > 1};
    spec.from = from;
    spec.to = to;
    spec.bidirectional = cell.what == CellKind::both || cell.what == CellKind::host_both;
    for (const Engine engine : engines_) {
      Cell one = cell;
      one.engine = one.spec.engine = engine;
      if (!unreached.empty()) one.spec.peer = Peer::off;
      if (engine == Engine::kernel) one.reason = unreached;
      one.command = copy_command(one.spec, request_, machine_);
      cells_.push_back(std::move(one));
    }
  }

  void pair(int a, int b) {
    const std::string there = unreachable(machine_, a, b), back = unreachable(machine_, b, a);
    copies(cell_of(a, b, CellKind::read), {a}, on_gpu(b), {}, there);
    copies(cell_of(a, b, CellKind::write), {a}, {}, on_gpu(b), there);
    const auto place = [&](int gpu) { return std::ranges::find(gpus_, gpu); };
    if (place(a) < place(b))
      copies(cell_of(a, b, CellKind::both), {a}, on_gpu(b), {}, there.empty() ? back : there);
  }

  void host(int gpu, std::optional<int> node) {
    copies(cell_of(host_end, gpu, CellKind::host_to_device, node), {gpu}, on_host(node), {}, "");
    copies(cell_of(gpu, host_end, CellKind::device_to_host, node), {gpu}, {}, on_host(node), "");
    copies(cell_of(gpu, host_end, CellKind::host_both, node), {gpu}, on_host(node), {}, "");
  }

  void collective(int one) {
    std::vector<int> others = gpus_;
    std::erase(others, one);
    std::string unreached;
    for (const int other : others)
      if (unreached.empty()) unreached = unreachable(machine_, other, one);
    copies(cell_of(one, one, CellKind::one_to_all), others, on_gpu(one), {}, unreached);
    copies(cell_of(one, one, CellKind::all_to_one), others, {}, on_gpu(one), unreached);
  }

  void latency(int a, int b, std::optional<int> node, const std::string& unreached) {
    Cell cell = cell_of(a, b, CellKind::latency, node);
    cell.reason = unreached;
    cells_.push_back(std::move(cell));
  }

  const Request& request_;
  const Machine& machine_;
  const std::vector<int> gpus_;
  std::vector<Engine> engines_;
  std::vector<std::optional<int>> nodes_;
  std::vector<Cell> cells_;
};

/// A device has no link to itself until something was measured on it.
Link& link_at(Machine& machine, int from, int to) {
  const auto found = std::ranges::find_if(
      machine.links, [&](const Link& link) { return link.from == from && link.to == to; });
  if (found != machine.links.end()) return *found;
  Link& link = machine.links.emplace_back();
  link.from = from;
  link.to = to;
  return link;
}

void add(Machine& machine, const Cell& cell, Measured one) {
  one.what = name(cell.what);
  one.engine = cell.engine ? name(*cell.engine) : "";
  one.command = cell.command;
  one.node = cell.node;
  link_at(machine, cell.from, cell.to).measured.push_back(one);
  if (cell.what == CellKind::both)
    link_at(machine, cell.to, cell.from).measured.push_back(std::move(one));
}

/// Bytes per second of all directions or devices together, each by its own device time; by the wall
/// where one has none.
double copied_rate(const CaseResult& result) {
  double sum = 0;
  const auto count = [&](Bytes bytes, const std::optional<double>& ns) {
    if (ns && *ns > 0) sum += static_cast<double>(bytes) / *ns * 1e9;
    return ns && *ns > 0;
  };
  bool known = true;
  for (const DirectionResult& way : result.per_direction)
    known = count(way.bytes, way.device_ns) && known;
  if (result.per_direction.empty())
    for (const DeviceResult& device : result.per_device)
      if (device.bytes > 0) known = count(device.bytes, device.device_ns) && known;
  return known && sum > 0 ? sum : result.rates.copied.median;
}

}  // namespace

std::vector<Cell> matrix_cells(const Request& request, const Machine& machine) {
  return Cells(request, machine).all();
}

Plan matrix_plan(std::span<const Cell> cells, const Request& request, const Machine& machine) {
  Request copies;
  copies.backend = request.backend;
  copies.sampling = request.sampling;
  copies.affinity = request.affinity;
  std::vector<std::string> reasons;
  for (const Cell& cell : cells) {
    if (!cell.engine) continue;
    copies.cases.push_back(cell.spec);
    reasons.push_back(cell.reason);
  }
  Plan plan = make_plan(copies, machine);
  for (std::size_t i = 0; i < reasons.size(); ++i)
    if (!reasons[i].empty()) plan.cases[i].skip = Skip{ErrorKind::unavailable, reasons[i]};
  return plan;
}

std::vector<PlanEntry> matrix_entries(std::span<const Cell> cells, const Request& request,
                                      const Machine& machine) {
  // Of a cell: allocation, fills, marks, what NVML tells, the cost of the harness.
  constexpr double overhead_ns = 30e6;
  const Plan plan = matrix_plan(cells, request, machine);
  std::vector<PlanEntry> entries;
  auto planned = plan.cases.begin();
  for (const Cell& cell : cells) {
    if (!cell.engine) continue;
    PlanEntry& entry = entries.emplace_back();
    entry.what = planned->what;
    entry.command = cell.command;
    if (planned->skip) {
      entry.error_kind = planned->skip->kind;
      entry.reason = planned->skip->reason;
    } else {
      entry.estimate_ns = estimate_ns(planned->what, machine, request.sampling) + overhead_ns;
    }
    ++planned;
  }
  return entries;
}

double matrix_estimate_ns(std::span<const Cell> cells, std::span<const PlanEntry> entries) {
  constexpr double latency_ns = 60e6, probe_ns = 10e6, start_ns = 600e6;
  double sum = 0;
  std::set<int> devices;
  for (const PlanEntry& entry : entries) sum += entry.estimate_ns.value_or(0);
  for (const Cell& cell : cells) {
    devices.insert(std::max(cell.from, cell.to));
    if (cell.what != CellKind::latency || !cell.reason.empty()) continue;
    sum += latency_ns + (cell.from != cell.to && cell.to != host_end ? probe_ns : 0);
  }
  return sum + start_ns * static_cast<double>(devices.size());
}

void record_cell(Machine& machine, const Cell& cell, const CaseResult& result) {
  if (result.outcome != OutcomeKind::measured || result.samples == 0)
    return record_reason(machine, cell, result.reason);
  Measured one;
  one.copied_rate = copied_rate(result);
  const std::vector<Lane> lanes = make_schedule(result.what).lanes;
  if (const auto limit = limit_of(result.what, lanes, machine); limit && limit->ns > 0)
    one.peak = static_cast<double>(result.bytes_copied) / limit->ns * 1e9;
  add(machine, cell, std::move(one));
}

void record_latency(Machine& machine, const Cell& cell, double ns) {
  Measured one;
  one.latency_ns = ns;
  add(machine, cell, std::move(one));
}

void record_reason(Machine& machine, const Cell& cell, const std::string& reason) {
  Measured one;
  one.reason = reason;
  add(machine, cell, std::move(one));
}

}  // namespace mgpu

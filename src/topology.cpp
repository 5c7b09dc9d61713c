// SPDX-License-Identifier: MIT
#include "topology.hpp"

#include "model/matrix.hpp"
#include "model/stats.hpp"
#include "peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace mgpu {
namespace {

constexpr int latency_hops = 16384, latency_runs = 3;

/// Tells of the copies, and keeps what came of them.
class Recorder final : public Observer {
 public:
  Recorder(Machine& machine, std::vector<Cell> cells, Observer& outer)
      : machine_(machine), cells_(std::move(cells)), outer_(outer) {}

  void progress(const Progress& now) override { outer_.progress(now); }
  void note(const std::string& text) override { outer_.note(text); }
  void finished(const CaseResult& result, bool) override {
    record_cell(machine_, cells_.at(at_++), result);
  }
  // What ended is in the machine already; of what hangs there is no rate.
  void stuck(const std::vector<CaseResult>&, const Error& why, int signal) override {
    outer_.stuck({}, why, signal);
  }

 private:
  Machine& machine_;
  const std::vector<Cell> cells_;
  Observer& outer_;
  std::size_t at_ = 0;
};

class Topology {
 public:
  Topology(const Request& request, Report& report, Backend& backend, Observer& observer,
           Watchdog& dog, const std::stop_token& stop)
      : request_(request),
        report_(report),
        machine_(report.machine),
        backend_(backend),
        observer_(observer),
        dog_(dog),
        stop_(stop),
        peers_(backend) {
    watch();
  }
  ~Topology() { dog_.on_expiry(nullptr); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  void run() {
    const std::vector<Cell> claimed = matrix_cells(request_, machine_);
    open(claimed);
    probe(claimed);
    // What was proved decides what is measured.
    const std::vector<Cell> cells = matrix_cells(request_, machine_);
    tell_left_out(cells);
    // Before the copies, which take the access of some pairs back.
    for (const Cell& cell : cells)
      if (cell.what == CellKind::latency && going()) latency(cell);
    if (going()) copy(cells);
    if (!going()) report_.complete = false;
    if (failure_) throw *failure_;
  }

 private:
  bool going() const { return !stop_.stop_requested() && !lost_; }

  void watch() {
    dog_.on_expiry([this](const char* step, int signal) {
      observer_.stuck(
          {},
          Error(ErrorKind::timeout, fmt::format("timed out after {} s in {}: {}",
                                                request_.sampling.timeout, step, doing_)),
          signal);
    });
  }

  void fail(const Error& error) {
    if (!failure_ ||
        graver(exit_code(failure_->kind), exit_code(error.kind)) != exit_code(failure_->kind))
      failure_ = error;
    lost_ = lost_ || error.lost || error.kind == ErrorKind::timeout;
  }

  std::string name_of(int end) const {
    if (end == host_end) return "host";
    return fmt::format("{} {}", machine_.backend == BackendKind::host ? "device" : "GPU", end);
  }

  void open(const std::vector<Cell>& cells) {
    std::set<int> devices;
    for (const Cell& cell : cells) devices.insert(std::max(cell.from, cell.to));
    const std::vector<int> ordinals(devices.begin(), devices.end());
    Case one;
    one.gpus = {ordinals.front()};
    one.affinity = request_.affinity;
    doing_ = fmt::format("{} of them", ordinals.size());
    guarded(dog_, "starting the devices",
            [&] { backend_.open(ordinals, wait_of(one, machine_), request_.affinity); });
  }

  void probe(const std::vector<Cell>& cells) {
    for (const Cell& cell : cells) {
      if (cell.what != CellKind::latency || cell.to == host_end || cell.from == cell.to ||
          !cell.reason.empty() || !going())
        continue;
      doing_ = fmt::format("{} -> {}", name_of(cell.from), name_of(cell.to));
      observer_.about_to("probing " + doing_);
      std::optional<Error> wrong;
      try {
        wrong =
            guarded(dog_, "probing peer access", [&] { return peers_.enable(cell.from, cell.to); });
      } catch (const Error& error) {
        wrong = error;
      }
      const bool refuted = wrong && (wrong->kind == ErrorKind::verification ||
                                     wrong->kind == ErrorKind::unavailable);
      for (Link& link : machine_.links)
        if (link.from == cell.from && link.to == cell.to && (!wrong || refuted))
          link.proved = !wrong;
      if (!wrong) continue;
      observer_.note(wrong->what());
      fail(*wrong);
    }
  }

  void tell_left_out(const std::vector<Cell>& cells) {
    std::set<std::pair<int, int>> pairs;
    for (const Cell& cell : cells)
      if (cell.what == CellKind::latency && !cell.reason.empty()) pairs.emplace(cell.from, cell.to);
    if (!pairs.empty())
      observer_.note(fmt::format(
          "{} of {} GPUs without peer access: no kernel copies between them, and memcpy goes "
          "through the host",
          pairs.size() == 1 ? "1 pair" : fmt::format("{} pairs", pairs.size()),
          machine_.devices.size()));
  }

  void latency(const Cell& cell) {
    if (!cell.reason.empty()) return record_reason(machine_, cell, cell.reason);
    doing_ = fmt::format("{} -> {}", name_of(cell.from), name_of(cell.to));
    observer_.progress({0, 1, "measuring latencies", 0, 0});
    try {
      const BufferSpec spec = chain_of(cell);
      const auto buffer = guarded(dog_, "allocating", [&] { return backend_.allocate(spec); });
      std::vector<double> times;
      for (int i = 0; i < latency_runs; ++i)
        times.push_back(guarded(dog_, "chasing pointers", [&] {
          return backend_.chase(on_device(cell.from), {buffer.get(), 0, spec.bytes}, latency_hops);
        }));
      record_latency(machine_, cell, median(std::move(times)));
    } catch (const Error& error) {
      record_reason(machine_, cell, error.what());
      observer_.note(fmt::format("latency of {}: {}", doing_, error.what()));
      fail(error);
    }
  }

  // Where it is: nvbandwidth's 2 MiB, which the cache of a peer holds. A device's own memory is
  // measured beyond its cache.
  BufferSpec chain_of(const Cell& cell) const {
    constexpr Bytes least = Bytes{2} << 20, most = Bytes{512} << 20;
    if (cell.to == host_end)
      return {MemoryKind::pinned,
              cell.node ? Site{Site::Kind::node, *cell.node} : Site{Site::Kind::near, cell.from},
              least};
    const bool cached = machine_.backend == BackendKind::cuda && cell.from != cell.to;
    const Bytes cache =
        machine_.devices[static_cast<std::size_t>(cell.to)].l2_bytes.value_or(Bytes{64} << 20);
    return {MemoryKind::device, on_device(cell.to),
            cached ? least : std::clamp(4 * cache, least, most)};
  }

  void copy(const std::vector<Cell>& cells) {
    std::vector<Cell> copies;
    for (const Cell& cell : cells)
      if (cell.engine) copies.push_back(cell);
    // As it is now: what is measured is added to the report's machine meanwhile.
    const Machine machine = machine_;
    const Plan plan = matrix_plan(cells, request_, machine);
    Recorder recorder(machine_, copies, observer_);
    const Results results =
        measure(plan, machine, request_.sampling, backend_, recorder, dog_, stop_);
    report_.complete = report_.complete && results.complete;
    for (std::size_t i = 0; i < results.cases.size(); ++i) {
      const CaseResult& result = results.cases[i];
      if (result.outcome != OutcomeKind::failed) continue;
      const std::string what =
          fmt::format("{} by {}, {} -> {}: {}", name(copies[i].what), name(*copies[i].engine),
                      name_of(copies[i].from), name_of(copies[i].to), result.reason);
      observer_.note(what);
      fail(Error(result.error_kind.value_or(ErrorKind::runtime), what));
    }
  }

  const Request& request_;
  Report& report_;
  Machine& machine_;
  Backend& backend_;
  Observer& observer_;
  Watchdog& dog_;
  const std::stop_token& stop_;
  Peers peers_;
  std::string doing_;  // read by the watchdog while the step at hand does not return
  std::optional<Error> failure_;
  bool lost_ = false;
};

}  // namespace

void describe_states(Machine& machine, Backend& backend, Watchdog& dog) {
  guarded(dog, "reading the state of the devices", [&] {
    for (Device& device : machine.devices) device.state = backend.telemetry(device.ordinal);
  });
}

void measure_topology(const Request& request, Report& report, Backend& backend, Observer& observer,
                      Watchdog& dog, const std::stop_token& stop) {
  Topology(request, report, backend, observer, dog, stop).run();
}

}  // namespace mgpu

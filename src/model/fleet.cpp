// SPDX-License-Identifier: MIT
#include "model/fleet.hpp"

#include "model/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace mgpu {
namespace {

// Nanoseconds of any copy that ever was, and far from where quotients overflow.
constexpr double shortest = 1e-3, longest = 1e18;

bool can_be_named(std::string_view host) {
  return std::ranges::all_of(host, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
  });
}

/// What one GPU took in one result; nothing where that is not known.
std::optional<FleetGpu> times_of(const CaseResult& result, const DeviceResult& part) {
  FleetGpu gpu;
  gpu.bytes = part.bytes;
  if (part.device_ns) {
    gpu.median_ns = *part.device_ns;
    gpu.min_ns = part.device_min_ns;
    gpu.max_ns = part.device_max_ns;
  } else if (result.per_device.size() == 1 && result.samples > 0) {
    gpu.median_ns = result.summary.median;
    gpu.min_ns = result.summary.min;
    gpu.max_ns = result.summary.max;
  }
  if (gpu.bytes == 0 || !(gpu.median_ns > 0)) return std::nullopt;
  return gpu;
}

template <class Better>
void take(std::optional<double>& kept, const std::optional<double>& other, Better better) {
  if (other && (!kept || better(*other, *kept))) kept = other;
}

void add_once(std::vector<std::string>& failures, std::string failure) {
  if (std::ranges::find(failures, failure) == failures.end())
    failures.push_back(std::move(failure));
}

std::vector<std::string> failures_of(const Report& report) {
  std::vector<std::string> failures;
  const auto add = [&](std::string text) { add_once(failures, std::move(text)); };
  bool told = false;
  for (const CaseResult& result : report.cases) {
    if (result.outcome != OutcomeKind::failed) continue;
    add(fmt::format("{}: {}", result.error_kind ? name(*result.error_kind) : "failed",
                    result.reason));
    told = told || (report.error && result.error_kind == report.error->kind);
  }
  if (report.error && !told)
    add(fmt::format("{}: {}", name(report.error->kind), report.error->message));
  // Cut by a signal: whoever sent it, the node did not fail.
  if (!report.complete && !report.error && report.exit_code < 128)
    add(fmt::format("cut short, exit code {}", report.exit_code));
  return failures;
}

// Times at equal bytes, so that one that copies less is not fast.
double at(Bytes bytes, double ns, Bytes copied) {
  return ns * (static_cast<double>(bytes) / static_cast<double>(copied));
}

/// Compares the GPUs of one case with each other.
void judge(FleetCase& one, std::vector<FleetGpu>& gpus, double floor) {
  for (const FleetGpu& gpu : gpus) one.bytes = std::max(one.bytes, gpu.bytes);
  std::vector<double> medians;
  for (const FleetGpu& gpu : gpus) medians.push_back(at(one.bytes, gpu.median_ns, gpu.bytes));
  const Outliers outliers = find_outliers(medians, floor / 100);
  const Summary summary = summarize(medians);
  one.gpus = gpus.size();
  one.min_ns = summary.min;
  one.p25_ns = summary.p25;
  one.median_ns = summary.median;
  one.p75_ns = summary.p75;
  one.max_ns = summary.max;
  one.mad = outliers.mad / outliers.median;
  if (outliers.threshold) one.threshold = *outliers.threshold / outliers.median;
  const double passes = one.basis == Basis::moved ? 2 : 1;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].rate = passes * static_cast<double>(gpus[i].bytes) / gpus[i].median_ns * 1e9;
    gpus[i].ratio = medians[i] / outliers.median;
    gpus[i].outlier = outliers.found[i];
  }
}

FleetNodeCase on_node(const FleetCase& one, auto first, auto last) {
  std::vector<double> medians;
  for (auto gpu = first; gpu != last; ++gpu)
    medians.push_back(at(one.bytes, gpu->median_ns, gpu->bytes));
  const auto [low, high] = std::ranges::minmax(medians);
  return {one.key, one.name, medians.size(), low, median(medians), high};
}

}  // namespace

FleetBuilder::Id FleetBuilder::id_of(std::size_t number, const FleetGpu& gpu) {
  const bool known = !gpu.uuid.empty();
  return {number, gpu.host, gpu.uuid, known ? 0 : gpu.rank.value_or(-1), known ? 0 : gpu.ordinal};
}

std::size_t FleetBuilder::number_of(const std::string& key, const FleetCase& one) {
  const auto [found, added] = numbers_.try_emplace({key, one.name}, cases_.size());
  if (added) cases_.push_back(one);
  return found->second;
}

void FleetBuilder::add(const Report& report) {
  const Host& host = report.machine.host;
  FleetNode& node = nodes_[host.name];
  node.host = host.name;
  if (host.rank && std::ranges::find(node.ranks, *host.rank) == node.ranks.end())
    node.ranks.insert(std::ranges::upper_bound(node.ranks, *host.rank), *host.rank);
  for (std::string& failure : failures_of(report)) add_once(node.failures, std::move(failure));

  for (const CaseResult& result : report.cases) {
    if (result.outcome != OutcomeKind::measured) continue;
    // Not the key in the file: it may be of a version that knew fewer fields.
    const std::string key = case_key(result.what, report.machine);
    for (const DeviceResult& part : result.per_device) {
      std::optional<FleetGpu> gpu = times_of(result, part);
      if (!gpu) continue;
      const Device& device = report.machine.devices[static_cast<std::size_t>(part.index)];
      gpu->key = key;
      gpu->host = host.name;
      gpu->rank = host.rank;
      gpu->ordinal = device.ordinal;
      gpu->uuid = device.uuid;
      gpu->pci = device.pci;
      gpu->name = device.name;
      if (gpu->median_ns < shortest || gpu->median_ns > longest)
        throw Error(ErrorKind::usage, fmt::format("{}: device {} takes {} ns, which is no time of "
                                                  "a copy: leave that result out",
                                                  host.name, device.ordinal, gpu->median_ns));
      FleetCase one;
      one.key = key;
      one.what = result.what;
      one.name = device.name;
      one.basis = result.basis;
      const std::size_t number = number_of(key, one);
      if (!part.device_ns) cases_[number].device_times = false;
      const auto [found, added] = gpus_.try_emplace(id_of(number, *gpu));
      Seen& seen = found->second;
      seen.medians.push_back(gpu->median_ns);
      if (added) {
        seen.gpu = std::move(*gpu);
        continue;
      }
      take(seen.gpu.min_ns, gpu->min_ns, std::less<>{});
      take(seen.gpu.max_ns, gpu->max_ns, std::greater<>{});
      ++seen.gpu.rounds;
    }
  }
}

void FleetBuilder::failed(const std::string& host, const std::string& why) {
  if (host.empty()) return;
  FleetNode& node = nodes_[host];
  node.host = host;
  add_once(node.failures, why);
}

Fleet FleetBuilder::finish(double floor) const {
  Fleet fleet;
  fleet.floor = floor;
  fleet.cases = cases_;
  fleet.missing = missing_;
  std::ranges::stable_sort(fleet.missing, {}, &MissingRank::rank);

  auto nodes = nodes_;
  std::map<std::string, std::set<Id>> copied, slow;  // of a host, whatever the case
  auto next = gpus_.begin();
  for (std::size_t number = 0; number < cases_.size(); ++number) {
    std::vector<FleetGpu> gpus;
    for (; next != gpus_.end() && std::get<0>(next->first) == number; ++next) {
      FleetGpu& gpu = gpus.emplace_back(next->second.gpu);
      gpu.median_ns = median(next->second.medians);
    }
    std::ranges::sort(gpus, [](const FleetGpu& a, const FleetGpu& b) {
      if (a.host != b.host) return HostOrder{}(a.host, b.host);
      return std::tie(a.rank, a.ordinal, a.uuid) < std::tie(b.rank, b.ordinal, b.uuid);
    });
    FleetCase& one = fleet.cases[number];
    judge(one, gpus, floor);
    for (auto first = gpus.begin(); first != gpus.end();) {
      const auto last = std::find_if(first, gpus.end(),
                                     [&](const FleetGpu& gpu) { return gpu.host != first->host; });
      nodes.at(first->host).cases.push_back(on_node(one, first, last));
      ++one.nodes;
      first = last;
    }
    for (const FleetGpu& gpu : gpus) {
      copied[gpu.host].insert(id_of(0, gpu));
      if (gpu.outlier == Outlier::slow) slow[gpu.host].insert(id_of(0, gpu));
    }
    std::ranges::move(gpus, std::back_inserter(fleet.gpus));
  }

  std::vector<std::string> excluded;
  for (auto& [host, node] : nodes) {
    node.gpus = copied[host].size();
    node.slow = slow[host].size();
    if (node.slow > 0 || !node.failures.empty()) {
      // In Slurm's lists brackets and commas mean something, and would leave out other nodes.
      if (can_be_named(host))
        excluded.push_back(host);
      else
        add_once(node.failures, "its name cannot stand in a list of nodes");
    }
    fleet.nodes.push_back(std::move(node));
  }
  fleet.exclude = host_list(std::move(excluded));
  return fleet;
}

}  // namespace mgpu

// SPDX-License-Identifier: MIT
#include "model/plan.hpp"

#include "model/fields.hpp"
#include "model/paths.hpp"
#include "model/refusal.hpp"
#include "model/runtimes.hpp"
#include "model/schedule.hpp"
#include "model/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace mgpu {
namespace {

const Device& device_of(const Machine& machine, int ordinal) {
  return machine.devices[static_cast<std::size_t>(ordinal)];
}

Place resolve_place(const PlaceSpec& spec, std::string_view option, const Machine& machine) {
  switch (spec.kind) {
    case PlaceSpec::Kind::local:
      return {};
    case PlaceSpec::Kind::gpu:
      return {Place::Kind::device, resolve_gpus({spec.gpu}, machine, option).front()};
    case PlaceSpec::Kind::host:
      return {Place::Kind::host};
    case PlaceSpec::Kind::node:
      break;
  }
  const std::vector<NumaNode>& nodes = machine.host.nodes;
  if (!nodes.empty() && std::ranges::find(nodes, spec.node, &NumaNode::number) == nodes.end()) {
    std::vector<int> numbers;
    for (const NumaNode& node : nodes) numbers.push_back(node.number);
    throw Error(ErrorKind::unavailable,
                fmt::format("{} host:{}: there is no NUMA node {}, only {}", option, spec.node,
                            spec.node, fmt::join(numbers, ", ")));
  }
  return {Place::Kind::node, spec.node};
}

std::vector<int> part_of(std::vector<int> gpus, const Share& share) {
  const auto all = static_cast<int>(gpus.size());
  if (all < share.count)
    throw Error(ErrorKind::unavailable,
                fmt::format("{} ranks of this host share {} device{}: start at most one rank for "
                            "each, or name more with --gpus",
                            share.count, all, all == 1 ? "" : "s"));
  const auto end = [&](int index) { return gpus.begin() + index * all / share.count; };
  return {end(share.index), end(share.index + 1)};
}

std::vector<int> resolve_executors(const CaseSpec& spec, const Case& what, const Request& request,
                                   const Machine& machine) {
  const auto listed = [&](const GpuList& list) {
    return part_of(resolve_gpus(list, machine, "--gpus"), request.share);
  };
  if (!spec.gpus.empty()) return listed(spec.gpus);
  // With both arrays on named GPUs, the one that is copied to copies unless --gpus says otherwise.
  if (what.from.kind == Place::Kind::device && what.to.kind == Place::Kind::device)
    return part_of({what.to.index}, request.share);
  return listed({GpuSelector{}});
}

// Pinned memory where none was asked for: what is not managed lies on the host as that.
MemoryKind kind_at(const Place& place, MemoryKind asked) {
  if (asked == MemoryKind::managed) return asked;
  if (!place.on_host()) return MemoryKind::device;
  return asked == MemoryKind::pageable ? asked : MemoryKind::pinned;
}

Bytes resolve_size(const CaseSpec& spec, std::size_t gpus, BackendKind backend) {
  const Size size = spec.size.value_or(
      Size{backend == BackendKind::host ? Bytes{256} << 20 : Bytes{1} << 30, true});
  if (!size.per_gpu) return size.bytes;
  const auto bytes = checked_multiply(size.bytes, gpus);
  if (!bytes)
    throw Error(
        ErrorKind::usage,
        fmt::format("--size: {} bytes for each of {} GPUs overflow 64 bits", size.bytes, gpus));
  return *bytes;
}

std::vector<Mark> known_marks(const Case& what, const Machine& machine) {
  std::vector<Mark> marks;
  std::map<int, Bytes> touched;  // bytes of source and destination that each device copies
  for (int i = 0; i < what.split; ++i) {
    const auto [begin, end] = slice_bounds(what.size, what.split, i, what.align);
    touched[what.gpus[static_cast<std::size_t>(i) % what.gpus.size()]] += 2 * (end - begin);
  }
  const bool pageable =
      what.source_memory == MemoryKind::pageable || what.destination_memory == MemoryKind::pageable;
  const bool cuda = machine.backend == BackendKind::cuda;
  const bool cached = basis_of(what, machine) == Basis::moved &&
                      std::ranges::any_of(touched, [&](const auto& entry) {
                        const auto l2 = device_of(machine, entry.first).l2_bytes;
                        return l2 && entry.second > 0 && entry.second / 2 <= *l2;
                      });
  if (cached) marks.push_back(Mark::l2);
  if (cuda && pageable && what.engine == Engine::memcpy) marks.push_back(Mark::pageable);
  if (cuda && what.memory == MemoryKind::managed && what.engine == Engine::memcpy)
    marks.push_back(Mark::in_place);
  return marks;
}

// Throws what is wrong with selectors and sizes; what does not depend on them is filled then, for
// the row of a sweep.
void resolve(Case& what, const CaseSpec& spec, const Request& request, const Machine& machine) {
  const bool managed = spec.memory == MemoryKind::managed;
  const bool placed = spec.home || spec.from || spec.to;
  const bool host_kind = spec.memory == MemoryKind::pinned || spec.memory == MemoryKind::pageable;
  what.memory = spec.memory;
  what.align = spec.align.value_or(managed ? managed_block : 16);
  what.engine = spec.engine;
  what.access = spec.access;
  what.batch = spec.batch;
  what.cold = spec.cold;
  what.advise = spec.advise;
  what.peer = spec.peer;
  what.bidirectional = spec.bidirectional;
  what.prefetch = managed && !placed ? Prefetch::once : Prefetch::none;
  what.runtime = spec.runtime;
  if (spec.runtime) {
    const RuntimeKnobs& knobs = knobs_of(*spec.runtime);
    const bool prefetches = !knobs.prefetch_needs_one_gpu || machine.devices.size() == 1;
    what.prefetch = prefetches ? knobs.prefetch : Prefetch::none;
    what.prefetch_repeats = prefetches ? knobs.prefetch_repeats : 1;
    what.owner_wait = knobs.owner_wait;
    what.owner_lock = knobs.owner_lock;
    what.threads = knobs.threads;
  }
  if (spec.prefetch) {
    what.prefetch = *spec.prefetch;
    what.prefetch_repeats = 1;
  }
  what.owner_wait = spec.owner_wait.value_or(what.owner_wait);
  what.threads = spec.threads.value_or(what.threads);
  what.split = spec.split.value_or(1);
  if (spec.size && !spec.size->per_gpu) what.size = spec.size->bytes;

  const auto place = [&](const std::optional<PlaceSpec>& side, std::string_view option) {
    if (side) return resolve_place(*side, option, machine);
    if (spec.home) return resolve_place(*spec.home, "--home", machine);
    return Place{host_kind && !placed ? Place::Kind::host : Place::Kind::local};
  };
  what.from = place(spec.from, "--from");
  what.to = place(spec.to, "--to");
  what.source_memory = kind_at(what.from, spec.memory);
  what.destination_memory = kind_at(what.to, spec.memory);
  what.gpus = resolve_executors(spec, what, request, machine);
  what.split = spec.split.value_or(static_cast<int>(what.gpus.size()));
  what.size = resolve_size(spec, what.gpus.size(), machine.backend);
}

PlannedCase plan_case(const CaseSpec& spec, const Request& request, const Machine& machine) {
  PlannedCase planned;
  Case& what = planned.what;
  try {
    resolve(what, spec, request, machine);
  } catch (const Error& error) {
    if (request.command != Command::sweep) throw;
    planned.skip = Skip{error.kind, error.what()};
    return planned;
  }
  const bool managed = spec.memory == MemoryKind::managed;
  planned.skip = refusal(what, spec, request, machine);
  if (planned.skip) return planned;

  if (managed && what.prefetch != Prefetch::none && std::ranges::any_of(what.gpus, [&](int g) {
        return !device_of(machine, g).concurrent_managed;
      })) {
    what.prefetch = Prefetch::none;
    planned.marks.push_back(Mark::prefetch_unsupported);
  }
  what.affinity = request.affinity;
  what.wait = wait_of(what, machine);
  if (what.affinity == Affinity::near && machine.backend == BackendKind::cuda)
    for (const int gpu : what.gpus)
      if (device_of(machine, gpu).cpus.empty())
        planned.warnings.push_back(
            fmt::format("this process may use none of the CPUs near GPU {}, or they are not known: "
                        "its threads are not pinned",
                        gpu));
  const bool shared = managed || what.from.kind == Place::Kind::device ||
                      what.from.kind == Place::Kind::node || what.to.kind == Place::Kind::device ||
                      what.to.kind == Place::Kind::node;
  if (spec.owner_wait.value_or(OwnerWait::none) != OwnerWait::none && !shared)
    planned.warnings.emplace_back(
        "--owner-wait changes nothing here: each slice has arrays of its own (see --home and "
        "--unified)");
  if (what.peer != Peer::automatic && (managed || machine.backend == BackendKind::host))
    planned.warnings.push_back(fmt::format("--peer {} has no effect on {}", name(what.peer),
                                           managed ? "managed memory" : "the host backend"));
  if (what.split < static_cast<int>(what.gpus.size()))
    planned.warnings.push_back(fmt::format("--split {} leaves {} of {} devices idle", what.split,
                                           what.gpus.size() - static_cast<std::size_t>(what.split),
                                           what.gpus.size()));
  for (const Mark mark : known_marks(what, machine)) planned.marks.push_back(mark);
  if (request.sampling.warmup == 0) planned.marks.push_back(Mark::no_warmup);
  if (request.sampling.verify == Verify::every) planned.marks.push_back(Mark::verified_every);
  return planned;
}

}  // namespace

std::string to_string(const Place& place) {
  switch (place.kind) {
    case Place::Kind::local:
      return "local";
    case Place::Kind::device:
      return std::to_string(place.index);
    case Place::Kind::host:
      return "host";
    case Place::Kind::node:
      return fmt::format("host:{}", place.index);
  }
  return "";
}

std::optional<Place> place_of(std::string_view text) {
  for (const Place::Kind kind : {Place::Kind::local, Place::Kind::host})
    if (text == to_string(Place{kind})) return Place{kind};
  constexpr std::string_view node = "host:";
  Place place{text.starts_with(node) ? Place::Kind::node : Place::Kind::device};
  if (place.kind == Place::Kind::node) text.remove_prefix(node.size());
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, place.index);
  if (read.ec != std::errc() || read.ptr != end || place.index < 0) return std::nullopt;
  return place;
}

Site site_of(const Place& place, int executor) {
  switch (place.kind) {
    case Place::Kind::local:
      break;
    case Place::Kind::device:
      return on_device(place.index);
    case Place::Kind::host:
      return {Site::Kind::near, executor};
    case Place::Kind::node:
      return {Site::Kind::node, place.index};
  }
  return on_device(executor);
}

Wait wait_of(const Case& what, const Machine& machine) {
  const std::vector<Lane> lanes = make_schedule(what).lanes;
  const auto outnumbers = [](std::size_t cpus, std::size_t threads) { return cpus > threads; };
  const bool one = what.threads == Threads::single;
  if (!outnumbers(machine.host.allowed_cpus.size(), one ? 1 : lanes.size())) return Wait::block;
  if (one || what.affinity == Affinity::none) return Wait::spin;
  // Threads that are pinned have the CPUs near their device alone.
  std::map<std::vector<int>, std::size_t> pinned;
  for (const Lane& lane : lanes) ++pinned[device_of(machine, lane.device).cpus];
  return std::ranges::all_of(pinned,
                             [](const auto& group) {
                               const auto& [cpus, threads] = group;
                               return cpus.empty() || threads <= cpus.size();
                             })
             ? Wait::spin
             : Wait::block;
}

Plan make_plan(const Request& request, const Machine& machine) {
  Plan plan;
  for (const CaseSpec& spec : expand(request, machine))
    plan.cases.push_back(plan_case(spec, request, machine));
  return plan;
}

double estimate_ns(const Case& what, const Machine& machine, const Sampling& sampling) {
  constexpr double unknown_peak = 10e9, realistic_share = 0.85, overhead_ns = 20e3;
  const Schedule schedule = make_schedule(what);
  const auto limit = limit_of(what, schedule.lanes, machine);
  double bytes = 0;
  for (const Lane& lane : schedule.lanes) bytes += 2.0 * static_cast<double>(lane.source.bytes);
  const double least =
      limit ? limit->ns : bytes / (unknown_peak * static_cast<double>(what.gpus.size())) * 1e9;
  const double pass = least / realistic_share * what.batch + overhead_ns;
  const double sampled =
      std::min(sampling.seconds * 1e9, static_cast<double>(sampling.samples) * pass);
  const int checks =
      sampling.verify == Verify::none ? 1 : 4;  // fills and checks cost about a pass each
  return sampled * 1.1 + pass * (sampling.warmup + 1 + checks);
}

std::string case_key(const Case& what, const Machine& machine) {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a, 64 bit
  const auto feed = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    hash = (hash ^ 0xff) * 0x100000001b3ull;  // a separator that no text contains
  };
  for (const auto& [key, value] : identity_fields(what)) {
    feed(key);
    feed(value);
  }
  for (const int gpu : what.gpus) feed(device_of(machine, gpu).name);
  return fmt::format("{:016x}", hash);
}

}  // namespace mgpu

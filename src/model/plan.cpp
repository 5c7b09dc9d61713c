// SPDX-License-Identifier: MIT
#include "model/plan.hpp"

#include "model/fields.hpp"
#include "model/runtimes.hpp"
#include "model/schedule.hpp"
#include "model/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace mgpu {
namespace {

constexpr int max_lanes_per_device = 64;

const Device& device_of(const Machine& machine, int ordinal) {
  return machine.devices[static_cast<std::size_t>(ordinal)];
}

std::string label(const Machine& machine, int ordinal) {
  return fmt::format("{} {}", machine.backend == BackendKind::host ? "device" : "GPU", ordinal);
}

Place resolve_place(const std::optional<PlaceSpec>& spec, const Machine& machine) {
  if (!spec || spec->kind == PlaceSpec::Kind::local) return {};
  return {Place::Kind::device, resolve_gpus({spec->gpu}, machine, "--home").front()};
}

std::vector<int> resolve_executors(const CaseSpec& spec, const Place& home,
                                   const Machine& machine) {
  if (!spec.gpus.empty()) return resolve_gpus(spec.gpus, machine, "--gpus");
  // With both arrays on a named GPU, that GPU copies them unless --gpus says otherwise.
  if (home.kind == Place::Kind::device) return {home.device};
  return resolve_gpus({GpuSelector{}}, machine, "--gpus");
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

// What is impossible on every machine is usage, what is impossible on this one is unavailable.
std::optional<Skip> refusal(const Case& what, const CaseSpec& spec, const Request& request,
                            const Machine& machine) {
  const auto usage = [](std::string why) { return Skip{ErrorKind::usage, std::move(why)}; };
  const auto unavailable = [](std::string why) {
    return Skip{ErrorKind::unavailable, std::move(why)};
  };
  const bool managed = what.memory == MemoryKind::managed;
  const bool host = machine.backend == BackendKind::host;

  std::set<int> used(what.gpus.begin(), what.gpus.end());
  for (const Place& place : {what.from, what.to})
    if (place.kind == Place::Kind::device) used.insert(place.device);

  const auto most =
      (static_cast<std::size_t>(what.split) + what.gpus.size() - 1) / what.gpus.size();
  if (most > max_lanes_per_device)
    return usage(fmt::format("--split {}: that is {} slices a device, at most {} are possible",
                             what.split, most, max_lanes_per_device));
  if (!managed && spec.prefetch.value_or(Prefetch::none) != Prefetch::none)
    return usage(
        fmt::format("--prefetch {} is for managed memory: add --unified", name(*spec.prefetch)));
  if (!managed && (what.cold || what.advise != Advice::none))
    return usage(
        fmt::format("{} is for managed memory: add --unified", what.cold ? "--cold" : "--advise"));
  if (!managed && request.sampling.counters)
    return usage("--counters counts what managed memory does: add --unified");
  if (host && what.advise != Advice::none)
    return unavailable(
        fmt::format("--advise {}: the host backend takes no advice", name(what.advise)));
  if (what.gpus.size() > 1 &&
      std::ranges::any_of(what.gpus, [&](int g) { return device_of(machine, g).mig; }))
    return unavailable(
        "--gpus names several MIG instances, and a process can use one MIG instance: name one of "
        "them");

  if (managed) {
    for (const int gpu : used) {
      const Device& device = device_of(machine, gpu);
      if (!device.managed)
        return unavailable(fmt::format("unified memory is not supported on {}: use --memory device",
                                       label(machine, gpu)));
      if (device.concurrent_managed) continue;
      if (spec.prefetch && *spec.prefetch != Prefetch::none)
        return unavailable(
            fmt::format("--prefetch {}: {} has concurrentManagedAccess=0, so it cannot prefetch: "
                        "use --no-prefetch",
                        name(*spec.prefetch), label(machine, gpu)));
      if (what.advise != Advice::none)
        return unavailable(fmt::format(
            "--advise {}: {} has concurrentManagedAccess=0, so it takes no advice: leave it out",
            name(what.advise), label(machine, gpu)));
      if (request.sampling.oversubscribe)
        return unavailable(
            fmt::format("--oversubscribe: {} has concurrentManagedAccess=0, so its managed memory "
                        "cannot exceed it",
                        label(machine, gpu)));
    }
    return std::nullopt;
  }
  if (host || what.to.kind != Place::Kind::device) return std::nullopt;
  for (const int gpu : what.gpus) {
    const int home = what.to.device;
    if (gpu == home) continue;
    if (what.engine == Engine::memcpy)
      return usage(
          fmt::format("--engine memcpy within GPU {} would run on GPU {} itself, not on GPU {}: "
                      "use --engine kernel, or --gpus {}",
                      home, home, gpu, home));
    if (what.peer == Peer::off)
      return unavailable(fmt::format(
          "--peer off: a kernel on GPU {} needs peer access to GPU {}: use --engine memcpy between "
          "GPUs, --home local or --unified",
          gpu, home));
    const auto& peers = device_of(machine, gpu).peers;
    if (static_cast<std::size_t>(home) >= peers.size() || !peers[static_cast<std::size_t>(home)])
      return unavailable(
          fmt::format("GPU {} cannot access the memory of GPU {} (no peer access): use --home "
                      "local or --unified",
                      gpu, home));
  }
  return std::nullopt;
}

std::vector<Mark> known_marks(const Case& what, const Machine& machine) {
  std::vector<Mark> marks;
  std::map<int, Bytes> touched;  // bytes of source and destination that each device copies
  for (int i = 0; i < what.split; ++i) {
    const auto [begin, end] = slice_bounds(what.size, what.split, i, what.align);
    touched[what.gpus[static_cast<std::size_t>(i) % what.gpus.size()]] += 2 * (end - begin);
  }
  const bool cached = std::ranges::any_of(touched, [&](const auto& entry) {
    const auto l2 = device_of(machine, entry.first).l2_bytes;
    return l2 && entry.second > 0 && entry.second / 2 <= *l2;
  });
  if (cached) marks.push_back(Mark::l2);
  if (what.memory == MemoryKind::managed && what.engine == Engine::memcpy &&
      machine.backend == BackendKind::cuda)
    marks.push_back(Mark::in_place);
  return marks;
}

// Throws what is wrong with selectors and sizes; what does not depend on them is filled then, for
// the row of a sweep.
void resolve(Case& what, const CaseSpec& spec, const Machine& machine) {
  const bool managed = spec.memory == MemoryKind::managed;
  what.memory = what.source_memory = what.destination_memory = spec.memory;
  what.align = spec.align.value_or(managed ? managed_block : 16);
  what.engine = spec.engine;
  what.access = spec.access;
  what.batch = spec.batch;
  what.cold = spec.cold;
  what.advise = spec.advise;
  what.peer = spec.peer;
  what.prefetch = managed && !spec.home ? Prefetch::once : Prefetch::none;
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

  what.from = what.to = resolve_place(spec.home, machine);
  what.gpus = resolve_executors(spec, what.to, machine);
  what.split = spec.split.value_or(static_cast<int>(what.gpus.size()));
  what.size = resolve_size(spec, what.gpus.size(), machine.backend);
}

PlannedCase plan_case(const CaseSpec& spec, const Request& request, const Machine& machine) {
  PlannedCase planned;
  Case& what = planned.what;
  try {
    resolve(what, spec, machine);
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
  what.wait = wait_of(what, machine);
  if (spec.owner_wait.value_or(OwnerWait::none) != OwnerWait::none && !managed &&
      what.to.kind == Place::Kind::local)
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
  return place.kind == Place::Kind::local ? "local" : std::to_string(place.device);
}

Wait wait_of(const Case& what, const Machine& machine) {
  const auto threads = static_cast<std::size_t>(what.threads == Threads::single ? 1 : what.split);
  return machine.host.allowed_cpus.size() > threads ? Wait::spin : Wait::block;
}

Plan make_plan(const Request& request, const Machine& machine) {
  Plan plan;
  for (const CaseSpec& spec : expand(request, machine))
    plan.cases.push_back(plan_case(spec, request, machine));
  return plan;
}

double estimate_ns(const Case& what, const Machine& machine, const Sampling& sampling) {
  constexpr double unknown_peak = 10e9, realistic_share = 0.85, overhead_ns = 20e3;
  double rate = 0;
  for (const int gpu : what.gpus)
    rate += device_of(machine, gpu).memory_peak.value_or(unknown_peak);
  const double pass =
      2e9 * static_cast<double>(what.size) / (rate * realistic_share) * what.batch + overhead_ns;
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
